"""Which part of a conversation is compacted: from its beginning to a cut that leaves every call together with its result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from plan_mode_nb.agent.compaction import COMPACT, Span
from plan_mode_nb.folds.tokens import MEASURE
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.session import Session


def head_span(session: Session, retain: int, *, least: int = 0) -> Span | None:
    """The longest span at the beginning that leaves the newest ``retain`` tokens (estimated) as they are, the newest node in any case.

    What the open step began with stays, too: it is what the person wants now. None where nothing is left to compact: fewer than ``least``
    tokens, or one summary of an earlier compaction and nothing besides.
    """
    measure = session.fold(MEASURE)
    nodes = list(measure.nodes)
    events = [session.events[seq] for seq in nodes]
    began = _open_step(session)
    own = (place for place, event in enumerate(events) if event.seq > began and not is_checkpoint(event))
    keep = min(_tail(measure.prices, retain), next(own, len(nodes)))
    whole = whole_cuts(events)
    while keep > 0 and not whole[keep]:
        keep -= 1
    if keep == 0 or sum(measure.prices[:keep]) < least or (keep == 1 and is_checkpoint(events[0])):
        return None
    return Span(nodes[0], nodes[keep - 1])


def half_span(session: Session, span: Span, *, least: int = 0) -> Span | None:
    """The longest span at the beginning that has at most half the tokens of ``span``, and ``least``; None where a cut allows none."""
    measure = session.fold(MEASURE)
    nodes = list(measure.nodes)
    end = nodes.index(span.end) + 1
    events = [session.events[seq] for seq in nodes[:end]]
    whole, held = whole_cuts(events), [0, *accumulate(measure.prices[:end])]
    for cut in range(end - 1, 0, -1):
        if whole[cut] and 2 * held[cut] <= held[end]:
            is_worth_it = held[cut] >= least and not (cut == 1 and is_checkpoint(events[0]))
            return Span(nodes[0], nodes[cut - 1]) if is_worth_it else None
    return None


def shadowed(session: Session, span: Span) -> list[int]:
    """The seqs of a span, in surface order.

    Raises:
        ValueError: an end of it is not on the surface.
    """
    nodes = list(session.fold(MEASURE).nodes)
    return nodes[nodes.index(span.start) : nodes.index(span.end) + 1]


def whole_cuts(surface: Sequence[Event]) -> list[bool]:
    """Whether the cut before each node, and the one behind the last, leaves every result with its call.

    A call that never got a result (deepseek-harness leaves such calls in closed turns) binds nothing.
    """
    asked: dict[str, int] = {}
    change = [0] * (len(surface) + 2)
    for place, event in enumerate(surface):
        if event.type == "assistant/message":
            asked.update({block["id"]: place for block in event.data["message"]["content"] if block["type"] == "tool-call"})
        elif event.type == "tool/result" and (at := asked.get(event.data["message"]["source"]["callId"])) is not None:
            change[at + 1] += 1
            change[place + 1] -= 1
    return [between == 0 for between in accumulate(change)][: len(surface) + 1]


def is_checkpoint(event: Event) -> bool:
    """Whether an event is the message that stands for a compacted span."""
    return event.type == "user/message" and event.data["source"].get("plugin") == COMPACT


def _tail(prices: Sequence[int], retain: int) -> int:
    """Where the newest nodes begin that together have at least ``retain`` tokens."""
    held = 0
    for place in range(len(prices) - 1, -1, -1):
        held += prices[place]
        if held >= retain:
            return place
    return 0


def _open_step(session: Session) -> int:
    """The seq at which the open step began; without one, past the end."""
    if session.place.step is None:
        return len(session.events)
    return next(event.seq for event in reversed(session.events) if event.type == "step/start")
