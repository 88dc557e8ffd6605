"""The client's end of the headless carrier: a kernel that nobody watches opens a comm and sends its log on it; nothing is answered.

An object with ``handle_msg`` as nbclient wants it: ``client.comm_open_handlers[COMM] = carrier.open``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.headers import read_header

COMM: Final = "plan_mode_nb"


class Received:
    """What the kernel sent so far. A faulty message becomes a problem; the kernel's journal has what it would have said."""

    def __init__(self) -> None:
        self._sessions: dict[str, StoredSession] = {}
        self._agents: dict[str, str] = {}
        self._attachments: dict[str, str] = {}
        self.problems: list[str] = []

    @property
    def document(self) -> Document:
        """The sessions of this run, complete as far as they were sent."""
        return Document(agents=dict(self._agents), sessions=dict(self._sessions), attachments=dict(self._attachments))

    def open(self, message: Mapping[str, Any]) -> Received:
        """The kernel opened its comm; again, when the extension was reloaded."""
        self.handle_msg(message)
        return self

    def handle_msg(self, message: Mapping[str, Any]) -> None:
        """One comm message: an ``append``; every other op is for pages."""
        data = message["content"].get("data")
        if not isinstance(data, Mapping) or data.get("op") != "append":
            return
        try:
            self._append(data)
        except FormatError as error:
            self.problems.append(f"the kernel sent a part of its log that cannot be read: {error}")

    def _append(self, data: Mapping[str, Any]) -> None:
        header = read_header(data.get("header"))
        start, events = data.get("start"), data.get("events")
        if not isinstance(start, int) or not isinstance(events, list) or not all(isinstance(line, str) for line in events):
            raise FormatError(f"session {header.id}: an append needs `start` and `events`")
        there = self._sessions.get(header.id)
        held = list(there.lines) if there is not None else []
        if start > len(held) or held[start : start + len(events)] != events[: len(held) - start]:
            raise FormatError(f"session {header.id}: the events from {start} on do not follow the {len(held)} before")
        self._sessions[header.id] = StoredSession(header, [*held, *events[len(held) - start :]])
        self._agents.update(_texts(data.get("agents")))
        self._attachments.update(_texts(data.get("attachments")))


def _texts(value: object) -> dict[str, str]:
    """The entries of an object that are texts."""
    return {str(key): each for key, each in value.items() if isinstance(each, str)} if isinstance(value, Mapping) else {}
