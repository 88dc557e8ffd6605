"""Who still writes a file: an advisory lock that ends with its process, so that a killed kernel's journal is known to be free.

Windows needs none: it refuses to rename or delete a file that is open elsewhere, and that refusal is what is looked for.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def lock(handle: int) -> None:
    """Mark an open file as written by this process until it closes it or dies."""
    if sys.platform != "win32":
        # A file system without locks refuses; is_locked then says that every file there is in use, so none is ever removed by mistake.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


def is_locked(path: Path) -> bool:
    """Whether a running process (or this one) writes the file. A file that is gone is written by nobody."""
    try:
        _claim(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _claim(path: Path) -> None:
    """Take the file for a moment; OSError where somebody else has it."""
    if sys.platform == "win32":
        os.rename(path, path)
    else:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(handle)
