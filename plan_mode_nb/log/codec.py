"""Events to and from their line: one compact JSON object, bytes fixed in definitions.md.

Keys stand in the order type, seq, time, data, surfaceOp, sourceEventSeqs, ignorable; ``data`` keys as appended; no spaces; non-ASCII
unescaped. A line is the unit of storage everywhere (journal, metadata chunk, JSONL) and copies are compared as strings.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.events import Draft, Event

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode
SAFE_INTEGER = 2**53 - 1
"""JavaScript's largest safe integer: beyond it dsh could not read the number back unchanged."""


def encode(event: Event) -> str:
    """The event's line, without a newline."""
    return _encode(event).decode()


def decode(line: str | bytes, *, at: int | None = None) -> Event:
    """Read one line. ``at``: its 1-based number in the source, for the message.

    Raises:
        FormatError: not JSON, or not exactly the envelope.
    """
    where = "" if at is None else f"line {at}: "
    try:
        event = _decode(line)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise FormatError(f"{where}not an event: {error}", line=at) from None
    if event.ignorable is False:
        raise FormatError(f"{where}`ignorable` may only be true", line=at)
    if event.seq < 0 or abs(event.time) > SAFE_INTEGER:
        raise FormatError(f"{where}`seq` and `time` must be safe integers", line=at)
    return event


def decode_all(lines: Iterable[str]) -> list[Event]:
    """Read lines whose seqs are contiguous from 0, in order.

    Raises:
        FormatError: at the first line that is not an event or not the next one.
    """
    events = []
    for seq, line in enumerate(lines):
        event = decode(line, at=seq + 1)
        if event.seq != seq:
            raise FormatError(f"line {seq + 1}: expected seq {seq}, found {event.seq}", line=seq + 1)
        events.append(event)
    return events


def stage(draft: Draft, seq: int, time: int) -> tuple[Event, str]:
    """Give a draft its place. What is kept in memory is read back from the line, so both are equal and no caller can change them later.

    Raises:
        FormatError: ``data`` is not lossless JSON (a NaN, a tuple, bytes, a key that is no string, a lone surrogate, -0.0…).
    """
    event = Event(draft.type, seq, time, draft.data, draft.surface_op, draft.source_event_seqs, draft.ignorable)
    try:
        line = _encode(event)
        kept = _decode(line)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FormatError(f"{draft.type}: its data is not lossless JSON: {error}") from None
    if kept.data != draft.data or (b"-0" in line and _has_negative_zero(kept.data)):
        raise FormatError(f"{draft.type}: its data is not lossless JSON; use objects, lists, strings, finite numbers, booleans, null")
    return kept, line.decode()


def _has_negative_zero(value: object) -> bool:
    """dsh refuses -0, which JavaScript would read back as 0."""
    if isinstance(value, float):
        return value == 0 and str(value).startswith("-")
    if isinstance(value, dict):
        return any(_has_negative_zero(item) for item in value.values())
    return isinstance(value, list) and any(_has_negative_zero(item) for item in value)
