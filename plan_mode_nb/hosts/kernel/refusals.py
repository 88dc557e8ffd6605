"""Where a turn cannot run, and errors that show as one line."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any, TypeVar

from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher

from plan_mode_nb.exceptions import HostError

__all__ = ["one_line", "refuse_here"]

E = TypeVar("E", bound=BaseException)


def one_line(error: E) -> E:
    """``error``, shown by IPython as the single line ``Type: message`` instead of a traceback."""
    error._render_traceback_ = lambda: [f"{type(error).__name__}: {error}"]  # type: ignore[attr-defined]
    return error


def refuse_here(shell: Any, *, busy: bool) -> None:
    """Raise `HostError` where a turn cannot run: off the main thread, in another turn (``busy``), under ``%%capture``."""
    if threading.current_thread() is not threading.main_thread():
        raise HostError("Agent turns run in the kernel's main shell; run this cell without a subshell.")
    if busy:
        raise HostError("An agent turn is already running in this kernel; wait until its cell has ended.")
    captured = isinstance(shell.display_pub, CapturingDisplayPublisher) or isinstance(sys.displayhook, CapturingDisplayHook)
    if captured or isinstance(sys.stdout, io.StringIO):
        raise HostError("A turn's cards cannot be shown under %%capture; remove it and run the cell again.")
