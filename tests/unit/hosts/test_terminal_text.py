"""What a terminal shows: text that grows is printed once, and others' text stands behind a bar."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.hosts.kernel.tracebacks import of_the_code
from plan_mode_nb.hosts.terminal.frames import BAR, framed, rule
from plan_mode_nb.hosts.terminal.growing import Growing, to_terminal
from plan_mode_nb.plan.visible import visible

TRICKY = st.lists(
    st.sampled_from(
        ["a", " ", "\n", "\r", "\r\n", "\u202e", "\u200d", "\u200f", "\ufe0f", "👩", "💻", "א", "ب", "字", "\x1b", "é", "1", "\U000e0041"]
    )
).map("".join)


@given(st.lists(TRICKY))
def test_a_growing_text_is_printed_once_and_ends_as_the_whole_would_be(parts: list[str]) -> None:
    """However it is cut into parts, what is on the screen is the whole text made visible, with its last line ended."""
    written: list[str] = []
    growing = Growing(written.append)
    for part in parts:
        growing.add(part)
        assert visible("".join(parts)).replace("\r\n", "\n").startswith("".join(written))
    growing.end()
    whole = visible("".join(parts)).replace("\r\n", "\n")
    assert "".join(written) == (whole if not whole or whole.endswith("\n") else whole + "\n")


def test_plain_text_appears_as_it_comes() -> None:
    """Within a line; only a line with something that could hide waits for its end."""
    written: list[str] = []
    growing = Growing(written.append)
    growing.add("one ")
    growing.add("two")
    assert written == ["one ", "two"]
    growing.add("\nth\x1bree")
    assert written[2:] == ["\n"]
    growing.add("\nfour")
    assert written[3:] == ["th␛ree\nfour"]


@given(TRICKY | st.text(), st.integers(20, 200))
def test_every_row_of_others_text_begins_with_a_bar_and_fits(text: str, width: int) -> None:
    """Nothing is lost but spaces at a row's end and tabs' width."""
    rows = framed(text, width).split("\n")
    assert all(row.startswith(BAR.rstrip()) for row in rows)
    assert all(len(row) <= width for row in rows)
    shown = visible(text.removeprefix("\ufeff")).replace("\r\n", "\n")
    assert "".join("".join(row.removeprefix("│") for row in rows).split()) == "".join(shown.split())


def test_wide_characters_count_twice() -> None:
    """A row of Chinese is half as many characters, and does not wrap past its bar."""
    assert [len(row) for row in framed("字" * 40, 42).split("\n")] == [22, 22]
    assert framed("word " * 10, 24).split("\n")[0] == "│ word word word word"


@pytest.mark.parametrize("title", ["", "Plan review: Count", "字" * 60, "x" * 300])
def test_a_rule_is_one_row(title: str) -> None:
    """Whatever its title."""
    made = rule(title, 60)
    assert "\n" not in made
    assert sum(2 if char == "字" else 1 for char in made) <= 60
    assert made.startswith("──")


def test_a_long_plan_is_framed_in_linear_time() -> None:
    """200 kB on one line, wide characters too."""
    text = "計画 plan " * 25_000
    assert len(framed(text, 80)) > len(text)


def test_what_the_encoding_lacks_is_written_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ASCII terminal shows marks as escapes rather than fail in the middle of a review."""
    bytes_written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(bytes_written, encoding="ascii"))
    to_terminal("│ ␛ é\n")
    assert bytes_written.getvalue() == b"\\u2502 \\u241b \\xe9\n"


def test_a_traceback_of_the_agents_code_has_no_frame_of_ours() -> None:
    """What raises an interrupt and what refuses the keyboard end on frames that name this machine's paths."""
    frames = [
        "KeyboardInterrupt   Traceback (most recent call last)",
        "Cell In[1], line 1\n----> 1 time.sleep(60)",
        "\x1b[0;32mFile \x1b[0m/x/plan_mode_nb/hosts/kernel/interrupts.py:125, in _on_signal\n    raise KeyboardInterrupt",
        "File /x/plan_mode_nb/log/session.py:3, in append\n    ...",
        "KeyboardInterrupt: ",
    ]
    assert of_the_code(frames) == [*frames[:2], *frames[3:]]
