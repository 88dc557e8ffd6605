"""Markdown that stays markdown, made inert: for ``text/markdown`` and for transcripts, which somebody else's renderer will show.

Where we render, ``markdown.py`` decides. Where we do not, raw HTML would be HTML and an image would be fetched on opening the file;
so outside code their first character is escaped. Text that has neither is returned unchanged.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from plan_mode_nb.plan.visible import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_ACTIVE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")
_MARKS = re.compile(r"\\.|`+|<(?=[A-Za-z/!?])|!(?=\[)", re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n")
_FENCE = re.compile(r"`{3,}")
LIMIT = 300_000


def inert_markdown(markdown: str) -> str:
    """``markdown`` with hiding characters made visible, and raw HTML and images escaped; code keeps its bytes.

    A text longer than 300,000 characters is escaped everywhere, code included: finding the code would take too long.
    """
    source = visible(markdown.removeprefix("\ufeff")).replace("\r\n", "\n")
    if not _ACTIVE.search(source):
        return source
    if len(source) > LIMIT:
        return _ACTIVE.sub(_escaped, source)
    lines = source.split("\n")
    result: list[str] = []
    at = 0
    for start, end in _code_lines(source):
        result += [*_without_code(lines[at:start]), *lines[start:end]]
        at = end
    return "\n".join([*result, *_without_code(lines[at:])])


def fenced(text: str, language: str = "") -> str:
    """``text`` as a fenced code block whose fence no line of it can close."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _without_code(lines: list[str]) -> list[str]:
    if not lines:
        return []
    # Code spans never reach past a paragraph; looking no further keeps this linear for many short ones.
    text = "\n".join(lines)
    cuts = [0, *(match.start() for match in _BLANK.finditer(text)), len(text)]
    return "".join(_without_spans(text[start:end]) for start, end in pairwise(cuts)).split("\n")


def _without_spans(text: str) -> str:
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
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(["inline", "text_join"])


def _code_lines(source: str) -> list[tuple[int, int]]:
    """The line ranges of code blocks, in order, none overlapping."""
    maps = [token.map for token in _parser().parse(source) if token.type in ("fence", "code_block") and token.map]
    return [(start, end) for start, end in maps]
