"""Folders that tools which read inside the kernel's process keep closed: what lies there would let a reader act as the user.

Folders are told by what they are, not by their names, so that no link, other spelling or mount leads in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct


class Closed(Struct, frozen=True):
    """``folders``: nothing below them is read, but for what lies below ``opened``. They need not exist. Paths are absolute."""

    folders: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()

    def keeps(self, path: str) -> bool:
        """Whether the path, which need not exist, leads to one of the folders or into it."""
        closed, opened = _identities(self.folders), _identities(self.opened)
        for each in _upwards(os.path.realpath(path)) if closed else ():
            if each in opened:
                return False
            if each in closed:
                return True
        return False

    def keeps_folder(self, path: str) -> bool:
        """Whether a folder is one of them, for a walk that has come here through folders which are not."""
        return _identity(path) in _identities(self.folders)

    def keeps_open_file(self, descriptor: int, path: str) -> bool:
        """Whether what was really opened at a path that is not kept is kept, because something was put in its way meanwhile."""
        try:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            place = os.path.realpath(path)
        return place != path and self.keeps(place)


def _identities(folders: Sequence[str]) -> set[tuple[int, int]]:
    return {found for folder in folders if (found := _identity(folder)) is not None}


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _upwards(path: str) -> Iterator[tuple[int, int]]:
    """The path and the folders around it, those that exist, from the inside out."""
    here = Path(path)
    for each in (here, *here.parents):
        if (found := _identity(str(each))) is not None:
            yield found


NOTHING: Final = Closed()
