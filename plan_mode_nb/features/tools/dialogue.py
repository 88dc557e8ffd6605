"""A program that is spoken to while it runs: lines of JSON in both directions, its errors kept apart.

What it says is not to be believed: a line is bounded, and whatever is no object of JSON ends it. Started on the loop's own thread, because
what ends a confined program with its parent looks at the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections import deque
from typing import Any, Final, final

from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.features.tools.process import started

MAX_BYTES: Final = 64_000_000
"""Of lines that nobody has heard yet; figures travel in them."""
_STDERR_TAIL: Final = 4_000
_END_S: Final = 2.0


@final
class Dialogue(asyncio.SubprocessProtocol):
    """One program, from `open` to `close`."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self._line = bytearray()
        self._said: deque[tuple[dict[str, Any], int]] = deque()
        self._unheard = 0
        self._complaint = b""
        self._broken = ""
        self._news = asyncio.Event()
        self._exited = asyncio.Event()
        self._is_closed = False

    @classmethod
    async def open(cls, launch: Launch) -> Dialogue:
        """Start it. The launch is closed when the dialogue is, or now when it cannot start.

        Raises:
            OSError: it could not be started.
        """
        dialogue = cls(launch)
        try:
            await started(dialogue, launch)
        except BaseException:
            dialogue.close()
            raise
        return dialogue

    @property
    def ended(self) -> bool:
        """Whether nothing more will be said, because it ended or was ended."""
        return self._is_closed or bool(self._broken) or self._exited.is_set() or self._loop.is_closed()

    @property
    def why(self) -> str:
        """Why it ended, in words for the middle of a sentence; "" while it runs."""
        if self._broken:
            return self._broken
        status = None if self._transport is None else self._transport.get_returncode()
        if status is None:
            return "it was ended" if self._is_closed else ""
        last = self._complaint.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
        how = _signal_name(-status) if status < 0 else _signal_name(status - 128) if status > 128 else f"exit status {status}"
        return f"{how}: {last}" if last and status > 0 else how

    def say(self, line: dict[str, Any], *blobs: bytes) -> None:
        """Send one line, and bytes right behind it. Said into the void when it has ended."""
        pipe = None if self._transport is None or self.ended else self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(json.dumps(line).encode() + b"\n")
            for blob in blobs:
                pipe.write(blob)

    async def hear(self) -> dict[str, Any] | None:
        """The next line; None when it has ended without one."""
        while not self._said:
            if self.ended:
                return None
            self._news.clear()
            await self._news.wait()
        said, size = self._said.popleft()
        self._unheard -= size
        return said

    def close(self) -> None:
        """End it and everything in its process group; harmless when all of it is gone."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._transport is not None:
            if not self._exited.is_set():
                _kill(self._transport)
            with contextlib.suppress(RuntimeError):  # its loop has ended before it
                self._transport.close()
        self._news.set()
        self._launch.close()

    async def closed(self) -> None:
        """The same, and wait until it is gone, for a bounded time."""
        self.close()
        if self._transport is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._exited.wait(), _END_S)

    # -- asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Lines, or complaints."""
        if fd != 1:
            self._complaint = (self._complaint + data)[-_STDERR_TAIL:]
            return
        start = len(self._line)
        self._line += data
        while not self.ended and (end := self._line.find(b"\n", start)) >= 0:
            self._take(bytes(self._line[:end]))
            del self._line[: end + 1]
            start = 0
        if len(self._line) + self._unheard > MAX_BYTES:
            self._break("it sent more than is read at once")

    def process_exited(self) -> None:
        """The program itself has ended; what it left running may hold its pipes open."""
        self._exited.set()
        self._news.set()

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, dict):
            self._said.append((said, len(line)))
            self._unheard += len(line)
            self._news.set()
        else:
            self._break("it sent something that is no answer")

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        self.close()


def _kill(transport: asyncio.SubprocessTransport) -> None:
    """End the process group of a child. One whose end was seen elsewhere is left alone: its number may be another's by now."""
    pid = transport.get_pid()
    with contextlib.suppress(ChildProcessError, ProcessLookupError, PermissionError):
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            transport.kill()


def _signal_name(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"exit status {number + 128}"
