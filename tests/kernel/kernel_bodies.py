"""Bodies of turns for the tests: imported inside the test kernel. A body is what an agent would do, without an agent."""

from __future__ import annotations

import asyncio
import builtins
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from IPython import get_ipython
from IPython.core.async_helpers import _asyncio_runner
from IPython.display import display, update_display

from plan_mode_nb.hosts.kernel import thread
from plan_mode_nb.hosts.kernel.capture import RecordedStream
from plan_mode_nb.hosts.kernel.jobs import NO_PARTIAL, partial_result
from plan_mode_nb.hosts.kernel.recorder import Recording
from plan_mode_nb.hosts.kernel.turn import CellTurn, TurnEnd, active_turn
from plan_mode_nb.hosts.kernel.user_code import run_user_code

SEEN: list[tuple[str, Any]] = []  # what bodies noticed, in order
GATES: dict[str, threading.Event] = {}


def _descriptors() -> list[int]:
    return [os.fstat(fd).st_ino for fd in (0, 1, 2)]


DESCRIPTORS = _descriptors()
SHOW_TRACEBACK = vars(get_ipython()).get("_showtraceback") if get_ipython() else None


def leftovers() -> list[str]:
    """What a turn left behind in this process, by name: nothing, it should be."""
    shell = get_ipython()
    kernel = getattr(shell, "kernel", None)
    names = [one.name for one in threading.enumerate()]
    found = {
        "painter": any("painter" in name for name in names),
        "agent threads": sum(name.startswith("plan-mode-nb") for name in names) > 1,
        "turn": active_turn(shell) is not None,
        "streams": isinstance(sys.stdout, RecordedStream) or isinstance(sys.stderr, RecordedStream),
        "display hooks": bool(getattr(shell.display_pub, "_hooks", ())),
        "displayhook": sys.displayhook is not shell.displayhook,
        "input": kernel is not None and builtins.input != kernel.raw_input,
        "stdin": kernel is not None and not kernel._allow_stdin,
        "traceback": vars(shell).get("_showtraceback") is not SHOW_TRACEBACK,
        "ask_exit": "ask_exit" in vars(shell),
        "runner": shell.loop_runner is not _asyncio_runner,
        "signal": signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
        "descriptors": _descriptors() != DESCRIPTORS,
    }
    return [name for name, left in found.items() if left]


class Slots:
    """A view of text slots: each is displayed once and updated in place."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.flushes = 0
        self.turn: CellTurn[Any] | None = None
        self.stop: Any = None

    def open(self, turn: CellTurn[Any]) -> None:
        global VIEW
        VIEW = self
        self.turn = turn
        if getattr(turn.shell, "kernel", None) is not None:
            import ipywidgets

            self.stop = ipywidgets.Button(description="Stop")
            self.stop.on_click(lambda _: turn.request_stop())
        self._show("controls", "running")

    def put(self, key: str, text: str) -> None:
        """From the agent thread: what the slot holds now."""
        self.texts[key] = text
        assert self.turn is not None
        self.turn.mark_dirty()

    def flush(self) -> None:
        self.flushes += 1
        for key, text in list(self.texts.items()):
            self._show(key, text)

    def close(self, reason: TurnEnd) -> None:
        if self.stop is not None:
            self.stop.close()
        self._show("controls", f"ended: {reason}")

    def _show(self, key: str, text: str) -> None:
        if self.shown.get(key) == text:
            return
        paint: Callable[..., Any] = update_display if key in self.shown else display
        paint({"text/plain": text}, raw=True, display_id=f"{key}-{id(self)}")
        self.shown[key] = text


def turn(body: Callable[[CellTurn[Any]], Any], view: Any = None) -> Any:
    """Run one turn in this cell."""
    shell = get_ipython()
    return CellTurn(shell, thread.get(shell), body, view if view is not None else Slots()).run()


def go(body: Callable[[CellTurn[Any]], Any]) -> None:
    """`turn` without its result, so that the cell shows only what the turn shows."""
    turn(body)


VIEW: Any = None  # the view that was opened last


async def stream(turn: CellTurn[Any], key: str, chunks: int, delay: float) -> None:
    """``chunks`` words, one each ``delay`` seconds, into one slot."""
    words = []
    for number in range(chunks):
        await asyncio.sleep(delay)
        words.append(f"{key}{number}")
        VIEW.put(key, " ".join(words))


def job(turn: CellTurn[Any], key: str, code: str) -> Recording:
    """Main thread: run user code, its text in the slot ``key``."""
    turn.flush()

    def repaint(recording: Recording) -> None:
        VIEW._show(key, f"[{recording.status}] {recording.text}")

    recording = run_user_code(turn.shell, turn, code, repaint)
    repaint(recording)
    return recording


async def python(turn: CellTurn[Any], key: str, code: str) -> Recording:
    """User code as a tool runs it; notes what was done when the turn is stopped meanwhile."""
    try:
        return await turn.on_main(job, turn, key, code)
    except asyncio.CancelledError as cancelled:
        partial = partial_result(cancelled)
        SEEN.append(("partial", None if partial is NO_PARTIAL else (partial.status, partial.text)))
        raise


def scripted(*steps: tuple[Any, ...]) -> Callable[[CellTurn[Any]], Any]:
    """A body that does its steps in order and returns what the ``python`` ones recorded."""

    async def body(turn: CellTurn[Any]) -> list[Any]:
        results: list[Any] = []
        try:
            for number, (what, *args) in enumerate(steps):
                await _step(turn, f"s{number}", what, args, results)
        except asyncio.CancelledError:
            SEEN.append(("cancelled", None))
            await turn.on_main(VIEW._show, "cleanup", "log closed")
            raise
        return results

    return body


async def _step(turn: CellTurn[Any], key: str, what: str, args: list[Any], results: list[Any]) -> None:
    if what == "text":
        await stream(turn, key, *args)
    elif what == "python":
        results.append(await python(turn, key, *args))
    elif what == "sleep":
        VIEW.put(key, "sleeping")
        await asyncio.sleep(args[0])
    elif what == "ask":
        results.append(await ask(turn, key))
    elif what == "raise":
        raise args[0]
    elif what == "call":
        results.append(args[0](turn))
    elif what == "hang":  # an agent that ignores its cancellation
        while True:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                SEEN.append(("ignored", None))


async def ask(turn: CellTurn[Any], key: str) -> str:
    """A review-like wait: a job shows a button, a future on the agent's loop waits for its click."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def show() -> Any:
        import ipywidgets

        button = ipywidgets.Button(description="Approve")

        def clicked(_: Any) -> None:
            loop.call_soon_threadsafe(lambda: answer.done() or answer.set_result("approved"))

        button.on_click(clicked)
        VIEW._show(key, "waiting for you")
        return button

    button = await turn.on_main(show)
    try:
        result = await answer
    except asyncio.CancelledError:
        await turn.on_main(VIEW._show, key, "interrupted")
        raise
    finally:
        await turn.on_main(button.close)
    await turn.on_main(VIEW._show, key, result)
    return result
