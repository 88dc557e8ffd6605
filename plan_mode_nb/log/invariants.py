"""The rules of a log beyond its envelope: vocabulary, surface, payloads that folds rely on, order of turns, steps, calls and results.

Vocabulary, surface and payloads are checked when appended and when loaded, so a fold never has to doubt what it reads. Order is checked on
every append and only followed on load: deepseek-harness checks it in its tests alone, so its logs may lack a ``step/start`` and still load
(its verdicts say so), and must load here. The order rules are its session invariant; the payload rules are log.md's and plan-mode.md's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from plan_mode_nb.exceptions import FormatError, InvariantError, quoted
from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.growing import Events
from plan_mode_nb.log.payloads import check_payload
from plan_mode_nb.log.surface import apply, check_surface
from plan_mode_nb.log.vocabulary import KNOWN, RETIRED, SURFACE

TOOL_NOT_STARTED = "TOOL_NOT_STARTED"
TOOL_OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"
_SYNTHETIC = (TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN)
_TURNS = frozenset({"turn/start", "turn/end"})
TURN_ENCLOSED = frozenset({"todo/write", "request/header", "request/context", "approval/asked", "approval/decided"})
"""What belongs to a turn's work: refused between turns. A selection of plan mode is legal between turns."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a log stands: the open turn and step (None: none), the next numbers, and calls that have no result yet, in order.

    ``compaction``: the id of the one that is open, None where none is.
    """

    turn: int | None = None
    step: int | None = None
    next_turn: int = 1
    next_step: int = 1
    calls: tuple[str, ...] = ()
    compaction: str | None = None


class Trace:
    """What the rules need to know of a log so far: its place and its surface."""

    def __init__(self) -> None:
        """Of the empty log."""
        self.place = Place()
        self.nodes: list[int] = []

    def take(self, event: Event, earlier: Callable[[int], Event]) -> None:
        """Check the next event of a log that is loaded, as far as a load does. ``earlier``: the event of a seq before it.

        The place does not follow: the last turn alone tells it (:func:`place_of`).

        Raises:
            FormatError, InvariantError: it breaks a rule.
        """
        _check(event, self.nodes, earlier)
        if event.surface_op is not UNSET:
            apply(self.nodes, event)

    def check(self, batch: Sequence[Event], events: Sequence[Event]) -> Place:
        """The place after a batch that would continue ``events``. Changes nothing.

        Raises:
            FormatError, InvariantError: an event of the batch breaks a rule.
        """
        place, nodes, first = self.place, self.nodes, len(events)
        if any(isinstance(event.surface_op, Replace) for event in batch):
            nodes = list(nodes)

        def earlier(seq: int) -> Event:
            return events[seq] if seq < first else batch[seq - first]

        for event in batch:
            _check(event, nodes, earlier)
            problem = _disorder(event, place)
            if problem is not None:
                raise InvariantError(f"event {event.seq}: {event.type}: {problem}", seq=event.seq)
            place = moved(event, place)
            if nodes is not self.nodes:
                apply(nodes, event)
        return place

    def commit(self, batch: Sequence[Event], place: Place) -> None:
        """Take a checked batch, whose check gave ``place``, into the trace."""
        for event in batch:
            apply(self.nodes, event)
        self.place = place


def _check(event: Event, nodes: Sequence[int], earlier: Callable[[int], Event]) -> None:
    if event.type not in KNOWN:
        _refuse_unknown(event)
    if event.surface_op is not UNSET or event.source_event_seqs is not UNSET or event.type in SURFACE:
        check_surface(event, nodes, earlier)
    check_payload(event)


def _refuse_unknown(event: Event) -> None:
    if event.type in RETIRED:
        raise FormatError(f"event {event.seq} has the retired type {quoted(event.type)}; open this log with the version that wrote it")
    if not event.is_ignorable:
        raise FormatError(
            f"event {event.seq} has the type {quoted(event.type)}, which this version does not know; upgrade plan_mode_nb to read it"
        )


def place_of(events: Events) -> Place:
    """Where a log stands, whether or not it is in order.

    Its last ``turn/start`` or ``turn/end`` says all of what came before it: both name their turn, and nothing else is open after one.
    """
    return reduce(lambda place, event: moved(event, place), events.since(events.last(_TURNS) or 0), Place())


def moved(event: Event, place: Place) -> Place:
    """The place after one more event, whether or not it stands in order (as deepseek-harness's crash repair follows a log)."""
    match event.type:
        case "turn/start":
            return Place(turn=event.data["turn"], next_turn=event.data["turn"])
        case "turn/end":
            return Place(next_turn=event.data["turn"] + 1)
        case "step/start":
            return replace(place, step=event.data["step"], calls=())
        case "step/end":
            return replace(place, step=None, next_step=event.data["step"] + 1, calls=())
        case "tool/call":
            return replace(place, calls=(*place.calls, event.data["callId"]))
        case "tool/result" if place.calls and not isinstance(event.surface_op, Replace):
            call = event.data["message"]["source"]["callId"]
            return replace(place, calls=tuple(each for each in place.calls if each != call))
        case "compaction/start":
            return replace(place, compaction=str(event.data.get("compactionId")))
        case "compaction/end" | "session/end-seed" if place.compaction is not None:
            # What an earlier process left open is over where another one goes on (dsh's rule).
            return replace(place, compaction=None)
    return place


def _disorder(event: Event, place: Place) -> str | None:
    """What is out of order about an event at a place; None: nothing."""
    data = event.data
    match event.type:
        case "turn/start":
            if place.turn is not None or place.compaction is not None:
                return f"turn {data['turn']} starts while {_open(place)} is open"
            return None if data["turn"] == place.next_turn else f"expected turn {place.next_turn}, found {data['turn']}"
        case "turn/end":
            right = data["turn"] == place.turn and place.step is None and _may_end(data, place)
            return None if right else f"turn {data['turn']} ends, but {_open(place)} is open"
        case "step/start":
            right = data["turn"] == place.turn and place.step is None and data["step"] == place.next_step
            return None if right else f"step {data['step']} starts, but {_open(place)} is open and step {place.next_step} is next"
        case "step/end" | "assistant/chunk" | "assistant/message" | "tool/call":
            return _outside(event, place)
        case "tool/result":
            return _unasked(event, place)
        case "tool/code-dispatch-start" | "tool/code-dispatch":
            parent = data.get("parentCallId")
            return None if parent in place.calls else f"it belongs to call {quoted(parent)}, which is not running"
        case "compaction/start" if place.compaction is not None or data.get("turn") != place.turn:
            return f"it names turn {data.get('turn')}, but {_open(place)} is open"
        case "compaction/summary" | "compaction/end" if data.get("compactionId") != place.compaction:
            return f"it names compaction {quoted(data.get('compactionId'))}, but {_open(place)} is open"
        case kind if kind in TURN_ENCLOSED and place.turn is None:
            return "it stands outside any turn"
    return None


def _unasked(event: Event, place: Place) -> str | None:
    """What is out of order about a result. Those that close an interrupted log need an open turn only: the log may lack the step."""
    error = event.data.get("error")
    if isinstance(event.surface_op, Replace) or (isinstance(error, dict) and error.get("code") in _SYNTHETIC):
        return "it stands outside any turn" if place.turn is None else None
    call = event.data["message"]["source"]["callId"]
    return _outside(event, place) or (None if call in place.calls else f"it answers call {quoted(call)}, which this step did not start")


def _outside(event: Event, place: Place) -> str | None:
    turn, step = event.data["turn"], event.data["step"]
    return None if (turn, step) == (place.turn, place.step) else f"it names step {step} of turn {turn}, but {_open(place)} is open"


def _may_end(data: dict[str, Any], place: Place) -> bool:
    """An open compaction ends before its turn does, unless a process was killed in it."""
    return place.compaction is None or data["reason"]["kind"] == "interrupted"


def _open(place: Place) -> str:
    if place.compaction is not None:
        return f"compaction {quoted(place.compaction)}"
    if place.turn is None:
        return "no turn"
    return f"turn {place.turn}" if place.step is None else f"step {place.step} of turn {place.turn}"
