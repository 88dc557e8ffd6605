"""What SIGINT does on the main thread during a turn.

A handler that raises wherever it lands can raise inside the pump and drop queued cells. So it only flags and wakes, except
inside somebody's code (the agent's Python, a widget callback), which a person must be able to stop.
"""

from __future__ import annotations

import _thread
import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

__all__ = ["Awaited", "InterruptGate", "interrupt_main_thread"]


@final
class Awaited:
    """A task that user code awaits on the main thread's own loop; SIGINT cancels it rather than raise inside asyncio."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._cancelled = False

    def interrupt(self, frame: FrameType | None) -> bool:
        """Cancel the task, once. False when that cannot help: cancelled before, or synchronous code holds the loop."""
        if self._cancelled or self._task.done() or not _inside_asyncio(frame):
            return False
        self._cancelled = True
        self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        return True


def _inside_asyncio(frame: FrameType | None) -> bool:
    module = "asyncio" if frame is None else str(frame.f_globals.get("__name__", ""))
    return module == "selectors" or module.split(".")[0] == "asyncio"


@final
class InterruptGate:
    """SIGINT's handler while a turn runs: `installed` for the turn, `raising` around others' code, `holding` inside that.

    ``notify`` is called for every SIGINT, in the handler, and must neither block nor raise.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._raising = False
        self._pending = False
        self._awaited: Awaited | None = None

    @property
    def in_user_code(self) -> bool:
        """True while a SIGINT would raise or cancel an awaited task."""
        return self._raising

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Own SIGINT; the previous handler is back afterwards. Main thread only."""
        previous = signal.signal(signal.SIGINT, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def reinstall(self) -> None:
        """Take SIGINT back from user code that installed a handler of its own."""
        if signal.getsignal(signal.SIGINT) != self._on_signal:
            signal.signal(signal.SIGINT, self._on_signal)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """SIGINT raises KeyboardInterrupt in here (or cancels the awaited task)."""
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    def disarm(self) -> None:
        """SIGINT does not raise from here on: for whoever leaves `raising`, since one may have struck in its last step."""
        self._raising = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        """SIGINT waits in here, for our own code inside `raising`; what came meanwhile takes effect at the end."""
        before = self._raising
        self._raising = False
        try:
            yield
        finally:
            self._raising = before
        if before and self._pending:
            self._pending = False
            if self._awaited is None or not self._awaited.interrupt(None):
                raise KeyboardInterrupt

    @contextmanager
    def awaiting(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """User code awaits ``task`` in here."""
        before = self._awaited
        self._awaited = Awaited(task)
        try:
            yield
        finally:
            self._awaited = before

    def pass_on(self) -> None:
        """A SIGINT was raised inside a callback and ended there: what surrounds the callback is to be interrupted too."""
        self._pending = True

    def cancel_awaited(self) -> bool:
        """Cancel what user code awaits, on the main thread. False when it awaits nothing."""
        return self._awaited is not None and self._awaited.interrupt(None)

    def _on_signal(self, _signum: int, frame: FrameType | None) -> None:
        self._notify()
        if not self._raising:
            self._pending = True
        elif self._awaited is None or not self._awaited.interrupt(frame):
            raise KeyboardInterrupt


def interrupt_main_thread() -> None:
    """SIGINT for the main thread, from another thread of this process."""
    ident = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and ident is not None:
        signal.pthread_kill(ident, signal.SIGINT)  # unlike interrupt_main, ends a blocking system call
    else:
        _thread.interrupt_main()
