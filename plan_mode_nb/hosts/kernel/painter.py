"""Repainting while user code holds the main thread."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, Final, final

__all__ = ["Painter"]

UPDATE_S: Final = 0.1


@final
class Painter:
    """Calls ``paint()`` a tenth of a second after a change, until the next change; from a thread of its own.

    The main thread cannot do it: between two prints it may be in a call that lasts for minutes, with the first of them
    unseen. The thread starts with the first change, runs in the main thread's context (so that displays belong to the same
    cell), and is gone when `stop` returns. A ``paint`` that fails is logged and not called again.
    """

    def __init__(self, paint: Callable[[], None], log: Any) -> None:
        self._paint = paint
        self._log = log
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.painting = threading.Lock()  # held during a paint: take it to keep paints out
        self._context = contextvars.copy_context()

    def changed(self) -> None:
        """There is something new to paint. Callable from any thread."""
        self._changed.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._stopping.is_set():
                    run = lambda: self._context.run(self._main)  # noqa: E731
                    self._thread = threading.Thread(target=run, name="plan-mode-nb-painter", daemon=True)
                    self._thread.start()

    def is_current(self) -> bool:
        """True inside ``paint``: what is written and displayed then is not the user code's."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """End the thread, after the paint it is in (waited for, for five seconds)."""
        with self._lock:
            self._stopping.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _main(self) -> None:
        while True:
            self._changed.wait()
            if self._stopping.wait(UPDATE_S):
                return
            self._changed.clear()
            try:
                with self.painting:
                    self._paint()
            except Exception:  # noqa: BLE001 -- logged; the run itself goes on, and is shown when it ends
                self._log.error("plan_mode_nb: the output of running code could not be shown", exc_info=True)
                return
