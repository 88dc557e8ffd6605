"""A recorded session cut into what the cells of its notebook did: one part for each command and each turn, in order.

``notebook/cell`` says which source opened it. What stands between two parts came from elsewhere (a chip, a restarted kernel) and is fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import UNSET, Struct

from plan_mode_nb.agent.compaction import STOPPED
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.events import Event, Header

NOT_DISPATCHED: Final = "TOOL_ABORTED_BEFORE_DISPATCH"
_CLOSING: Final = ("command/done", "step/end", "turn/end", "agent/inbox/spliced")
_UNDERIVED: Final = ("UNKNOWN", "REFUSED")
"""Codes of turns that failed by something outside the log: nothing in it says how to make that happen again."""


class Part(Struct, frozen=True):
    """One command or turn of one cell: the events from ``start`` up to, not including, ``end``.

    ``source``: sha256 of the cell's source. ``cell``: its id, where the front end told one. ``turn``: the turn's number, None for a
    command. ``said``: the first words of what was said, for messages to people. ``reason``: the turn's end, None while open; of a command
    only where it did not end well, in the same form.
    """

    kind: Literal["command", "turn"]
    start: int
    end: int
    time: int
    source: str
    cell: str | None
    turn: int | None
    said: str
    reason: dict[str, Any] | None = None

    @property
    def ended_well(self) -> bool:
        """Whether its cell ended without an error."""
        if self.reason is None:
            return self.kind == "command"
        return self.reason["kind"] in ("completed", "max-tokens")

    @property
    def is_cut(self) -> bool:
        """Whether the process ended in the middle of it."""
        return (self.kind == "turn" and self.reason is None) or (self.reason is not None and self.reason["kind"] == "interrupted")

    def __str__(self) -> str:
        return f"turn {self.turn} ({self.said})" if self.kind == "turn" else f"command {self.said}"


def parts(header: Header, events: Sequence[Event]) -> list[Part]:
    """What the cells did, in the order of the log. A fork's seed belongs to the session that it was forked from."""
    first = 0 if header.seed_length is UNSET else header.seed_length
    found = [_part(events, event.seq) for event in events[first:] if event.type == "notebook/cell"]
    return [part for part in found if part is not None]


def _part(events: Sequence[Event], at: int) -> Part | None:
    """The part that ``notebook/cell`` at ``at`` belongs to; None where it does not follow what it names."""
    data, opener = events[at].data, events[at - 1] if at else None
    if opener is None:
        return None
    if data.get("turn") is not None and opener.type == "turn/start":
        return _turn(events, at)
    if opener.type == "command/run" and opener.data["commandId"] == data.get("command"):
        said = f"%{opener.data['name']} {opener.data['args']}".strip()
        end, reason = _command_end(events, at, data["command"])
        return Part("command", at - 1, end, opener.time, data["source"], data.get("cell"), None, _short(said), reason)
    return None


def _command_end(events: Sequence[Event], at: int, id: str) -> tuple[int, dict[str, Any] | None]:
    """Where a command that began before ``at`` ends, and how, where not well. A process that ended in it left it without its end."""
    for seq in range(at, len(events)):
        event = events[seq]
        if event.type == "session/end-seed":
            return seq, {"kind": "interrupted"}
        if event.type == "command/done" and event.data["commandId"] == id:
            if event.data["kind"] != "error":
                return seq + 1, None
            if is_stopped_compaction(events[seq - 1]):
                return seq + 1, {"kind": "aborted", "reason": {"kind": "user"}}
            return seq + 1, {"kind": "error", "error": {"message": event.data.get("text", ""), "code": "COMMAND"}}
    return len(events), {"kind": "interrupted"}


def is_stopped_compaction(event: Event) -> bool:
    """Whether it ends a compaction that was stopped while its summary was made."""
    return event.type == "compaction/end" and event.data.get("error") == STOPPED


def _turn(events: Sequence[Event], at: int) -> Part:
    data, start = events[at].data, _opening(events, at - 1)
    stop, reason = _stop(events, at)
    said = next((_text(event.data) for event in events[at:stop] if event.type == "user/message"), "")
    return Part("turn", start, stop, events[at].time, data["source"], data.get("cell"), data["turn"], _short(said), reason)


def child_part(header: Header, events: Sequence[Event]) -> Part | None:
    """The one turn of a child's session, with what stands before it behind the seed; None where it never began."""
    first = 0 if header.seed_length is UNSET else header.seed_length
    at = _find(events, first, lambda event: event.type == "turn/start")
    if at is None:
        return None
    stop, reason = _stop(events, at)
    return Part("turn", first, stop, events[at].time, "", None, events[at].data["turn"], "", reason)


def _stop(events: Sequence[Event], at: int) -> tuple[int, dict[str, Any] | None]:
    """Where the turn that is open at ``at`` is over, and the reason of its end; None for one that stays open."""
    end = _find(events, at, lambda event: event.type == "turn/end")
    reason = None if end is None else events[end].data["reason"]
    stop = len(events) if end is None else end + 1
    if end is not None and reason is not None and reason["kind"] == "interrupted":
        stop = _cut_at(events, at, end)
    while end is not None and stop < len(events) and _is_clearing(events[stop]):
        stop += 1
    return stop, reason


def _opening(events: Sequence[Event], turn_start: int) -> int:
    """Where what a cell does for its turn begins: its prompt, and what it takes out of the queue because it waited from before."""
    start = turn_start
    while start and _is_clearing(events[start - 1]):
        start -= 1
    if start and events[start - 1].type == "turn/end":
        return turn_start  # the turn before was stopped, and took out what waited for it
    return start - 1 if start and is_prompt(events[start - 1]) else start


def is_prompt(event: Event) -> bool:
    """Whether it queues a prompt, which a cell does just before its turn starts."""
    return event.type == "agent/inbox/spliced" and event.data["target"] == "next-turn" and bool(event.data["inserted"])


def _is_clearing(event: Event) -> bool:
    """A stopped turn takes what still waits out of the queue, unsent."""
    return event.type == "agent/inbox/spliced" and event.data.get("outcome") == "canceled"


def _cut_at(events: Sequence[Event], start: int, end: int) -> int:
    """Where the process ended: what closes the turn behind that was written by the next one."""
    for cut in range(start + 1, end + 1):
        closing = closers(events[:cut])
        if [draft.type for draft in closing] == [event.type for event in events[cut : end + 1]]:
            return cut
    return end


def _find(events: Sequence[Event], start: int, wanted: Any) -> int | None:
    return next((seq for seq in range(start, len(events)) if wanted(events[seq])), None)


def _text(message: dict[str, Any]) -> str:
    return " ".join(block["text"] for block in message["content"] if block.get("type") == "text")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


# -- how a turn is led


class Cut(Struct, frozen=True):
    """Where the person stopped a turn. ``place``: while the answer streamed, in a call (its id), or between two steps."""

    place: Literal["answer", "call", "between"]
    cause: dict[str, Any]
    call: str | None = None


def cut_of(events: Sequence[Event], part: Part) -> Cut | None:
    """Where a stopped turn was stopped; None for any other. The log has no event for it: it shows in what is missing."""
    if part.reason is None or part.reason["kind"] != "aborted":
        return None
    cause: dict[str, Any] = part.reason["reason"]
    own = [event for event in events[part.start : part.end] if event.type not in _CLOSING]
    if own and is_stopped_compaction(own[-1]):
        return Cut("answer", cause)
    step = _last_step(events[part.start : part.end])
    answer = next((event for event in step if event.type == "assistant/message"), None)
    if not step:
        return Cut("between", cause)
    if answer is None or answer.data.get("interrupted") is True:
        return Cut("answer", cause)
    results = [event for event in step if event.type == "tool/result"]
    ran = [event for event in results if event.data.get("error", {}).get("code") != NOT_DISPATCHED]
    return Cut("call", cause, ran[-1].data["message"]["source"]["callId"]) if ran else Cut("between", cause)


def _last_step(events: Sequence[Event]) -> Sequence[Event]:
    start = next((place for place in range(len(events) - 1, -1, -1) if events[place].type == "step/start"), None)
    return () if start is None else events[start:]


def is_played(events: Sequence[Event], part: Part) -> bool:
    """Whether a part is played event for event, because nothing in the log says how to make its end happen again.

    A killed process, or a fault that was no failed request and no limit.
    """
    if part.is_cut:
        return True
    reason = part.reason
    if part.kind != "turn" or reason is None or reason["kind"] != "error" or reason["error"].get("code") not in _UNDERIVED:
        return False
    step = _last_step(events[part.start : part.end])
    asked = any(event.type == "assistant/message" and event.data.get("interrupted") is not True for event in step)
    return asked or not step
