"""Markdown that stays markdown, made inert: for ``text/markdown`` and for transcripts, which somebody else's renderer will show.

Where we render, ``markdown.py`` decides. Where we do not, raw HTML would be HTML and an image would be fetched on opening the file.
So both are escaped, outside code where that can be told apart, and the result is parsed again to prove that none is left.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from plan_mode_nb.render.html import unix_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LIMIT = 100_000
"""Characters up to which code is told apart; in a longer text that has HTML or images they are escaped everywhere."""

# An autolink is no tag in any reading, unless a backtick in it would shift the code spans after it.
_TAG = r"<(?!(?:https?://|mailto:)[^\s<>`]*>)(?=[A-Za-z/!?])"
_ACTIVE = re.compile(rf"{_TAG}|!(?=\[)")
_MARKS = re.compile(rf"\\.|`+|{_TAG}|!(?=\[)", re.DOTALL)
_FENCE = re.compile(r"`{3,}")
_HTML_KINDS = {"html_block", "html_inline", "image"}


def inert_markdown(markdown: str) -> str:
    """``markdown`` with hiding characters made visible, and raw HTML and images escaped. Text that has neither is unchanged."""
    source = unix_lines(markdown.removeprefix("\ufeff"))
    if not _ACTIVE.search(source):
        return source
    if len(source) <= LIMIT:
        escaped = _outside_code(source)
        if not any(_is_active(escaped, tables=tables) for tables in (True, False)):
            return escaped
    return source.replace("<", "&lt;").replace("![", "&#33;[")


def fenced(text: str, language: str = "") -> str:
    """``text`` as a fenced code block whose fence no line of it can close."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _outside_code(source: str) -> str:
    lines = source.split("\n")
    result: list[str] = []
    at = 0
    for start, end, is_code in _leaf_lines(source):
        result += [_ACTIVE.sub(_escaped, line) for line in lines[at:start]]
        result += lines[start:end] if is_code else _outside_spans("\n".join(lines[start:end])).split("\n")
        at = end
    return "\n".join([*result, *(_ACTIVE.sub(_escaped, line) for line in lines[at:])])


def _outside_spans(text: str) -> str:
    """Escape in one block of inline text, whose code spans pair up its backtick runs by length."""
    runs: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        runs.setdefault(len(run.group()), []).append(run.start())
    result: list[str] = []
    at = 0
    while (match := _MARKS.search(text, at)) is not None:
        found, end = match.group(), match.end()
        result += [text[at : match.start()], _escaped(match)]
        if found[0] == "`":
            same = runs.get(len(found), [])
            closing = bisect_left(same, end)
            if closing < len(same):
                result.append(text[end : same[closing] + len(found)])
                end = same[closing] + len(found)
        at = end
    return "".join([*result, text[at:]])


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if found == "<":
        return "\\<"
    return "!\\" if found == "!" else found


@functools.cache
def _parser(*, blocks_only: bool, html: bool, tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html})
    if tables:
        parser.enable("table")
    return parser.disable(["inline", "text_join"]) if blocks_only else parser


def _leaf_lines(source: str) -> list[tuple[int, int, bool]]:
    """Line ranges of code blocks (True) and of inline text (False), in order, none overlapping."""
    leaves: list[tuple[int, int, bool]] = []
    for token in _parser(blocks_only=True, html=False, tables=False).parse(source):
        if token.type in ("fence", "code_block", "inline") and token.map:
            leaves.append((token.map[0], token.map[1], token.type != "inline"))
    return leaves


def _is_active(markdown: str, *, tables: bool) -> bool:
    tokens = _parser(blocks_only=False, html=True, tables=tables).parse(markdown)
    return any(token.type in _HTML_KINDS or any(child.type in _HTML_KINDS for child in token.children or ()) for token in tokens)
