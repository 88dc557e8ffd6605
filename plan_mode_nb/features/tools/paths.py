"""Paths as the model writes them and as it reads them: relative to the workspace where they lie in it."""

from __future__ import annotations

import errno
import os
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from plan_mode_nb.agent.tools import ToolError
from plan_mode_nb.features.tools.closed import NOTHING, Closed


class Workspace(Struct, frozen=True):
    """``root``: the absolute folder that relative paths start from. Reading elsewhere is allowed, but for what is ``closed``."""

    root: Path
    closed: Closed = NOTHING

    def find(self, path: str) -> Path:
        """The absolute path that the model means. Need not exist.

        Raises:
            ToolError: it is no path at all.
        """
        if not path.strip():
            raise ToolError("the path is empty; send one relative to the workspace", code="BAD_ARGUMENTS")
        if "\0" in path:
            raise ToolError("the path holds a NUL character; send one without", code="BAD_ARGUMENTS")
        try:
            return self.root / Path(path).expanduser()
        except RuntimeError:
            raise ToolError(f"{path!r} names a home folder that does not exist; send the whole path", code="BAD_ARGUMENTS") from None

    def show(self, path: Path) -> str:
        """A path for the model: with slashes, relative inside the workspace, absolute outside. Bytes that are no UTF-8 become ``\\x…``."""
        plain = os.path.abspath(path)
        root = os.path.abspath(self.root)
        inside = plain == root or plain.startswith(root.rstrip(os.sep) + os.sep)
        text = os.path.relpath(plain, root) if inside else plain
        return os.fsencode(text.replace(os.sep, "/")).decode("utf-8", "backslashreplace")


def refused(shown: str) -> ToolError:
    """What is closed is not read, whatever the sandbox mode is."""
    return ToolError(
        f"{shown} was not read: it belongs to what Jupyter keeps to itself, such as the keys of running kernels; ask the user for what you "
        "need of it",
        code="CLOSED",
    )


def unreadable(shown: str, path: Path, error: OSError) -> ToolError:
    """A file system's refusal as a sentence for the model."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            near = _near(path)
            return ToolError(f"{shown} does not exist" + (f"; did you mean {near}?" if near else "; find it with glob"), code="NOT_FOUND")
        case errno.ELOOP:
            return ToolError(f"{shown} is a symbolic link that leads back to itself; read another file", code="UNREADABLE")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{shown} may not be read: permission denied", code="UNREADABLE")
        case errno.ENAMETOOLONG:
            return ToolError("the path is longer than the file system allows; send a shorter one", code="BAD_ARGUMENTS")
        case _:
            return ToolError(f"{shown} could not be read: {error.strerror or error}", code="UNREADABLE")


def _near(path: Path) -> str:
    """Names in the same folder that look like the missing one."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return ""
    return ", ".join(os.fsencode(name).decode("utf-8", "backslashreplace") for name in get_close_matches(path.name, names, 3, 0.7))
