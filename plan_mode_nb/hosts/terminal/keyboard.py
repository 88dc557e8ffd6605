"""What a person types at a prompt. A prompt can be taken back from elsewhere, and what was typed before it appeared answers nothing."""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import Final, final

from plan_mode_nb.hosts.terminal.growing import Write
from plan_mode_nb.hosts.wake import Wake

if sys.platform != "win32":
    import termios

LONGEST_LINE: Final = 4095
"""Bytes that a terminal passes on of one line; it drops the rest without a word."""
TOO_LONG: Final = "A terminal cuts a line this long; send it in several lines, pasted at once.\n"


class Withdrawn(Exception):
    """The prompt was taken back before it was answered."""


@final
class Keyboard:
    """Lines from a terminal. ``read`` is called on the main thread, ``withdraw`` from any."""

    def __init__(self, write: Write, fd: int | None = None) -> None:
        """``fd``: the terminal to read from; None: standard input, whatever it is when it is asked."""
        self._write = write
        self._fd = fd
        self._wake = Wake()
        self._withdrawn = threading.Event()

    @property
    def is_there(self) -> bool:
        """Whether somebody can type: a pipe or a file is nobody."""
        try:
            return os.isatty(self._terminal)
        except (OSError, ValueError, AttributeError):
            return False

    @property
    def _terminal(self) -> int:
        return sys.stdin.fileno() if self._fd is None else self._fd

    def start(self, withdrawn: threading.Event) -> None:
        """A prompt begins, to be ended by :meth:`withdraw` with the same ``withdrawn``. Keys pressed before it count no more."""
        self._withdrawn = withdrawn
        if sys.platform != "win32":
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    def withdraw(self, withdrawn: threading.Event) -> None:
        """End that prompt, whether it has begun or not."""
        withdrawn.set()
        self._wake()

    def read(self, prompt: str) -> str:
        """Print the prompt and wait for a line, without its end. Lines pasted together with it belong to it.

        Raises:
            EOFError: Ctrl-D on an empty line, or the terminal is gone.
            Withdrawn: see :meth:`withdraw`.
            KeyboardInterrupt: Ctrl-C, where it raises.
        """
        while True:
            self._write(prompt)
            lines = [self._line()]
            while self._is_ready(0):
                lines.append(self._line())
            if all(len(line) < LONGEST_LINE for line in lines):
                return b"".join(lines).decode("utf-8", "replace").removesuffix("\n")
            self._write(TOO_LONG)

    def close(self) -> None:
        """Let go of what wakes it."""
        self._wake.close()

    def _line(self) -> bytes:
        if sys.platform != "win32":
            self._is_ready(None)
        data = os.read(self._terminal, LONGEST_LINE + 1)
        if not data:
            self._write("\n")
            raise EOFError
        return data

    def _is_ready(self, seconds: float | None) -> bool:
        """Whether a line is there to read; waits for one, at most that long."""
        if sys.platform == "win32":
            return False
        wake, terminal = self._wake.fileno(), self._terminal
        while not self._withdrawn.is_set():
            ready, _, _ = select.select([terminal, wake], [], [], seconds)
            if wake not in ready:
                return bool(ready)
            self._wake.clear()
        self._write("\n")
        raise Withdrawn
