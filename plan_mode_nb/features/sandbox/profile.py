"""What may be written, seen and reached by one program: the same profile for every backend, read from the file system at each launch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

_GIT: Final = ".git"
_DEPTH, _FOLDERS = 3, 400
"""How deep, and in how many folders, repositories are looked for below the workspace."""
_NOT_ENTERED: Final = frozenset({_GIT, "node_modules", "__pycache__", ".ipynb_checkpoints"})


class Grounds(Struct, frozen=True):
    """Where a notebook's agent works: what every profile is made from. Paths are absolute.

    ``root``: the workspace. ``network``: whether a confined program may use it. ``home``: the person's own folder. ``hidden``: folders of
    which nothing is shown (connection files and journals lie there). ``shown``: what stays readable wherever it lies. ``trusted``: folders
    that code outside the sandbox is loaded from.
    """

    root: Path
    home: Path
    network: bool = False
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    trusted: tuple[Path, ...] = ()


class Profile(Struct, frozen=True):
    """One launch. Paths are real ones, without links. ``writes``: whether ``root`` may be written, but for ``guarded`` below it."""

    root: Path
    writes: bool
    network: bool
    guarded: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()


def profile_of(grounds: Grounds, *, writes: bool) -> Profile:
    """The profile for a launch now."""
    root = _real(grounds.root)
    return Profile(
        root,
        writes,
        grounds.network,
        guarded=tuple(_guarded(root, grounds)) if writes else (),
        hidden=tuple(real for path in grounds.hidden if (real := _real(path)).is_dir()),
        shown=tuple(real for path in grounds.shown if (real := _real(path)).exists()),
    )


def is_whole_system(grounds: Grounds) -> bool:
    """Whether the workspace is the root of the file system: then there is nothing outside it that could be kept from writing."""
    root = _real(grounds.root)
    return root == root.parent


def _guarded(root: Path, grounds: Grounds) -> Iterator[Path]:
    """What lies in the workspace and is trusted outside the sandbox, so that writing it would be a way out.

    Repositories (hooks and configuration run with the person's next git command), the environments that kernels load, and, where the
    workspace holds the person's own folder, the hidden files there (shells and Jupyter run them).
    """
    yield from _repositories(root)
    for path in map(_real, grounds.trusted):
        if path != root and path.is_relative_to(root) and path.exists():
            yield path
    home = _real(grounds.home)
    if home.is_relative_to(root):
        yield from (_real(Path(entry.path)) for entry in _listed(home) if entry.name.startswith(".") and not entry.is_symlink())


def _repositories(root: Path) -> Iterator[Path]:
    """Every ``.git`` near the top. A link is followed: what it leads to is the repository."""
    folders, seen = [(root, 0)], 0
    while folders and seen < _FOLDERS:
        folder, depth = folders.pop(0)
        seen += 1
        for entry in _listed(folder):
            if entry.name == _GIT:
                real = _real(Path(entry.path))
                if real != root and real.is_relative_to(root) and real.exists():
                    yield real
            elif depth < _DEPTH and entry.name not in _NOT_ENTERED and _is_folder(entry):
                folders.append((Path(entry.path), depth + 1))


def _listed(folder: Path) -> Sequence[os.DirEntry[str]]:
    """The entries in order of name; none where the folder cannot be read, since then nothing in it can be written either."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return ()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
