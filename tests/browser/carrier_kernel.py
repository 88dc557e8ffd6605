"""The kernel side of the carrier's comm, reduced to its messages: a test says what is sent and sees what came back."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any

import comm
from IPython import get_ipython

NAME = "plan_mode_nb"


def plan_mode(seq: int, active: bool) -> str:
    """An event line."""
    return json.dumps({"type": "plan/mode", "seq": seq, "time": 1, "data": {"active": active}}, separators=(",", ":"))


def chained(session: str, lines: list[str]) -> str:
    """The chained hash after ``lines``."""
    digest = hashlib.sha256(session.encode()).hexdigest()
    for line in lines:
        digest = hashlib.sha256((digest + line).encode()).hexdigest()
    return digest


class Link:
    """``received``: what pages sent, with the connection each came from. A ``select`` is answered by ``plan`` unless ``mute``."""

    def __init__(self, session: str = "s1") -> None:
        self.session = session
        self.lines: list[str] = []
        self.received: list[dict[str, Any]] = []
        self.mute = False
        self._n = 0
        self._comm = comm.create_comm(target_name=NAME, comm_id=NAME, primary=False)
        comm.get_comm_manager().register_comm(self._comm)
        self._comm.on_msg(self._on_msg)
        self.send(op="hello")

    def send(self, **message: Any) -> None:
        self._comm.send(message)

    def home(self) -> str:
        """The connection that runs the present cell."""
        return str(get_ipython().parent_header["header"]["session"])

    def append(self, *lines: str, to: str | None = None, **change: Any) -> int:
        """Send these lines as the next ones; ``change`` replaces fields of the message. Returns its ``n``."""
        self._n += 1
        start = len(self.lines)
        message = {
            "op": "append",
            "n": self._n,
            "to": to or self.home(),
            "session": self.session,
            "start": start,
            "events": list(lines),
            "prev": chained(self.session, self.lines),
            "header": {"version": 0, "id": self.session},
            "agents": {"main": self.session},
        }
        self.lines += lines
        self.send(**{**message, **change})
        return self._n

    def plan(self, active: bool, pending: bool | None = None) -> None:
        self.send(op="plan", active=active, pending=pending, session=self.session)

    def of(self, op: str) -> list[dict[str, Any]]:
        return [message for message in self.received if message["op"] == op]

    def answer(self, n: int) -> dict[str, Any] | None:
        """What was answered to append or get number ``n``."""
        return next((message for message in self.received if message["op"] in ("ack", "page") and message["n"] == n), None)

    def _on_msg(self, message: dict[str, Any]) -> None:
        data = message["content"]["data"]
        self.received.append({**data, "from": message["header"]["session"]})
        if data["op"] == "select" and not self.mute:
            self.plan(data["active"])


class Warnings(logging.Handler):
    """What the kernel logs from now on."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def forget() -> None:
    """Be a kernel again that nothing of plan mode was loaded in."""
    comm.get_comm_manager().comms.pop(NAME, None)
    for handler in [each for each in logging.getLogger().handlers if isinstance(each, Warnings)]:
        logging.getLogger().removeHandler(handler)
