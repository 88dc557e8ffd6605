"""Events to and from their line: one compact JSON object, bytes fixed in definitions.md.

Keys stand in the order type, seq, time, data, surfaceOp, sourceEventSeqs, ignorable; ``data`` keys as appended; no spaces; non-ASCII
unescaped. A line is the unit of storage everywhere (journal, metadata chunk, JSONL) and copies are compared as strings.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NoReturn

import msgspec

from plan_mode_nb.exceptions import FormatError, quoted
from plan_mode_nb.log.events import SAFE_INTEGER, Draft, Event, Replace
from plan_mode_nb.log.faults import sentence

_encoder = msgspec.json.Encoder()
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines
_decoder = msgspec.json.Decoder(Event)
_decode, _decode_lines = _decoder.decode, _decoder.decode_lines
FAULTS: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError)
"""What the strict parser raises."""
_LONG_NUMBER = re.compile(rb"\d{16}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(event: Event) -> str:
    """The event's line, without a newline. A lone surrogate is written as its escape."""
    try:
        return _encode(event).decode()
    except UnicodeEncodeError:
        return compact(msgspec.to_builtins(event))


def compact(value: Any) -> str:
    """A JSON value in the fixed form of a line. A lone surrogate is written as its escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def decode(line: str | bytes, *, at: int | None = None, lone: Literal["replace", "keep"] = "replace") -> Event:
    """Read one line. ``at``: its 1-based number in the source, for the message.

    ``lone``: what becomes of a lone UTF-16 surrogate, which JavaScript can leave where it cut a string and UTF-8 cannot hold. U+FFFD in the
    event, so that it can be sent and shown, while its line keeps the escape; or kept, to be written again.

    Raises:
        FormatError: not one line of JSON, or not exactly the envelope.
    """
    where = "" if at is None else f"line {at}: "
    try:
        event = _decode(line)
    except FAULTS as error:
        event = _decode_as_javascript(line, where, at, error, lone)
    if event.ignorable is False:
        raise FormatError(f"{where}`ignorable` may only be true", line=at)
    if isinstance(event.surface_op, Replace) and "op" not in json.loads(line)["surfaceOp"]:
        raise FormatError(f'{where}`surfaceOp` must be "append" or exactly {{op: "replace", start, end}}', line=at)
    if ("\n" in line) if isinstance(line, str) else (b"\n" in line):
        raise FormatError(f"{where}an event must stand on one line", line=at)
    return event


def decode_all(lines: Iterable[str]) -> list[Event]:
    """Read lines whose seqs are contiguous from 0, in order.

    Raises:
        FormatError: at the first line that is not an event or not the next one.
    """
    events: list[Event] = []
    for at, line in enumerate(lines, start=1):
        event = decode(line, at=at)
        if event.seq != len(events):
            raise FormatError(f"line {at}: expected seq {at - 1}, found {event.seq}", line=at)
        events.append(event)
    return events


def decode_batch(text: bytes, count: int) -> list[Event] | None:
    """The events of ``count`` rows in one call; None where one of them needs a closer look, by :func:`decode`.

    Each row is one JSON value, or is found out not to be: the parser lets a value run over a newline and two stand on one line.
    """
    try:
        events = _decode_lines(text)
    except FAULTS:
        return None
    return events if len(events) == count and all(map(_is_plain, events)) else None


def decode_next(line: str, seq: int) -> Event | None:
    """The event of a line, if it is the event ``seq``; None where the line needs a closer look, by :func:`decode`."""
    try:
        event = _decode(line)
    except FAULTS:
        return None
    return event if event.seq == seq and _is_plain(event) and "\n" not in line else None


def encode_batch(events: Sequence[Event]) -> bytes | None:
    """The events' lines, each with its newline; None where one holds half a surrogate pair."""
    try:
        return _encode_lines(events)
    except UnicodeEncodeError:
        return None


def _is_plain(event: Event) -> bool:
    """Whether nothing about an event needs a closer look at its line (see :func:`decode`)."""
    return event.ignorable is not False and type(event.surface_op) is not Replace


def stage(draft: Draft, seq: int, time: int) -> tuple[Event, str]:
    """Give a draft its place. What is kept in memory is read back from the line, so both are equal and no caller can change them later.

    Raises:
        FormatError: ``data`` is not lossless JSON (a NaN, a tuple, bytes, a key that is no string, a lone surrogate, -0.0, an integer
            beyond 2**53…).
    """
    event = Event(draft.type, seq, time, draft.data, draft.surface_op, draft.source_event_seqs, draft.ignorable)
    try:
        line = _encode(event)
        kept = _decode(line)
        lossless = kept.data == draft.data and not _unsafe(line, kept.data)
    except (*FAULTS, TypeError, OverflowError) as error:
        raise FormatError(f"{draft.type}: its data is not lossless JSON: {error}") from None
    if not lossless:
        raise FormatError(
            f"{draft.type}: its data is not lossless JSON; use objects, lists, strings, booleans, null and numbers that JavaScript keeps"
        )
    return kept, line.decode()


def _unsafe(line: bytes, data: Any) -> bool:
    """Whether a number would not come back from JavaScript. The search of the line spares nearly every event the walk."""
    return (b"-0" in line or _LONG_NUMBER.search(line) is not None) and _has_unsafe_number(data)


def _has_unsafe_number(value: Any) -> bool:
    if isinstance(value, float):
        return value == 0 and str(value).startswith("-")
    if isinstance(value, int):
        return abs(value) > SAFE_INTEGER
    if isinstance(value, dict):
        return any(_has_unsafe_number(item) for item in value.values())
    return isinstance(value, list) and any(_has_unsafe_number(item) for item in value)


def parse_as_javascript(text: str, *, lone: Literal["replace", "keep"]) -> Any:
    """A JSON value as ``JSON.parse`` reads it: ``3.0`` and ``1e3`` are integers, large integers are not; ``lone`` as in :func:`decode`.

    Raises:
        ValueError, RecursionError: it is not JSON, or holds a number that is out of range.
    """
    return _as_python(json.loads(text, parse_constant=_no_constant), "\ufffd" if lone == "replace" else r"\g<0>")


def _decode_as_javascript(line: str | bytes, where: str, at: int | None, fault: Exception, lone: Literal["replace", "keep"]) -> Event:
    """The rare line that ``JSON.parse`` reads and a strict UTF-8 parser does not."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        text.encode()
        return msgspec.convert(parse_as_javascript(text, lone=lone), Event)
    except FAULTS as error:
        found = fault if isinstance(error, json.JSONDecodeError) else error
        reason = sentence(found, "it") if isinstance(found, msgspec.ValidationError) else quoted(found)
        raise FormatError(f"{where}not an event: {reason}", line=at) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _as_python(value: Any, surrogate: str) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(surrogate, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is out of range")
        return int(value) if value.is_integer() and abs(value) <= SAFE_INTEGER else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= SAFE_INTEGER else float(value)
    if isinstance(value, dict):
        return {_as_python(key, surrogate): _as_python(item, surrogate) for key, item in value.items()}
    return [_as_python(item, surrogate) for item in value] if isinstance(value, list) else value
