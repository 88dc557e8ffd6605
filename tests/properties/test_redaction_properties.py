"""However a text is cut into pieces, what is shown of it is what the whole would show, and never a secret."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.agent.redact import GrowingText, Redactions
from plan_mode_nb.features.redaction import Redactor

ENVIRON = {"A_TOKEN": "abc-def-ghi", "B_SECRET": "abc-def-ghi-jkl", "C_PASSWORD": "four plain words here", "D_KEY": "schlüssel-öffnet"}
KEY = "sk-proj-Ab3dEfGhIjKlMnOpQrStUvWx"
PIECES = [
    *ENVIRON.values(),
    KEY,
    "abc-def",
    "four plain",
    " ",
    "\n",
    "word",
    "日本",
    ".",
    "x",
    "-----BEGIN ",
    "\x1b[31m",
    "\\n",
    "[redacted:A_TOKEN]",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(TEXTS, st.lists(st.integers(1, 7), min_size=1, max_size=20))
def test_pieces_show_what_the_whole_shows(text: str, sizes: list[int]) -> None:
    """So no piece holds the beginning of a secret either: the whole has none."""
    redactor = Redactor(ENVIRON)
    redactions = Redactions()
    redactions.register("secrets", redactor.text, redactor.settled)
    growing, shown, at, turn = GrowingText(redactions), "", 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        shown += growing.push(text[at : at + size])
        at, turn = at + size, turn + 1
    shown += growing.rest()
    assert shown == redactor.text(text)


@given(TEXTS)
def test_redacting_is_idempotent(text: str) -> None:
    """What was redacted may pass again: on its way into a log, a request and a display."""
    redactor = Redactor(ENVIRON)
    once = redactor.text(text)
    assert redactor.text(once) == once
