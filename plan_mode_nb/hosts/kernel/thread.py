"""The agent thread: one daemon thread that owns one asyncio loop for the life of the kernel.

Everything of the agent that awaits (the loop, model streams, hooks, appends) lives there, because a model client belongs to
one event loop. Nothing displays from it. Hosts reach it by `AgentThread.call` and `AgentThread.run`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final, TypeVar, cast, final

from plan_mode_nb.exceptions import HostError

__all__ = ["AgentThread", "drop", "get"]

T = TypeVar("T")
_ATTRIBUTE: Final = "_plan_mode_nb_agent_thread"
_TICK_S: Final = 0.25
_WIND_DOWN_S: Final = 1.0
_log = logging.getLogger(__name__)


@final
class AgentThread:
    """A running event loop on its own daemon thread. It never comes back once it has ended: `get` then makes a new one."""

    def __init__(self, name: str = "plan-mode-nb-agent") -> None:
        self.loop: Final = asyncio.new_event_loop()
        self._death: str | None = None
        self._ended = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True while new work is taken. False from the moment the loop has stopped, before its tasks are wound down."""
        return not self._ended and self._thread.is_alive()

    @property
    def death(self) -> str | None:
        """Why the loop ended by itself, as ``SystemExit: 3``; None while it runs and after `stop`."""
        return self._death

    def is_current(self) -> bool:
        """True on the agent thread itself."""
        return threading.current_thread() is self._thread

    def call(self, fn: Callable[..., object], *args: object) -> bool:
        """Run ``fn(*args)`` on the loop, soon. Callable from any thread and from a signal handler.

        Calls run in the order in which they were made. False when the loop is closed: nothing will run then. Still True
        while a dying loop winds its tasks down, so that their last jobs can be answered.
        """
        try:
            self.loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:
            return False
        return True

    def run(self, work: Callable[[], T | Awaitable[T]], timeout: float = 10.0) -> T:
        """Run ``work()`` on the loop, await what it returns where that is awaitable, and give back the result.

        For the main thread while no turn runs (``timeout`` in seconds). Raises whatever ``work`` raised; `HostError` when
        the thread has ended, ends meanwhile, does not answer in time, or is the caller itself. Ctrl-C cancels the work.
        """
        if self.is_current():
            raise HostError("This call would wait for its own thread; await the coroutine on the agent thread instead.")
        answer: Future[T] = Future()
        task: list[asyncio.Task[None]] = []
        if not self.alive or not self.call(lambda: task.append(self.loop.create_task(_answer(work, answer)))):
            raise HostError(self._gone())
        try:
            return self._wait(answer, timeout)
        except (KeyboardInterrupt, HostError):
            self.call(lambda: [one.cancel() for one in task])
            raise

    def _wait(self, answer: Future[T], timeout: float) -> T:
        left = timeout
        while True:
            try:
                return answer.result(min(left, _TICK_S))
            except FutureTimeout:
                # A TimeoutError that the work itself raised is an answer, not a missing one.
                if answer.done():
                    raise
            left -= _TICK_S
            if not self._thread.is_alive():
                raise HostError(self._gone())
            if left <= 0:
                raise HostError(f"The agent did not answer within {timeout:g} s; interrupt it or restart the kernel.")

    def on_death(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback()`` once when the thread has ended, on that thread; at once when it already has. Returns the undo."""
        with self._lock:
            if not self.loop.is_closed():
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def stop(self, timeout: float = 1.0) -> None:
        """Cancel every task, let them finish for up to a second, close the loop; wait up to ``timeout`` seconds for it."""
        self._ended = True
        self.call(self.loop.stop)
        if not self.is_current():
            self._thread.join(timeout)

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _gone(self) -> str:
        why = f" ({self._death})" if self._death else ""
        return f"The agent's thread has ended{why}; run the cell again to continue in a new one."

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            if not self._ended:
                self._death = "its event loop was stopped"
        except BaseException as error:  # noqa: BLE001 -- a SystemExit in a task comes out here and must reach the main thread
            self._death = f"{type(error).__name__}: {error}"
        finally:
            self._ended = True
            self._wind_down()
            self._tell()

    def _wind_down(self) -> None:
        """Let the tasks run their clean-up (a log is closed there), bounded, then close the loop."""
        try:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=_WIND_DOWN_S))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException:  # noqa: BLE001 -- a second SystemExit, or a loop stopped again: nothing is left to unwind
            _log.debug("The agent thread's loop could not be wound down.", exc_info=True)
        finally:
            with self._lock:
                self.loop.close()

    def _tell(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:  # noqa: BLE001 -- logged; the other callbacks must still be told
                _log.exception("A callback for the end of the agent thread failed.")


async def _answer(work: Callable[[], T | Awaitable[T]], answer: Future[T]) -> None:
    try:
        result = work()
        answer.set_result(await result if inspect.isawaitable(result) else result)
    except asyncio.CancelledError:
        answer.set_exception(HostError("The call was cancelled before it ended; run it again."))
        raise
    except BaseException as error:  # noqa: BLE001 -- handed to the caller; a SystemExit must not end the loop
        answer.set_exception(error)


def get(shell: Any) -> AgentThread:
    """The agent thread of this shell, made when there is none or when it has ended. It hangs on the shell, so reload finds it."""
    thread = getattr(shell, _ATTRIBUTE, None)
    if thread is None or not thread.alive:
        thread = AgentThread()
        setattr(shell, _ATTRIBUTE, thread)
    return cast(AgentThread, thread)


def drop(shell: Any, timeout: float = 1.0) -> None:
    """Stop this shell's agent thread, if any, and forget it."""
    thread = getattr(shell, _ATTRIBUTE, None)
    if thread is not None:
        delattr(shell, _ATTRIBUTE)
        thread.stop(timeout)
