"""Characters that could hide or reorder what a person reads, made visible.

A plan is reviewed by reading it. Terminal escapes, a bare carriage return, bidirectional overrides and zero-width characters
let what is read differ from what the model reads back, so none of them may act: each becomes a mark that shows where it stood.
Joiners and variation selectors stay where a script or an emoji sequence really needs them.
"""

from __future__ import annotations

import re
import unicodedata

_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_KEPT = f"\r\n|{_FLAG}"
_HIDING = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u3164\ufeff\uffa0"  # zero width, or letters without a shape
    "\u061c\u200c-\u200f\u2028-\u202e\u2060-\u206f"  # joiners, marks, line separators, bidirectional controls
    "\ufe00-\ufe0f\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"  # variation selectors, specials, lone surrogates
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # format controls, tags, more selectors
)
_SUSPECT = re.compile(f"{_KEPT}|[{_HIDING}]")
_PLAIN = re.compile(r"[\t\n\x20-\x7e]*")

_JOINED_SCRIPTS = ((0x0600, 0x08FF), (0x0900, 0x0DFF), (0x1000, 0x109F), (0x1780, 0x18AF), (0xA840, 0xABFF), (0x10A00, 0x11FFF))
_DIRECTION_MARKS = "\u061c\u200e\u200f"
_BLANK_SHAPES = "\u2800"


def visible(text: str) -> str:
    """``text`` with every hiding character replaced by a mark; tabs, newlines and CRLF pairs stay. Idempotent.

    C0 controls and DEL become their control pictures (``␛``, ``␍``), anything else ``⟦U+202E⟧``.
    """
    if _PLAIN.fullmatch(text):
        return text
    return _SUSPECT.sub(_Marks(text).mark, text)


def may_hide(text: str) -> bool:
    """Whether any character is there about which :func:`visible` decides, perhaps by what stands around it."""
    return not _PLAIN.fullmatch(text) and _SUSPECT.search(text) is not None


def visible_line(text: str) -> str:
    """``text`` as one visible line: white space, newlines included, becomes single spaces."""
    return " ".join(visible(text).replace("\r\n", "\n").split())


def has_ink(text: str) -> bool:
    """Whether a reader sees anything: one letter, number, punctuation or symbol that has a shape."""
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _BLANK_SHAPES and not _SUSPECT.fullmatch(char) for char in text)


class _Marks:
    """Decides about each suspect of one text. Remembers the line it is in, so that a line of marks is looked at once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_end = -1
        self._rtl = False

    def mark(self, match: re.Match[str]) -> str:
        """What stands for a suspect: itself where it belongs to ordinary spelling, else a visible mark."""
        found = match.group()
        if len(found) > 1:
            return found
        code = ord(found)
        if code < 0x20:
            return chr(0x2400 + code)
        if code == 0x7F:
            return "␡"
        return found if self._belongs(found, match.start()) else f"⟦U+{code:04X}⟧"

    def _belongs(self, char: str, at: int) -> bool:
        """Whether the character at ``at`` is part of ordinary spelling there."""
        before = self._text[at - 1] if at else ""
        after = self._text[at + 1 : at + 2]
        if char in "\u200c\u200d":
            return _joins(before) and (_joins(after) or unicodedata.category(before) in ("Mn", "Mc"))
        if char in _DIRECTION_MARKS:
            return self._in_rtl_line(at)
        if char in "\ufe0e\ufe0f":
            return before != "" and (before in "0123456789#*" or (before > "\x7f" and unicodedata.category(before)[0] in "PS"))
        if "\ufe00" <= char <= "\ufe02" or "\U000e0100" <= char <= "\U000e01ef":
            return before != "" and (unicodedata.category(before) == "Sm" or _is_ideograph(before))
        return "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"

    def _in_rtl_line(self, at: int) -> bool:
        if at > self._line_end:
            start = self._text.rfind("\n", 0, at) + 1
            end = self._text.find("\n", at)
            self._line_end = end if end >= 0 else len(self._text)
            line = self._text[start : self._line_end]
            self._rtl = any(unicodedata.bidirectional(char) in ("R", "AL") for char in line if char not in _DIRECTION_MARKS)
        return self._rtl


def _joins(char: str) -> bool:
    if not char:
        return False
    if char == "\ufe0f" or (char > "\u200f" and unicodedata.category(char) in ("So", "Sk")):
        return True
    return unicodedata.category(char)[0] in "LM" and any(low <= ord(char) <= high for low, high in _JOINED_SCRIPTS)


def _is_ideograph(char: str) -> bool:
    return unicodedata.category(char) == "Lo" and unicodedata.east_asian_width(char) == "W"
