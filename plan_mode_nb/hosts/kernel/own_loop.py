"""Running a coroutine on the main thread while the kernel's event loop is already running this cell.

The kernel's own loop is never re-entered: on ipykernel 7.4 that lost queued cells in 5 of 8 runs. A private loop runs
instead, with the kernel's loop and current task set aside. Futures that belong to the kernel's loop are foreign to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar, cast, final

__all__ = ["FOREIGN_LOOP", "OwnLoop", "drive", "drop", "get"]

T = TypeVar("T")
_ATTRIBUTE: Final = "_plan_mode_nb_own_loop"
_PUMP_S: Final = 0.05
_WIND_DOWN_S: Final = 1.0

FOREIGN_LOOP: Final = (
    "This code awaits on a loop of its own: objects tied to the kernel's event loop (tasks, locks, clients made in a cell) "
    "cannot be awaited here; make them inside this call."
)


@contextlib.contextmanager
def _outer_loop_set_aside() -> Iterator[None]:
    running = asyncio._get_running_loop()
    task = asyncio.current_task(running) if running is not None else None
    asyncio._set_running_loop(None)
    if running is not None and task is not None:
        asyncio.tasks._leave_task(running, task)
    try:
        yield
    finally:
        if running is not None and task is not None:
            asyncio.tasks._enter_task(running, task)
        asyncio._set_running_loop(running)


def drive(coroutine: Coroutine[Any, Any, T], timeout: float = 5.0) -> T:
    """Run ``coroutine`` to its end on a loop made for it. Raises TimeoutError after ``timeout`` seconds of waiting."""
    with _outer_loop_set_aside():
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(asyncio.wait_for(coroutine, timeout))
        finally:
            _close(loop)


@final
class OwnLoop:
    """The private loop of one shell. It is kept between calls, so that a task made in one can be awaited in the next."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        meanwhile: Callable[[], None],
        awaiting: Callable[[asyncio.Task[Any]], AbstractContextManager[None]],
    ) -> T:
        """Run ``coroutine`` to its end; ``meanwhile()`` every 50 ms while it waits, ``awaiting(task)`` entered around it.

        A KeyboardInterrupt that comes out leaves the loop in an unknown state, so it is closed and replaced.
        """
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        loop = self._loop
        if loop.is_running():
            return drive(coroutine, timeout=3600.0)
        with _outer_loop_set_aside():
            task = loop.create_task(coroutine)
            beat = loop.create_task(_every(_PUMP_S, meanwhile))
            try:
                with awaiting(task):
                    result = loop.run_until_complete(task)
            except KeyboardInterrupt:
                self._loop = None
                _close(loop)
                raise
            finally:
                if not loop.is_closed():
                    beat.cancel()
                    loop.run_until_complete(asyncio.wait([beat]))
            return result

    def close(self) -> None:
        """Cancel what is left on the loop and close it."""
        if self._loop is not None and not self._loop.is_closed():
            with _outer_loop_set_aside():
                _close(self._loop)
        self._loop = None


async def _every(seconds: float, fn: Callable[[], None]) -> None:
    while True:
        fn()
        await asyncio.sleep(seconds)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_WIND_DOWN_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def get(shell: Any) -> OwnLoop:
    """The private loop of this shell; it hangs on the shell, so reload finds it."""
    loop = getattr(shell, _ATTRIBUTE, None)
    if loop is None:
        loop = OwnLoop()
        setattr(shell, _ATTRIBUTE, loop)
    return cast(OwnLoop, loop)


def drop(shell: Any) -> None:
    """Close this shell's private loop, if any, and forget it."""
    loop = getattr(shell, _ATTRIBUTE, None)
    if loop is not None:
        delattr(shell, _ATTRIBUTE)
        loop.close()
