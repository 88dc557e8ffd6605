"""A real kernel, driven as a front end drives it.

    with Kernel(sys.executable) as kernel:
        ran = kernel.run("1 + 1")
        assert ran.status == "ok" and ran.shown == ["2"]

`Kernel.send` returns at once, `Kernel.wait` waits for the reply and the idle status of what was sent; several cells sent in
a row are queued, as under Run All. Nothing sleeps: every wait is for an event, with a deadline. ``route="subshell"`` sends
comm messages addressed to a subshell, as JupyterLab does by default; kernels without subshells refuse it (`NoSubshells`).
"""

from __future__ import annotations

import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import zmq
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

Message = dict[str, Any]
Route = Literal["main", "subshell"]
WAIT_S = 60.0
"""For an event that comes at once on a machine with nothing else to do."""


class NoSubshells(Exception):
    """This kernel has no subshells."""


@dataclass
class Cell:
    """What a front end has of one executed cell. ``outputs`` are nbformat-like, updates and clears applied."""

    status: str | None  # the reply's: "ok", "error", "aborted"; None while there is none
    ename: str | None
    evalue: str | None
    traceback: list[str]
    outputs: list[Message]
    messages: list[Message] = field(repr=False)  # every iopub message of this cell, in order
    execution_count: int | None = None
    payload: list[Any] = field(default_factory=list)
    seconds: float | None = None  # from sending to the reply, by this process's clock
    replied_at: float | None = None

    @property
    def text(self) -> str:
        """All stream output, joined."""
        return "".join(output["text"] for output in self.outputs if output["output_type"] == "stream")

    @property
    def shown(self) -> list[str]:
        """text/plain of every display and result, in order, in their last state."""
        return [output["data"].get("text/plain", "") for output in self.outputs if "data" in output]

    @property
    def kinds(self) -> list[str]:
        """Types of the iopub messages that carry output, in order of arrival."""
        quiet = {"status", "execute_input", "comm_open", "comm_msg", "comm_close"}
        return [message["msg_type"] for message in self.messages if message["msg_type"] not in quiet]


class Kernel:
    """One kernel process and everything it published. Use as a context manager."""

    def __init__(
        self,
        python: str,
        *,
        route: Route = "main",
        path: Path | None = None,
        env: Mapping[str, str] | None = None,
        startup: str = "",
        timeout: float = 60.0,
    ) -> None:
        """``path`` is put on the kernel's PYTHONPATH; ``startup`` is run first and must succeed."""
        self.python = python
        self.route = route
        self.comms: dict[str, dict[str, Any]] = {}  # comm id -> state as the front end knows it, in order of opening
        self.closed_comms: set[str] = set()
        self.messages: list[Message] = []
        self._replies: dict[str, tuple[Message, float]] = {}
        self._sent: dict[str, float] = {}
        self._news = threading.Condition()
        self._shell, self._iopub = threading.Lock(), threading.Lock()  # a zmq socket is one thread's at a time
        spec_argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager = KernelManager()
        # A kernel that does not end when asked would be killed after this, and pass for one that ended late.
        self.manager.shutdown_wait_time = 30.0
        self.manager._kernel_spec = KernelSpec(argv=spec_argv, display_name="test", language="python")
        environment = dict(os.environ, PYDEVD_DISABLE_FILE_VALIDATION="1", **(env or {}))
        if path is not None:
            environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self._start(environment, timeout)
        self.subshell = self._make_subshell() if route == "subshell" else None
        if startup:
            self.must(startup)

    # -- cells

    def send(self, code: str, *, cell: str | None = None, **options: Any) -> str:
        """Send a cell; its message id. ``cell``: the id that a front end has for it."""
        with self._shell:
            if cell is None:
                return self._note(self.client.execute(code, **options))
            content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": True}
            message = self.client.session.msg("execute_request", content, metadata={"cellId": cell})
            self.client.shell_channel.send(message)
            return self._note(message["header"]["msg_id"])

    def wait(self, message_id: str, timeout: float = WAIT_S) -> Cell:
        """Wait until the cell has its reply and its idle status. Raises TimeoutError with what there is by then."""
        self.until(lambda: message_id in self._replies and self._idle(message_id), timeout, lambda: self.cell(message_id))
        return self.cell(message_id)

    def run(self, code: str, timeout: float = WAIT_S, **options: Any) -> Cell:
        """`send` and `wait`."""
        return self.wait(self.send(code, **options), timeout)

    def must(self, code: str, timeout: float = WAIT_S) -> str:
        """Run a cell that has to succeed; the text it printed."""
        ran = self.run(code, timeout)
        assert ran.status == "ok", (ran.ename, ran.evalue, "\n".join(ran.traceback))
        return ran.text

    def cell(self, message_id: str) -> Cell:
        """What is known of a cell so far."""
        mine = [m for m in list(self.messages) if m["parent_header"].get("msg_id") == message_id]
        error = next((m["content"] for m in mine if m["msg_type"] == "error"), {})
        reply, at = self._replies.get(message_id, (None, None))
        content: Message = reply["content"] if reply else {}
        return Cell(
            status=content.get("status"),
            ename=content.get("ename") or error.get("ename"),
            evalue=content.get("evalue") or error.get("evalue"),
            traceback=error.get("traceback", []),
            outputs=_applied(list(self.messages), message_id),
            messages=mine,
            execution_count=content.get("execution_count"),
            payload=content.get("payload", []),
            seconds=None if at is None else at - self._sent[message_id],
            replied_at=at,
        )

    def until(self, what: Callable[[], Any], timeout: float = WAIT_S, seen: Callable[[], Any] | None = None) -> Any:
        """Wait until ``what()`` is true, looked at whenever something arrives; its value. TimeoutError shows ``seen()``."""
        deadline = time.monotonic() + timeout
        with self._news:
            while not (value := what()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"not within {timeout} s; seen so far: {seen() if seen else None}")
                self._news.wait(left)
            return value

    def until_shown(self, message_id: str, text: str, timeout: float = WAIT_S) -> None:
        """Wait until ``text`` is in some output of the cell, in its present state."""
        self.until(lambda: text in self._visible(message_id), timeout, lambda: self.cell(message_id))

    def until_printed(self, text: str, timeout: float = WAIT_S) -> None:
        """Wait until a stream of any cell or callback has carried ``text`` in one message."""
        streams = lambda: [m["content"]["text"] for m in list(self.messages) if m["msg_type"] == "stream"]  # noqa: E731
        self.until(lambda: any(text in one for one in streams()), timeout, streams)

    # -- the rest of what a front end does

    def interrupt(self) -> float:
        """The stop button; when it was pressed, by ``time.monotonic()``."""
        at = time.monotonic()
        self.manager.interrupt_kernel()
        return at

    def comm(self, **state: Any) -> str:
        """The youngest open comm whose state has these values, waited for; its id."""

        def find() -> str | None:
            for comm_id, known in reversed(list(self.comms.items())):
                if comm_id not in self.closed_comms and all(known.get(k) == v for k, v in state.items()):
                    return comm_id
            return None

        return str(self.until(find, seen=lambda: [s.get("description", s.get("_model_name")) for s in self.comms.values()]))

    def comm_message(self, comm_id: str, data: Message) -> str:
        """Send a comm message by this kernel's route; its message id."""
        return self.request("comm_msg", {"comm_id": comm_id, "data": data}, subshell=self.subshell)

    def custom(self, comm_id: str, content: Message) -> str:
        """A widget's custom message, as a click is one."""
        return self.comm_message(comm_id, {"method": "custom", "content": content})

    def click(self, description: str) -> str:
        """Click the youngest ipywidgets Button of this description."""
        return self.custom(self.comm(_model_name="ButtonModel", description=description), {"event": "click"})

    def set_state(self, comm_id: str, **state: Any) -> str:
        """A widget's state changed in the front end."""
        return self.comm_message(comm_id, {"method": "update", "state": state, "buffer_paths": []})

    def request(self, kind: str, content: Message, *, subshell: str | None = None) -> str:
        """Any shell request, such as ``complete_request``; its message id."""
        message = self.client.session.msg(kind, content)
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        with self._shell:
            self.client.shell_channel.send(message)
        return self._note(message["header"]["msg_id"])

    def send_raw(self, frames: list[bytes]) -> None:
        """Send anything at all on the shell channel."""
        with self._shell:
            self.client.shell_channel.socket.send_multipart(frames)

    def reply(self, message_id: str, timeout: float = WAIT_S) -> Message:
        """The content of the reply to `request`, waited for."""
        self.until(lambda: message_id in self._replies, timeout)
        content: Message = self._replies[message_id][0]["content"]
        return content

    def handled(self, message_id: str, timeout: float = WAIT_S) -> None:
        """Wait until the kernel has published that it is done with this message (comm messages have no reply)."""
        self.until(lambda: self._idle(message_id), timeout)

    def execute_in_subshell(self, code: str) -> str:
        """Send a cell to a subshell of its own; its message id."""
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        return self.request("execute_request", content, subshell=self._make_subshell())

    def shutdown(self, *, restart: bool = False) -> float:
        """Ask the kernel to end, as a server does; seconds until the process had ended (`restart`: until it was ready)."""
        started = time.monotonic()
        if restart:
            self.manager.restart_kernel(now=False)
            self._stop_reading()
            self.client.wait_for_ready(timeout=60)
            self._start_reading()
        else:
            self.manager.shutdown_kernel(now=False)
        return time.monotonic() - started

    def kill(self) -> None:
        """``kill -9``, and a new process under the same connection and id, as a server's restart leaves it."""
        process = self.manager.provisioner.process
        # The manager interrupts before it kills, and a kernel may be quick enough to take that for a person's Stop.
        process.kill()
        process.wait()
        self.manager.restart_kernel(now=True)
        self.comms.clear()
        self.must("pass", 60)

    def until_ended(self, timeout: float) -> int:
        """Wait until the kernel's process has ended by itself; its exit status. Raises TimeoutError."""
        process = self.manager.provisioner.process
        try:
            return int(process.wait(timeout))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"the kernel was still running after {timeout} s") from error

    def close(self) -> None:
        self._stop_reading()
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    # -- inside

    def _start(self, environment: dict[str, str], timeout: float) -> None:
        self.manager.start_kernel(env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=timeout)
        self._start_reading()

    def _start_reading(self) -> None:
        self._running = True
        channels = (
            (self._iopub, self.client.iopub_channel, self._published),
            (self._shell, self.client.shell_channel, self._replied),
        )
        self._threads = [threading.Thread(target=self._read, args=channel, daemon=True) for channel in channels]
        for thread in self._threads:
            thread.start()

    def _stop_reading(self) -> None:
        """Leave the sockets to the caller: two threads must not use one."""
        self._running = False
        for thread in self._threads:
            thread.join(5)

    def _make_subshell(self) -> str:
        if "kernel subshells" not in self.reply(self.request("kernel_info_request", {})).get("supported_features", ()):
            raise NoSubshells(self.python)
        self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
        return str(self.client.control_channel.get_msg(timeout=10)["content"]["subshell_id"])

    def _note(self, message_id: str) -> str:
        self._sent[message_id] = time.monotonic()
        return message_id

    def _read(self, lock: threading.Lock, channel: Any, take: Callable[[Message], None]) -> None:
        arrived = channel.socket.getsockopt(zmq.FD)
        while self._running:
            with lock:
                try:
                    message = channel.get_msg(timeout=0)
                except queue.Empty:
                    message = None
            if message is None:
                # Edge-triggered, so it may stay quiet although something is there: look again soon in any case.
                select.select([arrived], [], [], 0.05)
                continue
            with self._news:
                take(message)
                self._news.notify_all()

    def _published(self, message: Message) -> None:
        content = message["content"]
        if message["msg_type"] == "comm_open":
            self.comms[content["comm_id"]] = dict(content["data"].get("state", {}))
        elif message["msg_type"] == "comm_msg" and content["data"].get("method") == "update":
            self.comms.setdefault(content["comm_id"], {}).update(content["data"]["state"])
        elif message["msg_type"] == "comm_close":
            self.closed_comms.add(content["comm_id"])
        self.messages.append(message)

    def _replied(self, message: Message) -> None:
        self._replies[message["parent_header"].get("msg_id", "")] = (message, time.monotonic())

    def _idle(self, message_id: str) -> bool:
        return any(
            m["msg_type"] == "status" and m["content"]["execution_state"] == "idle" and m["parent_header"].get("msg_id") == message_id
            for m in reversed(list(self.messages))
        )

    def _visible(self, message_id: str) -> str:
        outputs = self.cell(message_id).outputs
        return "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


def _applied(messages: list[Message], message_id: str) -> list[Message]:
    """The outputs of one cell as a front end holds them: streams merged, updates (by whatever cell) and clears applied."""
    outputs: list[Message] = []
    clear_next = False
    for message in messages:
        kind, content = message["msg_type"], message["content"]
        if kind == "update_display_data":
            for output in outputs:
                if output.get("display_id") == content["transient"].get("display_id"):
                    output.update(data=content["data"], metadata=content["metadata"])
            continue
        if message["parent_header"].get("msg_id") != message_id or kind not in _OUTPUTS:
            continue
        if kind == "clear_output" and content["wait"]:
            clear_next = True
            continue
        if kind == "clear_output" or clear_next:
            outputs, clear_next = [], False
        if kind != "clear_output":
            _append(outputs, kind, content)
    return outputs


_OUTPUTS = {"stream", "display_data", "execute_result", "error", "clear_output"}


def _append(outputs: list[Message], kind: str, content: Message) -> None:
    last = outputs[-1] if outputs else {}
    if kind == "stream" and last.get("output_type") == "stream" and last["name"] == content["name"]:
        last["text"] += content["text"]
        return
    output: Message = {"output_type": kind, **content}
    if kind == "display_data":
        output["display_id"] = content.get("transient", {}).get("display_id")
    outputs.append(output)
