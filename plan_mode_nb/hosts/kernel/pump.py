"""What the main thread waits in while a turn runs: kernel messages that must not wait, and a wake-up.

Front ends send widget messages, completion and inspection on the channel that the running cell blocks. The pump takes that
channel over, handles these, and keeps every other message, in order, for the kernel. It uses private parts of ipykernel,
the same in 6.29 to 7.4; anything else is refused with a sentence.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import select
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Protocol, Self, final

from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.kernel.interrupts import InterruptGate
from plan_mode_nb.hosts.kernel.own_loop import drive
from plan_mode_nb.hosts.wake import Wake

__all__ = ["KernelPump", "Pump", "TerminalPump", "Wake", "pump_for"]

# comm_*: widgets. *_info: what a front end asks after a page reload, before it can show live widgets again.
LIVE: Final = frozenset({
    "comm_open", "comm_msg", "comm_close", "comm_info_request", "kernel_info_request", "complete_request", "inspect_request",
})  # fmt: skip

UNKNOWN_LAYOUT: Final = (
    "This kernel is not built like ipykernel 6.29 to 7.x, so a cell cannot wait in it; install ipykernel>=6.29,<8 and restart it."
)
# The kernel's event loop keeps only weak references to the messages given back to it.
_handed_over: set[asyncio.Future[Any]] = set()
_MALFORMED: Final = (ValueError, KeyError, TypeError, IndexError)


class Pump(Protocol):
    """A place to wait. Entered for the turn; `poll` returns when something happened or after ``seconds``."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None: ...
    def poll(self, seconds: float) -> None:
        """Handle what arrived, or wait for it at most ``seconds``."""


@final
class TerminalPump:
    """Plain IPython has no messages: only the wake-up."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def poll(self, seconds: float) -> None:
        """Wait to be woken, at most ``seconds``."""
        select.select([self._wake], [], [], seconds)


def _main_shell(kernel: Any) -> tuple[Any, Any]:
    """(stream that brings shell messages to the main thread, socket or stream that replies go to)."""
    thread = getattr(kernel, "shell_channel_thread", None)
    if thread is None:
        return kernel.shell_stream, kernel.shell_stream
    manager = thread.manager
    return manager._shell_channel_to_main.to_stream, manager.get_subshell_to_shell_channel_socket(None)


@final
class KernelPump:
    """Takes over the main shell channel of an ipykernel while a cell blocks.

    Messages named in `LIVE` are handled at once, on this thread, with the status messages that the kernel itself would
    publish. All others are kept and given back in order of arrival on leaving, ahead of what arrives later: nothing is
    dropped, nothing is reordered. Handlers run inside ``gate.raising()``: a hung widget callback can be interrupted.
    """

    def __init__(self, kernel: Any, wake: Wake, gate: InterruptGate) -> None:
        self._kernel = kernel
        self._gate = gate
        self._kept: list[list[Any]] = []
        try:
            zmq: Any = importlib.import_module("zmq")  # present wherever there is a kernel, not in a plain terminal
            self._stream, self._reply = _main_shell(kernel)
            self._callback: Callable[..., Any] = self._stream._recv_callback
            self._callback_copy: bool = self._stream._recv_copy
            self._queue = getattr(kernel, "msg_queue", None)
            self._pollin, self._pollout = zmq.POLLIN, zmq.POLLOUT
            self._poller = zmq.Poller()
            self._poller.register(self._stream.socket, zmq.POLLIN)
            self._poller.register(wake.fileno(), zmq.POLLIN)
            known = callable(self._callback) and kernel.shell_handlers.keys() >= LIVE
            known = known and all(callable(getattr(kernel, name)) for name in ("set_parent", "get_parent", "_publish_status"))
        except (ImportError, AttributeError, TypeError) as error:
            raise HostError(UNKNOWN_LAYOUT) from error
        if not known or not hasattr(kernel, "_shutdown_message"):
            raise HostError(UNKNOWN_LAYOUT)

    def __enter__(self) -> Self:
        self._take_received()
        self._stream.on_recv(self._on_recv, copy=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.on_recv(self._callback, copy=self._callback_copy)
        kept, self._kept = self._kept, []
        for raw in kept:
            result = self._callback(raw)
            if inspect.isawaitable(result):  # ipykernel 7: the callback is a coroutine function
                task = asyncio.ensure_future(result)
                _handed_over.add(task)
                task.add_done_callback(_handed_over.discard)

    def poll(self, seconds: float) -> None:
        """Handle what arrived; if nothing had, wait for it at most ``seconds``."""
        # zmq's file descriptor is edge-triggered: what already arrived must be taken before waiting.
        self._exchange()
        if self._poller.poll(int(seconds * 1000)):
            self._exchange()

    def _exchange(self) -> None:
        self._stream.flush(self._pollin)
        # ipykernel 6 replies through a stream whose loop waits for this cell. Never inside the flush above: a flush within
        # a flush of one stream makes the outer one spin for ever.
        if hasattr(self._reply, "flush"):
            self._reply.flush(self._pollout)

    def _take_received(self) -> None:
        """ipykernel 6 keeps received messages in a queue: handle the live ones in it, leave the others in their order."""
        if self._queue is None:
            return
        for _ in range(self._queue.qsize()):
            item = self._queue.get_nowait()
            dispatch, args = item[1], item[2]
            if dispatch != self._kernel.dispatch_shell or not args or not self._handle(args[0]):
                self._queue.put_nowait(item)

    def _on_recv(self, raw: list[Any]) -> None:
        if not self._handle(raw):
            self._kept.append(raw)

    def _handle(self, raw: list[Any]) -> bool:
        """True when the message was a live one, and has been handled."""
        session = self._kernel.session
        try:
            idents, frames = session.feed_identities(raw, copy=False)
            # Without its content, the message's signature is not recorded, so the kernel can still read it later.
            kind = session.deserialize(frames, content=False, copy=False)["header"]["msg_type"]
        except _MALFORMED:
            return False
        if kind not in LIVE:
            return False
        try:
            message = session.deserialize(frames, content=True, copy=False)
        except _MALFORMED:
            self._kernel.log.warning("plan_mode_nb: a malformed %s was ignored", kind, exc_info=True)
            return True
        self._dispatch(kind, idents, message)
        return True

    def _dispatch(self, kind: str, idents: Any, message: dict[str, Any]) -> None:
        kernel = self._kernel
        ident, parent = kernel._parent_ident["shell"], kernel.get_parent("shell")
        kernel.set_parent(idents, message, channel="shell")
        kernel._publish_status("busy", "shell")
        try:
            with self._gate.raising():
                result = kernel.shell_handlers[kind](self._reply, idents, message)
                if inspect.iscoroutine(result):
                    drive(result)
        except KeyboardInterrupt:
            self._gate.pass_on()
            kernel.log.info("plan_mode_nb: a %s handler was interrupted", kind)
        except Exception:
            kernel.log.error("plan_mode_nb: a %s handler failed", kind, exc_info=True)
        finally:
            self._gate.disarm()
            # ipywidgets' front end sends its next update only after the idle of this message.
            kernel._publish_status("idle", "shell")
            kernel.set_parent(ident, parent, channel="shell")
            # The cell is still running; without this, front ends would show an idle kernel.
            kernel._publish_status("busy", "shell")


def pump_for(shell: Any, wake: Wake, gate: InterruptGate) -> Pump:
    """The pump that fits this shell. Raises `HostError` on a kernel of unknown layout."""
    kernel = getattr(shell, "kernel", None)
    return TerminalPump(wake) if kernel is None else KernelPump(kernel, wake, gate)
