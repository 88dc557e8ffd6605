"""What counts as a plan: the argument of ``exit_plan_mode`` (plan-mode.md, check 4).

The CommonMark parser decides, not a pattern, so a heading is a heading exactly where the person who reviews sees one.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from plan_mode_nb.plan.visible import has_ink, visible_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TITLE_LENGTH = 80
"""Code points a title may have; a longer one ends in an ellipsis."""

_SEND = "Call exit_plan_mode again with `plan` set to the complete plan as markdown: a first line `# Title`, then the plan itself."
_HEADING_LINE = re.compile(r" {0,3}#")
_BARE_CR = re.compile(r"\r(?!\n)")
_WRITTEN_OUT = ("text", "text_special", "code_inline")


class PlanTextError(ValueError):
    """The argument is not a plan. The message is for the model and says exactly what to send instead."""


class Plan(NamedTuple):
    """A plan as submitted: ``text`` is the argument unchanged, ``title`` one visible line of at most 80 code points."""

    title: str
    text: str


def parse_plan(text: object) -> Plan:
    """Read the ``plan`` argument.

    Accepted before the heading: a byte order mark, blank lines, CRLF line ends, up to three spaces.

    Raises:
        PlanTextError: not a string, blank, not opened by an ATX level-1 heading with a visible title, or nothing after it.
    """
    if not isinstance(text, str):
        raise PlanTextError(f"`plan` must be a string of markdown, not {_kind(text)}. {_SEND}")
    return _parse(text)


@functools.lru_cache(maxsize=4)  # a submission is parsed by its check, for its call's title and for its card's
def _parse(text: str) -> Plan:
    if not has_ink(text):
        raise PlanTextError(f"`plan` is empty. {_SEND}")
    # A bare carriage return is shown as a mark, so here too it is no line end.
    source = _BARE_CR.sub("␍", text.removeprefix("\ufeff"))
    references: dict[str, Any] = {}
    tokens = _parser().parse(source, references)
    heading = _first_heading(tokens, source)
    children: list[Token] = []
    _parser().inline.parse(tokens[1].content, _parser(), references, children)
    written = _as_text(children)
    if not has_ink(written):
        raise PlanTextError(f"The plan's first heading has no visible title. {_SEND}")
    if heading.map is None or not has_ink("".join(_lines(source)[heading.map[1] :]).replace("␍", "")):
        raise PlanTextError(f"The plan is only a title; its steps are missing. {_SEND}")
    return Plan(_bounded(visible_line(written)), text)


@functools.cache
def _parser() -> MarkdownIt:
    """CommonMark's block structure alone: only the title's inline markup is ever needed, and plans can be long."""
    from markdown_it import MarkdownIt  # imported when first used: loading the extension must stay quick

    return MarkdownIt("commonmark", {"html": False}).disable(["inline", "text_join"])


def _first_heading(tokens: list[Token], source: str) -> Token:
    first = tokens[0] if tokens else None
    if first is None:
        raise PlanTextError(f"`plan` shows nothing when rendered. {_SEND}")
    if first.type == "heading_open" and first.tag == "h1" and first.markup == "#":
        # A link definition above the heading leaves no token, but it is a block and comes first all the same.
        line, _ = first.map or [0, 0]
        if has_ink("".join(_lines(source)[:line])):
            raise PlanTextError(f"The plan must start with its heading; something stands before it. {_SEND}")
        return first
    raise PlanTextError(f"{_why_not(first, source)} {_SEND}")


def _why_not(first: Token, source: str) -> str:
    if first.type == "heading_open" and first.markup in ("=", "-"):
        return "The plan's title must be written as `# Title`, not underlined."
    if first.type == "heading_open":
        return f"The plan starts with a level {first.tag[1:]} heading; it must be level 1, one `#`."
    if first.type in ("fence", "code_block"):
        return "The plan starts with a code block, or is indented by four spaces or more."
    if first.type == "hr":
        return "The plan starts with `---`; leave out front matter and rules before the title."
    if _HEADING_LINE.match(source.lstrip("\r\n")):
        return "The plan's `#` needs a space and a title after it."
    return "The plan does not start with a heading."


def _as_text(tokens: list[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in _WRITTEN_OUT:
            parts.append(token.content)
        elif token.type == "image":
            parts.append(_as_text(token.children or []))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


def _bounded(title: str) -> str:
    if len(title) <= TITLE_LENGTH:
        return title
    return title[: TITLE_LENGTH - 1].rstrip() + "…"


def _lines(source: str) -> list[str]:
    """Lines as the parser counts them (no bare carriage returns are left), so that a token's map points into them."""
    return source.replace("\r\n", "\n").split("\n")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
