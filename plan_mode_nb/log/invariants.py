"""The rules of a log beyond its envelope: vocabulary, order of turns and steps, calls and results, payloads that folds rely on.

Checked when appended and when loaded, so a fold never has to doubt what it reads. The order rules are deepseek-harness's session
invariant; the payload rules are log.md's and plan-mode.md's ("a non-boolean is refused, never read by truthiness").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plan_mode_nb.exceptions import FormatError, InvariantError
from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.payloads import check_payload
from plan_mode_nb.log.surface import apply, check_surface
from plan_mode_nb.log.vocabulary import KNOWN, RETIRED

TOOL_NOT_STARTED = "TOOL_NOT_STARTED"
TURN_ENCLOSED = frozenset({"todo/write", "request/header", "request/context"})
"""What belongs to a turn's work: refused between turns. A selection of plan mode is legal between turns."""


@dataclass(frozen=True)
class Place:
    """Where a log stands: the open turn and step (None: none), the next numbers, and calls that have no result yet, in order."""

    turn: int | None = None
    step: int | None = None
    next_turn: int = 1
    next_step: int = 1
    calls: tuple[str, ...] = ()


class Trace:
    """What the rules need to know of a log so far: its place and its surface."""

    def __init__(self, events: list[Event]) -> None:
        """Check a whole log. ``events`` is kept, to look up replaced events: hand in the list that the log grows in.

        Raises:
            FormatError, InvariantError: at the first event that breaks a rule.
        """
        self.place = Place()
        self.nodes: list[int] = []
        self._events = events
        for event in events:
            self.place = _checked(event, self.place, self.nodes, events)
            apply(self.nodes, event)

    def check(self, batch: Sequence[Event]) -> Place:
        """The place after a batch that would continue the log. Changes nothing.

        Raises:
            FormatError, InvariantError: an event of the batch breaks a rule.
        """
        place, nodes, earlier = self.place, self.nodes, self._events
        if any(isinstance(event.surface_op, Replace) for event in batch):
            nodes, earlier = list(nodes), list(earlier)
        for event in batch:
            place = _checked(event, place, nodes, earlier)
            if nodes is not self.nodes:
                apply(nodes, event)
                earlier.append(event)
        return place

    def commit(self, batch: Sequence[Event], place: Place) -> None:
        """Take a checked batch, whose check gave ``place``, into the trace."""
        for event in batch:
            apply(self.nodes, event)
        self.place = place


def _checked(event: Event, place: Place, nodes: Sequence[int], earlier: Sequence[Event]) -> Place:
    if event.type not in KNOWN:
        if event.type in RETIRED or not event.is_ignorable:
            raise FormatError(
                f"event {event.seq} has the type {event.type!r}, which this version does not know; upgrade plan_mode_nb to read it"
            )
        return place
    check_surface(event, nodes, earlier)
    check_payload(event)
    return _moved(event, place)


def _moved(event: Event, place: Place) -> Place:
    """The place after one event, or the rule of order that it breaks."""
    data, seq = event.data, event.seq
    match event.type:
        case "turn/start":
            if place.turn is not None:
                raise InvariantError(f"event {seq}: turn {data['turn']} starts while turn {place.turn} is open", seq=seq)
            if data["turn"] != place.next_turn:
                raise InvariantError(f"event {seq}: expected turn {place.next_turn}, found {data['turn']}", seq=seq)
            return replace(place, turn=data["turn"], next_step=1)
        case "turn/end":
            if data["turn"] != place.turn or place.step is not None:
                raise InvariantError(f"event {seq}: turn {data['turn']} ends, but {_open(place)} is open", seq=seq)
            return replace(place, turn=None, next_turn=place.next_turn + 1)
        case "step/start":
            if data["turn"] != place.turn or place.step is not None or data["step"] != place.next_step:
                raise InvariantError(f"event {seq}: step {data['step']} starts, but {_open(place)} is open", seq=seq)
            return replace(place, step=data["step"])
        case "step/end":
            _require_open(event, place)
            return replace(place, step=None, next_step=place.next_step + 1, calls=())
        case "assistant/chunk" | "assistant/message":
            _require_open(event, place)
        case "tool/call":
            _require_open(event, place)
            return replace(place, calls=(*place.calls, data["callId"]))
        case "tool/result":
            return _answered(event, place)
        case kind if kind in TURN_ENCLOSED:
            if place.turn is None:
                raise InvariantError(f"event {seq}: {kind} outside any turn", seq=seq)
    return place


def _answered(event: Event, place: Place) -> Place:
    if isinstance(event.surface_op, Replace):
        if place.turn is None:
            raise InvariantError(f"event {event.seq}: a tool/result is replaced outside any turn", seq=event.seq)
        return place
    _require_open(event, place)
    call = event.data["message"]["source"]["callId"]
    never_started = (event.data.get("error") or {}).get("code") == TOOL_NOT_STARTED
    if call not in place.calls and not never_started:
        raise InvariantError(f"event {event.seq}: a result for call {call!r}, which this step did not start", seq=event.seq)
    return replace(place, calls=tuple(each for each in place.calls if each != call))


def _require_open(event: Event, place: Place) -> None:
    if (event.data["turn"], event.data["step"]) != (place.turn, place.step):
        raise InvariantError(
            f"event {event.seq}: {event.type} names turn {event.data['turn']} step {event.data['step']}, but {_open(place)} is open",
            seq=event.seq,
        )


def _open(place: Place) -> str:
    if place.turn is None:
        return "no turn"
    return f"turn {place.turn}" if place.step is None else f"step {place.step} of turn {place.turn}"
