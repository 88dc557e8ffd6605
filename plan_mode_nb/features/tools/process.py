"""One program from start to end: bounded output, bounded time, and nothing of it left behind.

Started on the loop's own thread, because what ends a confined program with its parent looks at the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from typing import Any, Final, Literal

from msgspec import Struct

from plan_mode_nb.agent.confinement import Launch

HEAD_BYTES: Final = 2_000_000
TAIL_BYTES: Final = 1_000_000
_DRAIN_S: Final = 0.5
"""How long output is waited for once the program itself has ended: what it left running may hold the pipe open for ever."""
_GRACE_S: Final = 0.4
"""Between asking a program to end and ending it."""
Ending = Literal["exited", "late", "stopped"]


class Ran(Struct, frozen=True):
    """What a program did. ``status``: its exit status, negative for a signal. ``left_out``: bytes of output between head and tail.

    ``late``: its time was over; ``stopped``: the caller was cancelled, and the cancellation stays pending on the task.
    """

    ending: Ending
    status: int
    head: bytes
    left_out: int = 0
    tail: bytes = b""


class _Output:
    """The first and the last bytes of a stream."""

    def __init__(self) -> None:
        self.head = bytearray()
        self._tail: deque[bytes] = deque()
        self._held = 0
        self.left_out = 0

    def push(self, data: bytes) -> None:
        """Keep more bytes, letting the oldest go that are in neither end."""
        room = HEAD_BYTES - len(self.head)
        self.head += data[:room]
        if len(data) > room:
            self._tail.append(data[max(room, 0) :])
            self._held += len(self._tail[-1])
        while self._tail and self._held - len(self._tail[0]) >= TAIL_BYTES:
            gone = len(self._tail.popleft())
            self._held -= gone
            self.left_out += gone

    @property
    def tail(self) -> bytes:
        """What is kept of the end."""
        return b"".join(self._tail)


class _Watch(asyncio.SubprocessProtocol):
    """What is heard of a running program. Its end is heard by itself: what it left running may hold its output open for ever."""

    def __init__(self) -> None:
        self.output = _Output()
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.silent: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """More output."""
        self.output.push(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Nobody has the output open any more; or the program reads no input, which is its own business."""
        if fd == 1 and not self.silent.done():
            self.silent.set_result(None)

    def process_exited(self) -> None:
        """The program itself has ended."""
        if not self.ended.done():
            self.ended.set_result(None)


async def run(launch: Launch, *, seconds: float, given: bytes = b"") -> Ran:
    """Run a launch to its end, its two output streams as one. ``given``: its standard input.

    Raises:
        OSError: it could not be started.
        asyncio.CancelledError: cancelled again while it was being ended; it has been killed.
    """
    try:
        watch = _Watch()
        transport = await started(watch, launch, stderr=asyncio.subprocess.STDOUT)
        try:
            _feed(transport, given)
            ending = await _ended(transport.get_pid(), watch, seconds)
            with contextlib.suppress(asyncio.CancelledError):  # it stays pending on the task, and what was done is told all the same
                await asyncio.wait([watch.silent], timeout=_DRAIN_S)
        finally:
            if not (watch.ended.done() and watch.silent.done()):
                _signal(transport.get_pid(), signal.SIGKILL)
            transport.close()
        status = transport.get_returncode()
        return Ran(
            ending, -signal.SIGKILL if status is None else status, bytes(watch.output.head), watch.output.left_out, watch.output.tail
        )
    finally:
        launch.close()


async def started(
    protocol: asyncio.SubprocessProtocol, launch: Launch, *, stderr: int = asyncio.subprocess.PIPE
) -> asyncio.SubprocessTransport:
    """Start a launch, the first of a process group of its own.

    Raises:
        OSError: it could not be started.
        asyncio.CancelledError: nobody waits for it any more; whatever had started of it is ended. What confines a program is several
            processes from its first moments, and ending one alone leaves the rest waiting for ever.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: protocol, *launch.argv, stderr=stderr, env=dict(launch.environ), cwd=launch.folder, start_new_session=True
        )
    )
    try:
        transport, _ = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end)
        await asyncio.wait([starting])  # cancelled again, it is ended all the same, a moment later
        raise
    return transport


def _end(starting: asyncio.Future[Any]) -> None:
    """End what has started meanwhile, if it has."""
    if not starting.cancelled() and starting.exception() is None:
        transport, _ = starting.result()
        _signal(transport.get_pid(), signal.SIGKILL)
        transport.close()


async def _ended(pid: int, watch: _Watch, seconds: float) -> Ending:
    """Wait for the program; end it when its time is over or nobody waits for it any more."""
    try:
        done, _ = await asyncio.wait([watch.ended], timeout=seconds)
        if done:
            return "exited"
        ending: Ending = "late"
    except asyncio.CancelledError:
        ending = "stopped"
    _signal(pid, signal.SIGTERM)
    await asyncio.wait([watch.ended], timeout=_GRACE_S)
    _signal(pid, signal.SIGKILL)
    await asyncio.wait([watch.ended], timeout=_GRACE_S)
    return ending


def _feed(transport: asyncio.SubprocessTransport, given: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(given)
        pipe.close()


def _signal(pid: int, number: signal.Signals) -> None:
    """To the program and everything in its process group; harmless when all of it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
