"""Walking folders and matching paths. Symbolic links are listed and never entered, so no loop of links can hold a walk."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

Parts = tuple[str, ...]
SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".ipynb_checkpoints"})
"""Folders that are not entered, unless the walk begins in one. Neither is a virtual environment (a folder with ``pyvenv.cfg``)."""
MAX_ENTRIES: Final = 500_000
_MAX_ALTERNATIVES: Final = 64
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


class GlobError(ValueError):
    """A pattern that cannot be used; the message says what to send instead."""


class GlobPattern:
    """``*``, ``?``, ``[…]`` within a name, ``**`` for any number of folders, ``{a,b}`` for either; a slash at the end: folders only.

    Matching follows all ways at once, so no pattern takes more than (names of the path) x (names of the pattern).
    """

    def __init__(self, pattern: str) -> None:
        """Read a pattern of a path below a folder.

        Raises:
            GlobError: it is empty, absolute or leads upwards.
        """
        text = pattern.strip().replace(os.sep, "/")
        if text.startswith("/") or re.match(r"[A-Za-z]:", text) or ".." in text.split("/"):
            raise GlobError(f"the pattern {pattern!r} leaves the folder; send the folder as `path` and a pattern below it")
        self.folders_only = text.endswith("/")
        self._ways = [[_segment(name) for name in each.split("/") if name not in ("", ".")] for each in _alternatives(text)]
        if not all(self._ways):
            raise GlobError("the pattern is empty; send one such as **/*.py")

    def matches(self, parts: Parts) -> bool:
        """Whether the whole path matches."""
        return any(len(way) in _places(way, parts) for way in self._ways)

    def may_hold(self, parts: Parts) -> bool:
        """Whether something below this folder could match."""
        return any(min(_places(way, parts), default=len(way)) < len(way) for way in self._ways)


_Segment = re.Pattern[str] | None
"""One name's pattern; None for ``**``."""


def _segment(name: str) -> _Segment:
    return None if name == "**" else re.compile(fnmatch.translate(name))


def _alternatives(pattern: str) -> list[str]:
    """The patterns that braces stand for; past a bound the rest of the braces are taken as they are written."""
    ready: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        found = _BRACES.search(text)
        if found is None or len(ready) + len(waiting) > _MAX_ALTERNATIVES:
            ready.append(text)
        else:
            waiting += [text[: found.start()] + each + text[found.end() :] for each in found[1].split(",")]
    return ready


def _places(way: list[_Segment], parts: Parts) -> set[int]:
    """How far along the pattern each way of reading ``parts`` ends."""
    places = _skipping(way, {0})
    for name in parts:
        onward = {place + 1 for place in places if place < len(way) and (each := way[place]) is not None and each.match(name)}
        places = _skipping(way, onward | {place for place in places if place < len(way) and way[place] is None})
    return places


def _skipping(way: list[_Segment], places: set[int]) -> set[int]:
    """``**`` may also stand for no folder at all."""
    for place in range(len(way)):
        if place in places and way[place] is None:
            places.add(place + 1)
    return places


class Entry(Struct, frozen=True):
    """One thing below the start. ``parts``: its names from there."""

    parts: Parts
    path: str
    is_folder: bool
    is_file: bool
    """A regular file itself, no link to one."""


class Walk:
    """Everything below a folder, in the order of its names. Afterwards it knows how many folders were ``unreadable``, and whether it is
    ``complete``.
    """

    def __init__(
        self,
        start: str,
        *,
        spent: Callable[[], bool],
        descend: Callable[[Parts], bool] = lambda parts: True,
        enter: Callable[[str], bool] = lambda path: True,
    ) -> None:
        """``spent``: asked at each entry, True ends the walk. ``descend``, ``enter``: whether to enter a folder, by its names from the
        start and by its path.
        """
        self._start = start
        self._spent = spent
        self._descend = descend
        self._enter = enter
        self.unreadable = 0
        self.complete = True

    def __iter__(self) -> Iterator[Entry]:
        stack = [iter(self._listed(self._start, ()))]
        seen = 0
        while stack:
            entry = next(stack[-1], None)
            if entry is None:
                stack.pop()
                continue
            seen += 1
            if seen > MAX_ENTRIES or self._spent():
                self.complete = False
                return
            yield entry
            if entry.is_folder and entry.parts[-1] not in SKIPPED and self._descend(entry.parts) and self._enter(entry.path):
                stack.append(iter(self._listed(entry.path, entry.parts)))

    def _listed(self, folder: str, parts: Parts) -> list[Entry]:
        try:
            with os.scandir(folder) as found:
                entries = [_entry(each, parts) for each in found]
        except OSError:
            self.unreadable += 1
            return []
        if parts and any(entry.parts[-1] == "pyvenv.cfg" for entry in entries):
            return []
        return sorted(entries, key=lambda entry: entry.parts)


def _entry(found: os.DirEntry[str], parts: Parts) -> Entry:
    try:
        folder, file = found.is_dir(follow_symlinks=False), found.is_file(follow_symlinks=False)
    except OSError:  # it went away meanwhile
        folder = file = False
    return Entry((*parts, found.name), found.path, folder, file)
