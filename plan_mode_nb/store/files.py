"""Files that must not be half written: replaced whole, or appended to line by line with every batch all or none."""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from plan_mode_nb.exceptions import StoreError

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def read_bytes(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({reason(error)})") from error


def replace(path: Path, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
    """Put ``data`` in the place of a file, at once: a reader sees the old bytes or the new ones. A symbolic link stays one.

    ``data`` may come in pieces; what they raise is raised. ``mode``: the permissions of a new file; an existing one keeps its own.

    Raises:
        StoreError: it cannot be written; what it held is unchanged.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
    try:
        kept = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666 if mode is None else mode)
        with os.fdopen(handle, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        if kept is not None:
            temporary.chmod(kept)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise StoreError(f"{path} cannot be written ({reason(error)}); it is as it was") from error
    _sync_folder(target.parent)


def reason(error: OSError) -> str:
    """What went wrong, without the path: messages name it themselves."""
    return error.strerror or str(error)


def _sync_folder(folder: Path) -> None:
    """The new name survives a power cut only once its folder is on disk; systems that cannot do this (Windows) need not."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Appender:
    """Appends lines to one existing file. A batch is one write that has left the process when :meth:`write` returns, so it survives
    ``kill -9``; a batch that cannot be written whole is taken back.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path``, which must exist and be no symbolic link.

        Raises:
            StoreError: it cannot be opened.
        """
        self.path = path
        self._lock = threading.Lock()
        try:
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | _NO_FOLLOW | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise StoreError(f"{path} cannot be opened for writing ({reason(error)})") from error

    def write(self, lines: Sequence[str], *, sync: bool = False) -> None:
        """Append lines, all or none; ``sync``: on the disk too before this returns.

        Raises:
            StoreError: the disk is full or the file is gone; nothing was added.
        """
        data = "".join(f"{line}\n" for line in lines).encode()
        with self._lock:
            size = os.fstat(self._handle).st_size
            try:
                written = 0
                while written < len(data):
                    written += os.write(self._handle, data[written:])
                if sync:
                    os.fsync(self._handle)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._handle, size)
                raise StoreError(f"{self.path} cannot be written ({reason(error)}); free some space and try again") from error

    def sync(self) -> None:
        """Wait until everything written is on the disk.

        Raises:
            StoreError: the disk refused.
        """
        with self._lock:
            try:
                os.fsync(self._handle)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be brought to the disk ({reason(error)})") from error

    @property
    def is_gone(self) -> bool:
        """Whether somebody deleted the file, or put another in its place, while it was open here."""
        try:
            there = os.lstat(self.path)
        except FileNotFoundError:
            return True
        here = os.fstat(self._handle)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def fileno(self) -> int:
        """The open file's descriptor, for a lock."""
        return self._handle

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1


def prepare_folder(folder: Path) -> None:
    """Make a private folder, or make an existing one private.

    Raises:
        StoreError: it cannot be made, or it is a link, a file, or somebody else's.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
            raise StoreError(f"{folder} must be a folder of your own, because conversations are kept there; move it out of the way")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be used ({reason(error)}); set JUPYTER_RUNTIME_DIR to one that can") from error
