"""A turn inside a cell: the main thread's one pump, from the turn's first display to its end.

The body runs on the agent thread. The main thread stays in the cell: it pumps widget messages, repaints, runs the jobs that
the body posts (every display, every widget, every piece of user code) and owns SIGINT. Nothing here knows plans or models.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Generic, TypeVar, final

from plan_mode_nb.exceptions import HostError, PlanModeError
from plan_mode_nb.hosts.front_end import CellView, TurnEnd
from plan_mode_nb.hosts.kernel.interrupts import InterruptGate, interrupt_main_thread
from plan_mode_nb.hosts.kernel.jobs import CELL_GONE, MainJob, MainJobs
from plan_mode_nb.hosts.kernel.pump import Pump, Wake, pump_for
from plan_mode_nb.hosts.kernel.refusals import one_line, refuse_here
from plan_mode_nb.hosts.kernel.thread import AgentThread

__all__ = ["CellTurn", "CellView", "TurnEnd", "active_turn"]

T = TypeVar("T")

_ATTRIBUTE: Final = "_plan_mode_nb_turn"


@final
class CellTurn(Generic[T]):
    """One turn. Made on the main thread, run once by `run`, which blocks the cell until the body has ended.

    ``body(turn)`` is awaited on ``agent``'s loop. When the turn is interrupted (kernel stop button, Ctrl-C, `request_stop`,
    kernel shutdown) the body is cancelled exactly once; it then has `GRACE_S` seconds to clean up, jobs included.
    """

    GRACE_S: Final = 2.0
    FLUSH_S: Final = 0.1
    TICK_S: Final = 0.25

    def __init__(self, shell: Any, agent: AgentThread, body: Callable[[CellTurn[T]], Coroutine[Any, Any, T]], view: CellView) -> None:
        self.shell: Final = shell
        self.agent: Final = agent
        self._kernel = getattr(shell, "kernel", None)
        self._body = body
        self._view = view
        self._view_error: Exception | None = None
        self._blind = False
        self._gate = InterruptGate(self._on_interrupt)
        self._wake = Wake()
        self._pump: Pump | None = None
        self._jobs = MainJobs(agent.call, self._wake)
        self._task: asyncio.Task[T] | None = None
        self._dirty = False
        self._next_flush = 0.0
        self._interrupted = False
        self._cancelled = False
        self._gone = False
        self._done = threading.Event()

    # -- for the agent thread

    async def on_main(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Have the main thread call ``fn(*args)`` and give back what it returned or raised.

        Jobs run one at a time, in order of posting. Cancelled before main began: the job never runs. Cancelled while main
        runs it: waits for its end (user code is being interrupted), then raises with what was done (`jobs.partial_result`).
        """
        if not self.agent.is_current():
            raise HostError("on_main is for coroutines on the agent thread; on the main thread call the function itself.")
        job = MainJob(fn, args, self.agent.loop)
        if not self._jobs.put(job):
            raise HostError(CELL_GONE)
        return await job.wait()

    # -- for any thread

    @property
    def interrupted(self) -> bool:
        """True once the turn was asked to stop, by whatever means."""
        return self._interrupted

    def mark_dirty(self) -> None:
        """Something to show has changed: `CellView.flush` is called soon."""
        if not self._dirty:
            self._dirty = True
            self._wake()

    def post(self, fn: Callable[..., object], *args: object) -> bool:
        """Have the main thread call ``fn(*args)``, without waiting; False when the cell has ended.

        An error in it is logged, and shown when the turn ends.
        """
        return self._jobs.put(lambda: fn(*args))

    def request_stop(self) -> None:
        """Stop the turn, as the kernel's stop button does. Callable from any thread, and more than once."""
        self._on_interrupt()
        self._cancel_body()
        if threading.current_thread() is threading.main_thread():
            self._gate.cancel_awaited()
        elif self._gate.in_user_code:
            interrupt_main_thread()

    # -- for jobs on the main thread

    def flush(self) -> None:
        """Repaint now if anything changed: before a job that will hold the main thread for long."""
        self._dirty = False
        self._next_flush = time.monotonic() + self.FLUSH_S
        if not self._blind:
            self._blind = not self._guarded(self._view.flush)

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """SIGINT raises KeyboardInterrupt in here; at once when the turn has been stopped already."""
        try:
            with self._gate.raising():
                if self._interrupted:
                    raise KeyboardInterrupt
                yield
        finally:
            self._gate.disarm()
            self._gate.reinstall()

    def awaiting(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """User code awaits ``task``, on a loop of the main thread: SIGINT and Stop cancel it."""
        return self._gate.awaiting(task)

    def pump_once(self) -> None:
        """Handle the messages that have arrived: called while user code awaits, so that widgets stay alive."""
        if self._pump is not None:
            with self._gate.holding():
                self._pump.poll(0)

    # -- the turn itself

    def run(self) -> T:
        """Run the turn to its end and return what the body returned.

        Raises `HostError`, before anything happened, where a turn cannot run; KeyboardInterrupt when it was stopped;
        whatever `PlanModeError` the body raised; `HostError` for any other failure, logged with its traceback. All of them
        render as one line in IPython.
        """
        try:
            refuse_here(self.shell, busy=active_turn(self.shell) is not None)
            pump = pump_for(self.shell, self._wake, self._gate)
        except HostError as error:
            self._wake.close()
            raise one_line(error) from error.__cause__
        setattr(self.shell, _ATTRIBUTE, self)
        undo = self.agent.on_death(self._on_death)
        try:
            with self._gate.installed(), pump:
                self._pump = pump
                failure = self._open_and_loop(pump)
                reason = self._reason(failure)
                self._jobs.close()
                self.flush()
                self._guarded(lambda: self._view.close(reason))
        finally:
            self._pump = None
            undo()
            delattr(self.shell, _ATTRIBUTE)
            self._wake.close()
        return self._outcome(failure)

    def _open_and_loop(self, pump: Pump) -> str | None:
        """None when the body ended, else a sentence saying why it did not."""
        if not self._guarded(lambda: self._view.open(self)):
            return "The turn was not started because its output could not be shown"
        if not self.agent.call(self._start):
            return self._death_sentence()
        return self._loop(pump)

    def _loop(self, pump: Pump) -> str | None:
        deadline: float | None = None
        while True:
            self._jobs.run_all(plain=self._guarded, before_answer=self._before_answer)
            now = time.monotonic()
            if self._dirty and not self._blind and now >= self._next_flush:
                self.flush()
            if self._done.is_set() and not self._jobs:
                return None
            if self._gone:
                return self._death_sentence()
            if self._kernel is not None and self._kernel._shutdown_message is not None:
                self._interrupted = True
            if self._interrupted:
                self._cancel_body()
                deadline = now + self.GRACE_S if deadline is None else deadline
                if now > deadline:
                    self.agent.stop(timeout=0)
                    return f"The agent did not stop within {self.GRACE_S:g} s and was abandoned"
            self._gate.reinstall()
            # Never long: a dead thread or a shutdown may come without a wake-up.
            waiting = self._dirty and not self._blind
            pump.poll(min(self.TICK_S, max(0.0, self._next_flush - time.monotonic())) if waiting else self.TICK_S)
            self._wake.clear()

    def _before_answer(self) -> None:
        # The cancel goes ahead of a job's result, or the agent would run on with it for a moment.
        if self._interrupted:
            self._cancel_body()

    def _start(self) -> None:
        if self._interrupted:
            self._finish()
            return
        self._task = self.agent.loop.create_task(self._body(self))
        # The task itself says that it is done: a wrapper could be cancelled before it got to say so.
        self._task.add_done_callback(self._finish)

    def _finish(self, _task: object = None) -> None:
        self._done.set()
        self._wake()

    def _cancel_body(self) -> None:
        self.agent.call(self._cancel_once)

    def _cancel_once(self) -> None:
        # A second cancel would hit the body's own clean-up, and lose what a tool had done.
        if self._task is not None and not self._cancelled and not self._task.done():
            self._cancelled = True
            self._task.cancel()

    def _on_interrupt(self) -> None:
        self._interrupted = True
        self._wake()

    def _on_death(self) -> None:
        self._gone = True
        self._wake()

    def _death_sentence(self) -> str:
        why = f" ({self.agent.death})" if self.agent.death else ""
        return f"The agent's thread ended{why}; run the cell again to continue in a new one."

    def _guarded(self, fn: Callable[[], object]) -> bool:
        """A display that fails must not lose the turn: it is logged, and shown as the cell's error when the turn ends."""
        try:
            fn()
        except Exception as error:
            self.shell.log.error("plan_mode_nb: the output of a turn could not be shown", exc_info=True)
            self._view_error = self._view_error or error
            return False
        return True

    def _reason(self, failure: str | None) -> TurnEnd:
        task = self._task
        if failure is None and task is not None and task.done() and not task.cancelled() and task.exception() is None:
            return "completed"
        return "interrupted" if self._interrupted else "failed"

    def _outcome(self, failure: str | None) -> T:
        task, view_error = self._task, self._view_error
        if self._interrupted:
            if task is not None and task.done() and not task.cancelled() and task.exception() is not None:
                self.shell.log.error("plan_mode_nb: a turn failed while it was being stopped", exc_info=task.exception())
            tail = f"; {failure[0].lower()}{failure[1:]}" if failure else ""
            raise one_line(KeyboardInterrupt(f"agent turn cancelled{tail}"))
        if view_error is not None:
            why = failure or "The turn ran to its end, but its output could not be shown"
            raise one_line(HostError(f"{why} ({type(view_error).__name__}: {view_error}).")) from view_error
        if failure is not None or task is None:
            raise one_line(HostError(failure or self._death_sentence()))
        if task.cancelled():
            outside = "The agent's turn was cancelled from outside; run the cell again."
            raise one_line(HostError(outside if self.agent.alive else self._death_sentence()))
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, PlanModeError):
            raise one_line(error)
        self.shell.log.error("plan_mode_nb: a turn failed", exc_info=error)
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise one_line(HostError(f"The turn failed ({what}); run the cell again.")) from error


def active_turn(shell: Any) -> CellTurn[Any] | None:
    """The turn that this shell is in, or None."""
    return getattr(shell, _ATTRIBUTE, None)
