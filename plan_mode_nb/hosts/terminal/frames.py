"""Text of others in a frame: every row on the screen begins with a bar, so that none of it can pass for a prompt."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from plan_mode_nb.plan.visible import visible

BAR = "│ "
RULE = "─"
NARROWEST = 20
_TAB = "    "


def framed(text: str, width: int) -> str:
    """``text`` with hiding characters made visible, in rows of at most ``width`` columns, a bar before each."""
    lines = visible(text.removeprefix("\ufeff")).replace("\r\n", "\n").removesuffix("\n").split("\n")
    room = max(width, NARROWEST) - len(BAR)
    return "\n".join((BAR + row).rstrip() for line in lines for row in _rows(line.replace("\t", _TAB), room))


def rule(title: str, width: int) -> str:
    """A line across the screen with a title in it; ``title`` is one visible line."""
    columns = max(width, NARROWEST)
    words = next(_rows(title, columns - 8))
    return f"{RULE * 2} {words} ".ljust(columns - _columns(words) + len(words), RULE) if words else RULE * columns


def _rows(line: str, room: int) -> Iterator[str]:
    """A line cut into what fits, behind a space where one is in the second half of the row."""
    start, used, space = 0, 0, -1
    for at, char in enumerate(line):
        columns = _columns(char)
        if used + columns > room:
            cut = space + 1 if space - start >= room // 2 else at
            yield line[start:cut]
            start, used, space = cut, _columns(line[cut:at]), -1
        used += columns
        if char == " ":
            space = at
    yield line[start:]


def _columns(text: str) -> int:
    """Columns of a terminal that the text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
