"""Ending a wait from elsewhere."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import final


@final
class Wake:
    """Makes a blocked poll return at once. Callable from any thread and from a signal handler; never blocks or raises."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def __call__(self) -> None:
        # A full buffer means that a wake-up is already on its way; a closed socket, that nobody waits any more.
        with suppress(BlockingIOError, OSError):
            self._writer.send(b"\0")

    def fileno(self) -> int:
        """For ``select``: readable once it was called."""
        return self._reader.fileno()

    def clear(self) -> None:
        """Forget the calls so far."""
        with suppress(BlockingIOError):
            while len(self._reader.recv(4096)) == 4096:
                pass

    def close(self) -> None:
        """Let go; calls from now on do nothing."""
        self._reader.close()
        self._writer.close()
