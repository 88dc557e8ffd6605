"""Markdown that stays markdown, made inert: for ``text/markdown`` and for transcripts, which somebody else's renderer will show.

Where we render, ``markdown.py`` decides. Where we do not, raw HTML would be HTML, an image would be fetched on opening the file, and a
link could run a script. So all three are escaped, outside code where that can be told apart, and the result is parsed again to prove that
none is left. Entities do it, never a backslash: one that stands behind a bare URL is read as a part of it.
"""

from __future__ import annotations

import functools
import html
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from plan_mode_nb.render.html import unix_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LIMIT = 100_000
"""Characters up to which code is told apart; in a longer text that has HTML or images they are escaped everywhere."""

_ENTITIES = {"<": "&lt;", "!": "&#33;", "(": "&#40;", ":": "&#58;"}
_FENCE_INFO = re.compile(r"(```|~~~).*[<>\"'&]")
# An autolink is no tag in any reading, unless a backtick in it would shift the code spans after it.
_TAG = r"<(?!(?:https?://|mailto:)[^\s<>`]*>)(?=[A-Za-z/!?])"
_ACTIVE = re.compile(rf"{_TAG}|!(?=\[)")
_LINKS = re.compile(r"(?<=\])[(:]")
_FENCE = re.compile(r"`{3,}")
_HTML_KINDS = {"html_block", "html_inline", "image"}
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_SAFE_SCHEME = re.compile(r"(https?|mailto):", re.IGNORECASE)
_HARMFUL = re.compile(r"(java|vb)script:|data:[\w.+-]*[/,;]", re.IGNORECASE)
_SQUEEZED = re.compile(r"[\s\x00-\x20\x7f-\xa0␀-␡]+")
# nbconvert puts a diagram's source into the page as HTML, and Lab draws it in its place.
_DIAGRAM = re.compile(r"^([\s>*+\-\d.)]*(?:`{3,}|~{3,})\s*)mermaid\b", re.IGNORECASE | re.MULTILINE)
# Lab writes a fence's info string into an attribute as it is.
_INFO = str.maketrans({"<": "‹", ">": "›", '"': "”", "'": "’", "&": "＆"})


def inert_markdown(markdown: str) -> str:
    """``markdown`` with hiding characters made visible, and raw HTML, images and harmful links escaped. Text that has none is unchanged.

    Where one link is harmful, no link of the text is left a link. Diagrams are left as their source, in which nothing is hidden.
    """
    source = _DIAGRAM.sub(r"\1diagram-mermaid", unix_lines(markdown.removeprefix("\ufeff")))
    has_links = _LINKS.search(source) is not None
    if not _ACTIVE.search(source) and not has_links and not _FENCE_INFO.search(source):
        return source
    if len(source) <= LIMIT:
        escaped = _outside_code(source, _ACTIVE)
        if has_links and _has_harmful_link(escaped):
            escaped = _outside_code(escaped, _LINKS)
        if not any(_is_active(escaped, tables=tables) for tables in (True, False)) and not _has_harmful_link(escaped, by_parsing=True):
            return escaped
    everywhere = source.replace("<", "&lt;").replace("![", "&#33;[")
    return _LINKS.sub(_escaped, everywhere) if _HARMFUL.search(_squeezed(source)) else everywhere


def fenced(text: str, language: str = "") -> str:
    """``text`` as a fenced code block whose fence no line of it can close."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _outside_code(source: str, active: re.Pattern[str]) -> str:
    lines = source.split("\n")
    result: list[str] = []
    at = 0
    for start, end, is_code, fence in _leaf_lines(source):
        result += [active.sub(_escaped, line) for line in lines[at:start]]
        if fence:
            before, markup, info = lines[start].partition(fence)
            lines[start] = before + markup + info.translate(_INFO)
        result += lines[start:end] if is_code else _outside_spans("\n".join(lines[start:end]), active).split("\n")
        at = end
    return "\n".join([*result, *(active.sub(_escaped, line) for line in lines[at:])])


def _outside_spans(text: str, active: re.Pattern[str]) -> str:
    """Escape in one block of inline text, whose code spans pair up its backtick runs by length."""
    runs: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        runs.setdefault(len(run.group()), []).append(run.start())
    result: list[str] = []
    at = 0
    marks = re.compile(rf"\\.|`+|{active.pattern}", re.DOTALL)
    while (match := marks.search(text, at)) is not None:
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
    """A match of one character as its entity; a longer one (a pair with a backslash, backticks) as it is."""
    found = match.group()
    return _ENTITIES.get(found, found)


@functools.cache
def _parser(*, blocks_only: bool, html: bool, tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html})
    if tables:
        parser.enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # what it refuses, another renderer may take
    return parser.disable(["inline", "text_join"]) if blocks_only else parser


def _leaf_lines(source: str) -> list[tuple[int, int, bool, str]]:
    """Line ranges of code blocks (True) and of inline text (False), in order, none overlapping, each with its fence if it has one."""
    leaves: list[tuple[int, int, bool, str]] = []
    for token in _parser(blocks_only=True, html=False, tables=False).parse(source):
        if token.type in ("fence", "code_block", "inline") and token.map:
            leaves.append((token.map[0], token.map[1], token.type != "inline", token.markup if token.type == "fence" else ""))
    return leaves


def _has_harmful_link(markdown: str, *, by_parsing: bool = False) -> bool:
    """Whether a link leads to more than a page or a letter. Renderers differ in what is a link, so its words alone count as one too."""
    if not by_parsing and _HARMFUL.search(_squeezed(markdown)):
        return True
    tokens = _parser(blocks_only=False, html=False, tables=True).parse(markdown)
    hrefs = [str(child.attrGet("href")) for token in tokens for child in token.children or () if child.type == "link_open"]
    return any(_SCHEME.match(href) and not _SAFE_SCHEME.match(href) for href in hrefs)


def _squeezed(markdown: str) -> str:
    """What is left of a text when entities are read and everything is dropped that a browser drops from an address."""
    return _SQUEEZED.sub("", html.unescape(markdown))


def _is_active(markdown: str, *, tables: bool) -> bool:
    tokens = _parser(blocks_only=False, html=True, tables=tables).parse(markdown)
    return any(token.type in _HTML_KINDS or any(child.type in _HTML_KINDS for child in token.children or ()) for token in tokens)
