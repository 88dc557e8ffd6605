"""Secrets taken out of every text before it is logged, sent or shown: values of the environment, and keys known by their shape.

A value is known by the name of its variable, from 8 characters on and as a whole token (log.md, Size and secrets), in the forms in which
code prints it. One that was in the environment once stays known for the life of the process.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final
from urllib.parse import quote, quote_plus

from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.secret_names import secret_values

_MARK: Final = r"\[redacted:[^\]\s]{1,200}\]"
_START: Final = r"(?P<before>(?<![A-Za-z0-9_])|(?<=\\[abfnrtv])|(?<=\\u[0-9A-Fa-f]{4})|\x1b\[[0-9;:]*m)"
"""Before a token: no letter of a word, though an escape or a terminal's colour may end in one."""
_END: Final = r"(?![A-Za-z0-9_])"
_SHAPES: Final = (
    ("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("api-key", "sk-", r"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{24,}"),
    ("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    ("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{36,}"),
    ("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("aws-key-id", "AKIA", r"AKIA[A-Z0-9]{16}"),
    ("aws-key-id", "ASIA", r"ASIA[A-Z0-9]{16}"),
    ("google-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    ("pypi-token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    ("stripe-key", "k_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("web-token", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
)
"""Name, what every one of them holds, pattern. Each needs so much of a key's own form that words and hashes do not match."""
_PASSWORD: Final = re.compile(r"(?P<before>://[^\s/:@\"']{1,100}:)(?!\[redacted:)[^\s/:@\"']{8,200}(?=@[^\s/@])")
_PEM: Final = "-----BEGIN "
_PRIVATE_KEY: Final = re.compile(
    r"(?P<before>)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[\s\S]{1,20000}?-----END [A-Z0-9 ]{1,60}-----"
)
_KEY_BEGUN: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]{0,40}\Z|[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}(?:-{0,4}\Z|-----(?![\s\S]*?-----END [A-Z0-9 ]{1,60}-----)))"
)
_LONGEST_KEY: Final = 20_000
_TOKEN: Final = "".join(map(chr, range(0x21, 0x7F))) + "\x1b"
"""What a token that may go on is made of. Anything else ends one: text in scripts without spaces is not held back."""


@final
class Redactor:
    """``environ``: read at every text, because a notebook sets keys while it runs."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._known: dict[str, str] = {}
        self._forms: tuple[tuple[str, str, re.Pattern[str]], ...] = ()

    def text(self, text: str) -> str:
        """The text with ``[redacted:NAME]`` in place of every secret. Idempotent."""
        for form, name, pattern in self._secrets():
            if form in text:
                text = _replaced(pattern, name, text)
        if _PEM in text:
            text = _replaced(_PRIVATE_KEY, "private-key", text)
        for name, hint, pattern in _COMPILED:
            if hint in text:
                text = _replaced(pattern, name, text)
        return _replaced(_PASSWORD, "url-password", text) if "://" in text else text

    def settled(self, text: str) -> int:
        """How much of the text, from its start, no further text can make part of a secret."""
        end = len(text)
        begun = text.rfind(_PEM)
        if begun >= 0 and len(text) - begun < _LONGEST_KEY and _KEY_BEGUN.match(text, begun):
            end = begun
        spread = [(form, pattern) for form, _, pattern in self._secrets() if form.strip(_TOKEN)]
        end = min([end, *(len(text) - _overlap(text, form) for form, _ in spread)])
        return _between_tokens(end, text, [_PRIVATE_KEY, *(pattern for _, pattern in spread)])

    def _secrets(self) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
        """Form, name and pattern of every value known, the longest form first, so that a part never hides the whole."""
        new = {value: name for value, name in secret_values(self._environ).items() if value not in self._known}
        if new:
            self._known = {**self._known, **new}
            forms = {form: name for value, name in self._known.items() for form in _forms(value)}
            longest_first = sorted(forms.items(), key=lambda item: (-len(item[0]), item[0]))
            self._forms = tuple((form, name, _pattern(re.escape(form))) for form, name in longest_first)
        return self._forms


def _pattern(what: str) -> re.Pattern[str]:
    """What is looked for, as a whole token; marks that stand there already are stepped over."""
    return re.compile(rf"{_MARK}|{_START}{what}{_END}")


_COMPILED: Final = tuple((name, hint, _pattern(shape)) for name, hint, shape in _SHAPES)


def _replaced(pattern: re.Pattern[str], name: str, text: str) -> str:
    def mark(found: re.Match[str]) -> str:
        before = found["before"]
        return found[0] if before is None else f"{before}[redacted:{name}]"

    return pattern.sub(mark, text)


def _between_tokens(end: int, text: str, patterns: Sequence[re.Pattern[str]]) -> int:
    """The last place up to ``end`` that cuts neither a token nor a match: a secret with white space in it must not be cut in two."""
    spans = sorted((found.span() for pattern in patterns for found in pattern.finditer(text)), reverse=True)
    while True:
        cut = len(text[:end].rstrip(_TOKEN))
        cut = min([cut, *(start for start, stop in spans if start < cut < stop)])
        if cut == end:
            return end
        end = cut


def _forms(value: str) -> Iterator[str]:
    """A value as code prints it: as it is, inside JSON, inside a Python literal, in a URL, in HTML."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
    yield quote_plus(value)
    yield html.escape(value)


def _overlap(text: str, form: str) -> int:
    """The length of the longest end of the text that the form begins with."""
    longest = min(len(text), len(form))
    return next((length for length in range(longest, 0, -1) if text.endswith(form[:length])), 0)


def install(seams: Seams, environ: Mapping[str, str] = os.environ) -> Undo:
    """Take secrets out of what a composition logs, sends and shows. Returns the undo.

    Raises:
        ValueError: it is installed already.
    """
    redactor = Redactor(environ)
    return seams.redactions.register("secrets", redactor.text, redactor.settled)
