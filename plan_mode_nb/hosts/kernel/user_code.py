"""Running a piece of the agent's Python in the person's namespace, and recording what it did.

``shell.run_cell(code, store_history=False)`` alone gives right tracebacks, magics, ``!``, ``?`` and figure flushing. What it
does beside that (it overwrites ``_``, sends an ``error`` output, reads from the keyboard, cannot await) is held back here.
"""

from __future__ import annotations

import asyncio
import builtins
import getpass
import sys
import tokenize
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, Final, Protocol, final

from plan_mode_nb.hosts.kernel import own_loop
from plan_mode_nb.hosts.kernel.capture import FileDescriptors, RecordedStream, replaced
from plan_mode_nb.hosts.kernel.painter import Painter
from plan_mode_nb.hosts.kernel.recorder import Recorder, Recording, StreamName
from plan_mode_nb.hosts.kernel.tracebacks import of_the_code

__all__ = ["NO_TURN", "UserCodeHost", "run_user_code"]

_STREAMS: Final[tuple[StreamName, ...]] = ("stdout", "stderr")
NO_KEYBOARD: Final = "Code that the agent runs cannot read from the keyboard; put the value into the code, or ask the person."
NO_DEBUGGER: Final = "Code that the agent runs cannot stop in a debugger; print what you want to see instead."
NO_EXIT: Final = "Code that the agent runs cannot end the kernel; the person can restart it."


class UserCodeHost(Protocol):
    """What running user code needs of the turn around it. `CellTurn` is one; `NO_TURN` is the null."""

    @property
    def interrupted(self) -> bool:
        """Whether the person stopped the turn."""

    def user_code(self) -> AbstractContextManager[None]:
        """SIGINT raises KeyboardInterrupt inside: the code is what is interrupted."""

    def awaiting(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """SIGINT cancels ``task``: the code awaits, and may clean up."""

    def pump_once(self) -> None:
        """Let what arrived be handled while the code awaits."""


@final
class _NoTurn:
    """Outside a turn: SIGINT does what it does anyway."""

    interrupted = False

    def user_code(self) -> AbstractContextManager[None]:
        """As it is."""
        return nullcontext()

    def awaiting(self, task: asyncio.Task[Any]) -> AbstractContextManager[None]:
        """As it is."""
        return nullcontext()

    def pump_once(self) -> None:
        """Nothing is held up."""


NO_TURN: Final[UserCodeHost] = _NoTurn()


def run_user_code(shell: Any, host: UserCodeHost, code: str, on_change: Callable[[Recording], None] | None = None) -> Recording:
    """Run ``code`` as a cell of ``shell``, on the main thread, and give back what it did. Raises nothing that the code raised.

    ``on_change(recording)`` may repaint while the code runs, at most ten times a second. It is called on a thread of its
    own, never at the same time as a widget's callback or as anything that follows this call, so it needs no lock against
    them. What it prints and displays is not recorded.

    ``_``, ``Out``, ``In``, the history, the payloads and the last traceback of the person's cell stay as they are; nothing
    is published but updates of displays that other code made.
    """
    recorder = Recorder()
    painter = Painter(lambda: on_change and on_change(recorder.snapshot()), shell.log)
    if on_change is not None:
        recorder.changed = painter.changed
    sys.stdout.flush()
    sys.stderr.flush()
    error: BaseException | None = None
    try:
        with _kept_state(shell), FileDescriptors(recorder) as descriptors, ExitStack() as stack:
            _redirect(shell, host, recorder, painter, descriptors, code, stack)
            try:
                with host.user_code():
                    result = shell.run_cell(code, store_history=False)
                error = result.error_before_exec or result.error_in_exec
            except KeyboardInterrupt as interrupt:  # landed in IPython's own code, around the cell
                error = interrupt
            painter.stop()
    finally:
        painter.stop()
        recorder.closed = True
    return _recording(recorder, error, host.interrupted)


def _recording(recorder: Recorder, error: BaseException | None, interrupted: bool) -> Recording:
    if error is None:
        return recorder.snapshot("ok")
    if isinstance(error, KeyboardInterrupt):
        return recorder.snapshot("interrupted", error)
    if interrupted and isinstance(error, asyncio.CancelledError):
        return recorder.snapshot("interrupted", KeyboardInterrupt())
    foreign = "attached to a different loop" in str(error)
    return recorder.snapshot("error", error, hint=f"\n{own_loop.FOREIGN_LOOP}" if foreign else "")


@contextmanager
def _kept_state(shell: Any) -> Iterator[None]:
    """What a nested run_cell overwrites, put back: the outer result, payloads, the last traceback, recorded outputs."""
    hook, payloads, count = shell.displayhook, shell.payload_manager, shell.execution_count
    outputs = getattr(shell.history_manager, "outputs", {})
    kept = hook.exec_result, list(payloads._payload), getattr(shell, "_last_traceback", None), list(outputs.get(count, ()))
    try:
        yield
    finally:
        hook.exec_result, payloads._payload, shell._last_traceback = kept[:3]
        outputs.pop(count, None)
        if kept[3]:
            outputs[count] = kept[3]


def _redirect(
    shell: Any,
    host: UserCodeHost,
    recorder: Recorder,
    painter: Painter,
    descriptors: FileDescriptors,
    code: str,
    stack: ExitStack,
) -> None:
    """Everything that user code shows, asks or ends goes to the recorder, or is refused with a sentence; undone by ``stack``."""
    loop = own_loop.get(shell)
    kernel = getattr(shell, "kernel", None)

    def put(owner: Any, name: str, value: Any) -> None:
        stack.enter_context(replaced(owner, name, value))

    def pump() -> None:
        with painter.painting:
            host.pump_once()

    def awaited(coroutine: Any) -> Any:
        return loop.run(coroutine, meanwhile=pump, awaiting=host.awaiting)

    for name in _STREAMS:
        now = getattr(sys, name)
        real = now.write if kernel is not None else partial(descriptors.write_through, name)
        stream = RecordedStream(recorder, name, painter, real)
        # Handlers that kept the old stream (logging does) are recorded too.
        put(now, "write", lambda text, *_, stream=stream: stream.write(text))
        put(sys, name, stream)
    value_hook = _value_hook(shell, recorder, code)
    put(sys, "displayhook", value_hook)
    put(shell.display_trap, "hook", value_hook)
    put(shell, "_showtraceback", _traceback_hook(recorder))
    put(shell, "show_usage_error", lambda error: recorder.traceback("UsageError", f"UsageError: {error}"))
    put(shell, "loop_runner", awaited)
    put(shell, "ask_exit", _refuse(NO_EXIT))
    put(shell.hooks, "show_in_pager", _pager(recorder))
    # A kernel's own `!` gives the command a terminal of its own, and waits for ever for what it would read there.
    put(shell, "system", shell.system_raw)
    # Said rather than raised: with %pdb on, IPython calls it while it shows a traceback.
    put(shell, "debugger", lambda *_, **__: recorder.write("stderr", NO_DEBUGGER + "\n"))
    put(sys, "breakpointhook", _refuse(NO_DEBUGGER))
    put(builtins, "input", _refuse(NO_KEYBOARD))
    put(getpass, "getpass", _refuse(NO_KEYBOARD))
    if kernel is not None:
        put(kernel, "_allow_stdin", False)
    stack.enter_context(_displays(shell, recorder, painter))


def _refuse(sentence: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError(sentence)

    return refused


def _value_hook(shell: Any, recorder: Recorder, code: str) -> Callable[[object], None]:
    def hook(value: object) -> None:
        if value is None or _ends_with_semicolon(shell, code):
            return
        data, metadata = shell.display_formatter.format(value)
        if data:  # an object that displays itself has done so by now
            recorder.display(data, metadata, result=True)

    return hook


def _ends_with_semicolon(shell: Any, code: str) -> bool:
    try:
        return bool(shell.displayhook.semicolon_at_end_of_expression(shell.transform_cell(code)))
    except (tokenize.TokenError, SyntaxError):
        return False


def _traceback_hook(recorder: Recorder) -> Callable[..., None]:
    def show(kind: type[BaseException], error: BaseException, lines: list[str]) -> None:
        if issubclass(kind, SystemExit):
            # What IPython writes next tells a person how to leave.
            recorder.mute("stderr")
            recorder.traceback(kind.__name__, f"{kind.__name__}: {error}")
        else:
            recorder.traceback(kind.__name__, "\n".join(of_the_code(lines)))

    return show


def _pager(recorder: Recorder) -> Callable[..., None]:
    def show(data: Any, *_: Any, **__: Any) -> None:
        text = data.get("text/plain", "") if isinstance(data, dict) else str(data)
        recorder.write("stdout", text if text.endswith("\n") else text + "\n")

    return show


@contextmanager
def _displays(shell: Any, recorder: Recorder, painter: Painter) -> Iterator[None]:
    """Displays go to the recorder. In a kernel by a hook, which is the main thread's alone and so not the painter's.

    A swapped publisher would end the dispatch of subshells on ipykernel 7.3.
    """
    publisher = shell.display_pub
    if not hasattr(publisher, "register_hook"):
        publish = _publish(recorder, painter, publisher.publish)
        with replaced(publisher, "publish", publish), replaced(publisher, "clear_output", recorder.clear):
            yield
        return

    def hook(message: dict[str, Any]) -> dict[str, Any] | None:
        content = message["content"]
        if message["header"]["msg_type"] == "clear_output":
            recorder.clear(bool(content.get("wait")))
            return None
        update = message["header"]["msg_type"] == "update_display_data"
        display_id = content.get("transient", {}).get("display_id")
        taken = recorder.display(content["data"], content["metadata"], display_id=display_id, update=update)
        return None if taken else message

    publisher.register_hook(hook)
    try:
        yield
    finally:
        publisher.unregister_hook(hook)


def _publish(recorder: Recorder, painter: Painter, real: Callable[..., None]) -> Callable[..., None]:
    def publish(
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *_: Any,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **__: Any,
    ) -> None:
        if painter.is_current():
            real(data, metadata, transient=transient, update=update)
            return
        recorder.display(data, metadata or {}, display_id=(transient or {}).get("display_id"), update=update)

    return publish
