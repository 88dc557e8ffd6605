"""Nothing hidden: what markdown's rendering would leave out is shown as source, where it stands.

CommonMark and GitHub's tables drop text without a trace: link definitions, cells beyond the header's columns, blocks nested past
the parser's limit. A model acts on all of the plan it wrote, so a person must be able to read all of it. Each top-level block is
compared, as a bag of characters that leave ink, with the source lines it came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token


def show_what_is_lost(state: StateCore) -> None:
    """Insert a ``source`` token after every block that does not show all of its lines, and for lines that no block shows.

    Runs right after the inline pass, while entities and escapes still carry their source.
    """
    lines = state.src.split("\n")
    result: list[Token] = []
    shown_to = 0
    for block in _blocks(state.tokens):
        start, end = block[0].map or (shown_to, shown_to)
        result.extend(_source(lines[shown_to:start]))
        result.extend(block)
        if _ink("\n".join(lines[start:end])) - _shown(block):
            result.extend(_source(lines[start:end]))
        shown_to = max(shown_to, end)
    result.extend(_source(lines[shown_to:]))
    state.tokens = result


def _blocks(tokens: list[Token]) -> Iterator[list[Token]]:
    """Top-level blocks, each with everything inside it."""
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _source(lines: list[str]) -> list[Token]:
    from markdown_it.token import Token

    text = "\n".join(lines).strip("\n")
    if not _ink(text):
        return []
    token = Token("source", "pre", 0)
    token.content, token.block = text, True
    return [token]


def _ink(text: str) -> Counter[str]:
    """What must not disappear. ASCII punctuation is markdown's own syntax; a task's mark and a list's number are counted."""
    return Counter(char for char in text.casefold() if char.isalnum() or (char > "\x7f" and not char.isspace()))


def _shown(block: Iterable[Token]) -> Counter[str]:
    shown: Counter[str] = Counter()
    for token in block:
        if token.children:
            shown += _shown_inline(token.children)
        elif token.type in ("fence", "code_block"):
            shown += _ink(token.content) + _ink(token.info)
        elif token.type == "list_item_open":
            shown += _ink(token.info)
    return shown


def _shown_inline(children: list[Token]) -> Counter[str]:
    shown: Counter[str] = Counter()
    automatic = False
    for token in children:
        if token.type == "link_open":
            automatic = token.info == "auto"
            shown += _ink(str(token.attrGet("href"))) if automatic else _target(token, "href")
        elif token.type == "link_close":
            automatic = False
        elif token.type == "image":
            shown += _shown_inline(token.children or []) + _target(token, "src")
        elif token.type == "text_special":
            shown += _ink(token.markup)
        elif not automatic:
            shown += _ink(token.content) + _ink(token.markup if token.type == "task" else "")
    return shown


def _target(token: Token, name: str) -> Counter[str]:
    """What a link or image writes itself: where it points, or the label whose definition (a line of its own) says so."""
    label = token.meta.get("label")
    if label is not None:
        return _ink(str(label))
    return _ink(str(token.attrGet(name) or "")) + _ink(str(token.attrGet("title") or ""))
