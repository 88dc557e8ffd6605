"""Passes over a parsed document: what markdown-it leaves unsafe, unhelpful or unsaid is settled here, before HTML is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_LINK = re.compile(r"https?://[^/]|mailto:[^?]", re.IGNORECASE)
_TASK = re.compile(r"\[([ xX])\][ \t]+")


def may_be_written(url: str) -> bool:
    """Whether a destination may be taken as one at all: an allowed scheme, or none. Others stay the characters they were."""
    return _LINK.match(url) is not None or (_SCHEME.match(url) is None and not url.startswith("//"))


def is_link(url: str) -> bool:
    """Whether a destination may become an ``href``: http, https, mailto or a fragment; never a path, which a page would resolve."""
    return _LINK.match(url) is not None or url.startswith("#")


def task_items(state: StateCore) -> None:
    """``[ ]`` and ``[x]`` at the start of a list item become disabled check boxes (GitHub's task lists)."""
    tokens = state.tokens
    for at in range(2, len(tokens)):
        inline = tokens[at]
        if not inline.children or tokens[at - 1].type != "paragraph_open" or tokens[at - 2].type != "list_item_open":
            continue
        first = inline.children[0]
        found = _TASK.match(first.content) if first.type == "text" else None
        if found is not None:
            first.content = first.content[found.end() :]
            box = _token("task", "input")
            box.markup = found.group(1)
            inline.children.insert(0, box)


def links_and_images(state: StateCore) -> None:
    """Links that may act keep their ``href``, the others show where they point; an image becomes its description and a link."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_safe(token.children))


def _safe(children: list[Token]) -> Iterable[Token]:
    opened: list[Token] = []
    for at, token in enumerate(children):
        if token.type == "link_open":
            opened.append(token)
            href = str(token.attrGet("href") or "")
            yield _link_open(href)
            if children[at + 1].type == "link_close":
                yield _text(href)
        elif token.type == "link_close":
            yield from _link_end(opened.pop())
        elif token.type == "image":
            yield from _image(token, inside_link=bool(opened))
        else:
            yield token


def _link_open(href: str) -> Token:
    if not is_link(href):
        return _token("span_open", "span", 1)
    token = _token("link_open", "a", 1)
    token.attrs = {"href": href, "rel": "noopener noreferrer"}
    if not href.startswith("#"):
        token.attrs["target"] = "_blank"
    return token


def _link_end(opened: Token) -> Iterable[Token]:
    """What follows a link's text: where it points when it cannot be followed, and its title, which else shows on hovering alone."""
    href, title = str(opened.attrGet("href") or ""), opened.attrGet("title")
    follows = is_link(href)
    if not follows and opened.info != "auto" and href:
        yield from _destination(href)
    yield _token("link_close", "a", -1) if follows else _token("span_close", "span", -1)
    if title and "label" not in opened.meta:
        yield _text(f" ({title})")


def _destination(url: str) -> Iterable[Token]:
    code = _token("code_inline", "code")
    code.content = url
    return _text(" "), code


def _image(token: Token, *, inside_link: bool) -> Iterable[Token]:
    """Nothing is fetched by looking at a plan: no image, remote or not, is loaded."""
    source = str(token.attrGet("src") or "")
    title = token.attrGet("title")
    words = _text("[image: " + " — ".join(part for part in (plain(token.children or []), str(title or "")) if part) + "]")
    if inside_link:
        return (words,)
    if not is_link(source):
        return (words, *_destination(source)) if source else (words,)
    return _link_open(source), words, _token("link_close", "a", -1)


def plain(tokens: list[Token]) -> str:
    """Inline tokens as the text a reader sees."""
    parts = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(plain(token.children or []))
        elif not token.nesting:
            parts.append(token.content)
    return "".join(parts)


def directions(state: StateCore) -> None:
    """Each block takes the direction of its own text.

    A list is directed as a whole (its markers stand on one side), a table's columns by its header row and each cell by itself.
    """
    lists = 0
    for at, token in enumerate(state.tokens):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            if not lists:
                token.attrSet("dir", "auto")
            lists += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists -= 1
        elif token.type in ("th_open", "td_open") or (token.type in ("paragraph_open", "heading_open") and not lists):
            token.attrSet("dir", "auto")
        elif token.type == "table_open" and _first_strong(state.tokens, at) in ("R", "AL"):
            token.attrSet("dir", "rtl")


def _first_strong(tokens: list[Token], at: int) -> str:
    """The bidirectional class of the first strong character of a table's header: ``L``, ``R``, ``AL``, or "" for none."""
    for token in tokens[at:]:
        if token.type == "thead_close":
            break
        for char in token.content if token.type == "inline" else "":
            if unicodedata.bidirectional(char) in ("L", "R", "AL"):
                return unicodedata.bidirectional(char)
    return ""


def _text(content: str) -> Token:
    token = _token("text", "")
    token.content = content
    return token


def _token(kind: str, tag: str, nesting: int = 0) -> Token:
    from markdown_it.token import Token

    return Token(kind, tag, nesting)  # type: ignore[arg-type]
