"""The surface: which events the model sees, in order, as seqs. ``append`` adds a node, ``replace`` puts one in place of a span.

The rules are those of deepseek-harness's format page, section Surface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.vocabulary import SURFACE


def span(nodes: Sequence[int], op: Replace, seq: int) -> tuple[int, int]:
    """Positions ``(first, last)`` of a replaced span; by surface position, so ``start`` may exceed ``end`` as a number.

    Raises:
        InvariantError: an end of the span is not on the surface, or they stand in the wrong order.
    """
    try:
        first, last = nodes.index(op.start), nodes.index(op.end)
    except ValueError:
        raise InvariantError(f"event {seq} replaces {op.start}..{op.end}, which is not on the surface", seq=seq) from None
    if first > last:
        raise InvariantError(f"event {seq} replaces a span whose end stands before its start", seq=seq)
    return first, last


def check_surface(event: Event, nodes: Sequence[int], earlier: Callable[[int], Event]) -> None:
    """Check an event's surface operation and sources against the surface before it. ``earlier``: the event of a seq before it.

    Raises:
        InvariantError: naming the rule.
    """
    seq, op, sources = event.seq, event.surface_op, event.source_event_seqs
    is_seen = event.type in SURFACE
    if is_seen != (op is not UNSET):
        raise InvariantError(f"event {seq}: {event.type} {'must carry' if is_seen else 'may not carry'} a surfaceOp", seq=seq)
    if sources is not UNSET:
        if not is_seen:
            raise InvariantError(f"event {seq}: {event.type} may not carry sourceEventSeqs", seq=seq)
        if sources and (len(set(sources)) != len(sources) or min(sources) < 0 or max(sources) >= seq):
            raise InvariantError(f"event {seq}: sourceEventSeqs must be unique and earlier than the event", seq=seq)
        if not sources and event.type != "assistant/message":
            raise InvariantError(f"event {seq}: sourceEventSeqs may be empty on assistant/message only", seq=seq)
    if type(op) is Replace:
        first, last = span(nodes, op, seq)
        missing = set(nodes[first : last + 1]) - set(event.sources)
        if missing:
            raise InvariantError(f"event {seq}: sourceEventSeqs must name every event it replaces; {min(missing)} is missing", seq=seq)
        if event.type == "tool/result":
            _check_rewrite(event, [earlier(node) for node in nodes[first : last + 1]])


def _check_rewrite(event: Event, replaced: Sequence[Event]) -> None:
    """A result may be rewritten in place (pruning), but stays the result of the same call."""
    seq = event.seq
    if len(replaced) != 1 or replaced[0].type != "tool/result":
        raise InvariantError(f"event {seq}: a tool/result may replace exactly one tool/result", seq=seq)
    if _without_content(event.data) != _without_content(replaced[0].data):
        raise InvariantError(f"event {seq}: a replacing tool/result may change only the result's content", seq=seq)


def _without_content(data: dict[str, object]) -> object:
    message = data.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return data
    blocks = [{**block, "content": None} if isinstance(block, dict) else block for block in message["content"]]
    return {**data, "message": {**message, "content": blocks}}


def apply(nodes: list[int], event: Event) -> None:
    """Change ``nodes`` as a checked event says."""
    op = event.surface_op
    if type(op) is Replace:
        first, last = span(nodes, op, event.seq)
        nodes[first : last + 1] = [event.seq]
    elif op is not UNSET:
        nodes.append(event.seq)
