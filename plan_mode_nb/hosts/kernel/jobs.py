"""Jobs: calls that the agent thread has the main thread make, one at a time, in the order of posting."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, final

from plan_mode_nb.exceptions import HostError

__all__ = ["NO_PARTIAL", "MainJob", "MainJobs", "partial_result"]

CELL_GONE: Final = "The cell of this turn has ended, so nothing can run or display in it; start a new turn."
NO_PARTIAL: Final = object()
_PARTIAL: Final = "_plan_mode_nb_partial"


@final
class MainJob:
    """One call for the main thread. Exactly one side claims it: main to run it, or the agent to withdraw it."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], loop: asyncio.AbstractEventLoop) -> None:
        self._fn = fn
        self._args = args
        self._future: asyncio.Future[Any] = loop.create_future()
        self._claim = threading.Lock()

    def claim(self) -> bool:
        """True for the first caller only."""
        return self._claim.acquire(blocking=False)

    def run(self) -> tuple[Any, Exception | None]:
        """Main thread, after `claim`: (result, error). Nothing comes out that could end the agent's loop when raised there."""
        try:
            return self._fn(*self._args), None
        except StopIteration as error:
            return None, RuntimeError(f"A job on the main thread raised {error!r}.")
        except Exception as error:  # noqa: BLE001 -- handed to whoever awaits the job
            return None, error
        except BaseException as error:  # noqa: BLE001 -- as itself it would end the agent thread's loop
            return None, HostError(f"The main thread was interrupted ({type(error).__name__}) before this was done.")

    def settle(self, result: Any, error: Exception | None) -> None:
        """Agent thread: give the waiting coroutine its answer."""
        if self._future.done():
            return
        if error is None:
            self._future.set_result(result)
        else:
            self._future.set_exception(error)

    async def wait(self) -> Any:
        """Agent thread: the result. When cancelled, withdraws the job, or waits for the one that main is already running.

        In the second case the CancelledError carries the job's result: see `partial_result`.
        """
        try:
            return await asyncio.shield(self._future)
        except asyncio.CancelledError as cancelled:
            if not self.claim():
                await asyncio.wait([self._future])
                if self._future.exception() is None:
                    setattr(cancelled, _PARTIAL, self._future.result())
            raise


@final
class MainJobs:
    """The queue of a turn's jobs: filled from any thread, emptied by the main thread until `close`.

    ``call`` hands a function to the agent's loop (`AgentThread.call`); ``wake`` wakes the main thread.
    """

    def __init__(self, call: Callable[..., bool], wake: Callable[[], None]) -> None:
        self._call = call
        self._wake = wake
        self._queue: deque[MainJob | Callable[[], object]] = deque()
        self._open = True
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._queue)

    def put(self, job: MainJob | Callable[[], object]) -> bool:
        """Queue a job, or a plain call that nobody waits for. False when the queue is closed."""
        with self._lock:
            if not self._open:
                return False
            self._queue.append(job)
        self._wake()
        return True

    def run_all(self, *, plain: Callable[[Callable[[], object]], object], before_answer: Callable[[], None]) -> None:
        """Main thread: run what is queued, in order. ``plain(call)`` runs a plain call; ``before_answer()`` precedes each answer."""
        while self._queue:
            job = self._queue.popleft()
            if not isinstance(job, MainJob):
                plain(job)
            elif job.claim():
                result, error = job.run()
                before_answer()
                self._call(job.settle, result, error)

    def close(self) -> None:
        """Take no more jobs; those that are left fail with a sentence."""
        with self._lock:
            self._open = False
        while self._queue:
            job = self._queue.popleft()
            if isinstance(job, MainJob) and job.claim():
                self._call(job.settle, None, HostError(CELL_GONE))


def partial_result(cancelled: asyncio.CancelledError) -> Any:
    """What a job on the main thread had done by the time its caller was cancelled, or `NO_PARTIAL`.

    Read it where the job was awaited: a CancelledError that crosses a task may be a new one.
    """
    return getattr(cancelled, _PARTIAL, NO_PARTIAL)
