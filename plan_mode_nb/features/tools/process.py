"""One program from start to end: bounded output, bounded time, and nothing of it left behind.

Started on the loop's own thread, because what ends a confined program with its parent looks at the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from plan_mode_nb.agent.confinement import Launch

HEAD_BYTES: Final = 2_000_000
TAIL_BYTES: Final = 1_000_000
_CHUNK: Final = 65_536
_DRAIN_S: Final = 0.5
"""How long output is waited for once the program itself has ended: what it left running may hold the pipe open for ever."""
_GRACE_S: Final = 0.4
"""Between asking a program to end and ending it."""
Ending = Literal["exited", "late", "stopped"]


@dataclass(frozen=True)
class Ran:
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


async def run(launch: Launch, *, seconds: float, given: bytes = b"") -> Ran:
    """Run a launch to its end, its two output streams as one. ``given``: its standard input.

    Raises:
        OSError: it could not be started.
        asyncio.CancelledError: cancelled again while it was being ended; it has been killed.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(launch.environ),
            cwd=launch.folder,
            start_new_session=True,
        )
        output = _Output()
        reading = asyncio.ensure_future(_read(process, output))
        try:
            ending = await _ended(process, given, seconds)
            with contextlib.suppress(asyncio.CancelledError):  # it stays pending on the task, and what was done is told all the same
                await asyncio.wait([reading], timeout=_DRAIN_S)
        finally:
            if process.returncode is None or not reading.done():
                _signal(process, signal.SIGKILL)
            reading.cancel()
        status = await process.wait()
        return Ran(ending, status, bytes(output.head), output.left_out, output.tail)
    finally:
        launch.close()


async def _ended(process: asyncio.subprocess.Process, given: bytes, seconds: float) -> Ending:
    """Wait for the program; end it when its time is over or nobody waits for it any more."""
    ending: Ending = "exited"
    feeding = asyncio.ensure_future(_feed(process, given))
    waiting = asyncio.ensure_future(process.wait())
    try:
        done, _ = await asyncio.wait([waiting], timeout=seconds)
        ending = "exited" if done else "late"
    except asyncio.CancelledError:
        ending = "stopped"
    finally:
        feeding.cancel()
    if ending != "exited":
        _signal(process, signal.SIGTERM)
        await asyncio.wait([waiting], timeout=_GRACE_S)
        _signal(process, signal.SIGKILL)
        await asyncio.wait([waiting], timeout=_GRACE_S)
    return ending


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended without reading all, which is its own business
        pipe.write(given)
        await pipe.drain()
        pipe.close()


async def _read(process: asyncio.subprocess.Process, output: _Output) -> None:
    while process.stdout is not None and (data := await process.stdout.read(_CHUNK)):
        output.push(data)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To the program and everything in its process group; harmless when all of it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
