"""Emphasis beside Chinese, Japanese and Korean text.

CommonMark takes ``**`` between punctuation and a letter for no delimiter at all, which is right where words are set apart by
spaces and wrong where they are not: ``**「計画」**です`` must be bold. So a CJK character beside a run counts as a boundary,
the amendment that the markdown-cjk-friendly specification describes.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline


def emphasis(state: StateInline, silent: bool) -> bool:
    """The inline rule ``emphasis`` for ``*``, ``_`` and, in pairs, ``~``."""
    from markdown_it.rules_inline.state_inline import Delimiter

    marker = state.src[state.pos]
    if silent or marker not in "*_~":
        return False
    scanned = state.scanDelims(state.pos, marker != "_")
    if marker == "~" and scanned.length != 2:
        return False
    opens, closes = scanned.can_open, scanned.can_close
    if marker != "_":
        opens, closes = _flanks(state.src, state.pos, state.pos + scanned.length, opens, closes)
    for _ in range(1 if marker == "~" else scanned.length):
        token = state.push("text", "", 0)
        token.content = "~~" if marker == "~" else marker
        # A length of 0 switches off the rule of three, which strikethrough does not have.
        length = 0 if marker == "~" else scanned.length
        state.delimiters.append(Delimiter(ord(marker), length, len(state.tokens) - 1, -1, opens, closes))
    state.pos += scanned.length
    return True


def _flanks(src: str, start: int, end: int, opens: bool, closes: bool) -> tuple[bool, bool]:
    """Whether the run src[start:end] may open and may close, ``opens`` and ``closes`` being CommonMark's own verdict."""
    before = src[start - 1] if start else " "
    after = src[end] if end < len(src) else " "
    if before.isspace() or after.isspace():
        return opens, closes
    near_cjk = is_cjk(before) or is_cjk(after)
    return opens or near_cjk, closes or near_cjk


def is_cjk(char: str) -> bool:
    """Wide or half-width East Asian letters and punctuation; emoji are wide too, but no letters of a script."""
    return unicodedata.east_asian_width(char) in "WFH" and unicodedata.category(char) not in ("So", "Sk")
