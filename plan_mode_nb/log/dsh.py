"""deepseek-harness's JSONL file to header and lines, and back. ``FORMAT.md`` of its recorded logs gives the rules.

Bytes in, bytes out: files and Zstandard frames are the store's. What comes out is a log of this format (packed rows unpacked, old shapes
upgraded, each line as definitions.md fixes it); whether it breaks a rule of the log is found by opening a session on it.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec import Struct, field

from plan_mode_nb.exceptions import FormatError, quoted
from plan_mode_nb.log import codec
from plan_mode_nb.log.codec import decode_batch, encode_batch
from plan_mode_nb.log.events import Event, Header
from plan_mode_nb.log.growing import Lines
from plan_mode_nb.log.headers import read_header
from plan_mode_nb.log.legacy import Upgrade
from plan_mode_nb.log.loaded import BATCH, PACKED, Buffer, Loaded
from plan_mode_nb.log.packed import TAGS, Malformed, Run, is_packed, read_run

_PACKED = tuple(f'{{"type":"{tag}"'.encode() for tag in TAGS)
"""How the writer begins a packed row. A row that begins otherwise and is one is found too, after it failed to be an event."""


class Scan(Struct, frozen=True):
    """What a file holds. ``problems``: one sentence for each part that was left out (a torn tail, damage after the last turn)."""

    header: Header
    lines: Sequence[str]
    problems: list[str] = field(default_factory=list)


def read_jsonl(data: bytes) -> tuple[Header, Sequence[str]]:
    """The header and the event lines of a dsh log. See :func:`scan_jsonl`.

    Raises:
        FormatError: naming the line, the rule and the way out.
    """
    scan = scan_jsonl(data)
    return scan.header, scan.lines


def scan_jsonl(data: bytes) -> Scan:
    """Read a dsh log. A last line without its newline is a torn tail and left out. At the first line that is no JSON, or out of sequence,
    reading stops: the part before it counts, unless a turn ended after it (then more than a tail is damaged, and the log is refused).

    Raises:
        FormatError: naming the line, the rule and the way out.
    """
    end = data.find(b"\n")
    if end < 0:
        raise FormatError("this is not a session log: it has no complete first line", line=1)
    header = _read_header(data[:end])
    reader = _Reader(header, data, end + 1)
    lines, issue = reader.read()
    problems = [] if issue is None else [f"{issue}; what follows it was left out"]
    if issue is None and not data.endswith(b"\n"):
        torn = data.count(b"\n") + 1
        problems.append(f"line {torn} is cut off and was left out")
    return Scan(header, lines, problems)


def write_jsonl(header: Header, lines: Sequence[str]) -> bytes:
    """The log as dsh reads it: the header row, then one event a line."""
    return "".join(f"{line}\n" for line in (header_row(header), *lines)).encode()


def header_row(header: Header) -> str:
    """The header's row, without a newline."""
    return codec.compact({"type": "session", **header.to_json()})


def _read_header(row: bytes) -> Header:
    try:
        value = json.loads(row.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise FormatError("this is not a session log: its first line is not JSON", line=1) from None
    if isinstance(value, dict) and not isinstance(value.get("version"), (int, float)):
        raise FormatError("this is not a session log: its first line has no `version`", line=1)
    header = read_header(value, line=1)
    if value.get("type") != "session":
        raise FormatError("this is not a session log: its first line is not of the type session", line=1)
    return header


class _Reader:
    """Rows to events, by the damage rule."""

    def __init__(self, header: Header, data: bytes, start: int) -> None:
        """``start``: where the row after the header begins."""
        self._data, self._end = data, data.rfind(b"\n")
        self._rows = Buffer(data, start)
        self._kinds: list[str] = []
        self._firsts = array("Q")
        self._length = 0
        self._upgrade = Upgrade(header.id)

    def read(self) -> tuple[Lines, FormatError | None]:
        """The events that count, and what stopped reading before the last complete row.

        Raises:
            FormatError: more than a tail is damaged.
        """
        at, issue = self._rows.start, None
        while issue is None and at < self._end + 1:
            ends = self._stretch(at)
            if not ends:
                ends = [self._data.find(b"\n", at)]
                issue = self._take_each(at, ends)
            elif not self._take_batch(at, ends):
                issue = self._take_each(at, ends)
            at = ends[-1] + 1
        if issue is not None:
            self._refuse_turns(issue)
        firsts = None if self._length == len(self._rows) else self._firsts
        return Lines(Loaded(self._rows, self._kinds, firsts, self._length)), issue

    def _stretch(self, at: int) -> list[int]:
        """Where the next rows end, as far as they can be read in one call: none where the next one is packed."""
        find, data = self._data.find, self._data
        ends: list[int] = []
        while at <= self._end and len(ends) < BATCH and not data.startswith(_PACKED, at):
            ends.append(find(b"\n", at))
            at = ends[-1] + 1
        return ends

    def _take_batch(self, at: int, ends: list[int]) -> bool:
        """Take rows that are the next events and written as this format writes them, all in one call; or none."""
        events = decode_batch(self._data[at : ends[-1]], len(ends))
        if events is None or encode_batch(events) != self._data[at : ends[-1] + 1]:
            return False
        if any(event.seq != seq for seq, event in enumerate(events, start=self._length)):
            return False
        for event, end in zip(events, ends, strict=True):
            self._take(event, end)
        return True

    def _take_each(self, at: int, ends: list[int]) -> FormatError | None:
        for end in ends:
            issue = self._take_row(self._data[at:end], end)
            if issue is not None:
                return issue
            at = end + 1
        return None

    def _take_row(self, row: bytes, end: int) -> FormatError | None:
        """Take one row of any kind, or say why reading stops here."""
        number = len(self._rows) + 2
        try:
            found = _row(row, number)
        except _Unparsable as fault:
            return FormatError(f"line {number} is not an event: {quoted(fault)}", line=number)
        match found:
            case FormatError():
                return self._out_of_shape(row, found, number)
            case Run():
                if found.seq != self._length:
                    return _gap(self._length, found.seq, number)
                self._add(PACKED, end, len(found))
                return None
            case Event():
                if found.seq != self._length:
                    gap = _gap(self._length, found.seq, number)
                    return self._refuse(gap, "where a turn ended") if found.type == "turn/end" else gap
                line = codec.encode(found).encode()
                if line != row:
                    self._rows.replaced[len(self._rows)] = line
                self._take(found, end)
                return None

    def _take(self, event: Event, end: int) -> None:
        try:
            upgraded = self._upgrade(event) if event.type in self._upgrade.types else event
        except FormatError as fault:
            number = len(self._rows) + 2
            raise FormatError(f"line {number}: {fault}", line=number) from None
        if upgraded is not event:
            self._rows.replaced[len(self._rows)] = codec.encode(upgraded).encode()
        self._add(sys.intern(upgraded.type), end, 1)

    def _add(self, kind: str, end: int, events: int) -> None:
        self._firsts.append(self._length)
        self._kinds.append(kind)
        self._rows.ends.append(end)
        self._length += events

    def _out_of_shape(self, row: bytes, fault: FormatError, number: int) -> FormatError:
        """JSON, but not an event: refused where it stands in sequence (no damage looks like that), a gap where it does not."""
        value = _parsed(row)
        seq = value.get("seq") if isinstance(value, dict) else None
        if seq == self._length and not isinstance(seq, bool):
            raise FormatError(f"{fault}; correct that line in a copy of the file", line=number)
        gap = _gap(self._length, seq, number)
        return self._refuse(gap, "where a turn ended") if isinstance(value, dict) and value.get("type") == "turn/end" else gap

    def _refuse_turns(self, issue: FormatError) -> None:
        """Refuse the log when a turn ended after the row that stopped reading: then more than a tail is damaged."""
        at = self._data.find(b"\n", self._rows.ends[-1] + 1 if self._rows.ends else self._rows.start) + 1
        while 0 < at <= self._end:
            end = self._data.find(b"\n", at)
            if _ends_turn(self._data[at:end]):
                self._refuse(issue, "and turns ended after it")
            at = end + 1

    def _refuse(self, issue: FormatError, why: str) -> NoReturn:
        raise FormatError(f"{issue}, {why}; restore the file from a copy", line=issue.line)


def _gap(expected: int, found: object, number: int) -> FormatError:
    return FormatError(f"line {number}: expected seq {expected}, found {quoted(found)}", line=number)


class _Unparsable(ValueError):
    """A line that is no JSON, or a packed row that is malformed."""


def _row(row: bytes, number: int) -> Event | Run | FormatError:
    """What a row holds; a FormatError when it is JSON but no event."""
    fault = None
    if not row.startswith(_PACKED):
        try:
            return codec.decode(row, at=number, lone="keep")
        except FormatError as error:
            fault = error
        if not is_packed(_parsed(row)):
            return fault
    try:
        return read_run(row)
    except Malformed as malformed:
        raise _Unparsable(f"a packed row is malformed: {malformed}") from None
    except (ValueError, RecursionError) as error:
        raise _Unparsable(str(error)) from None


def _parsed(row: bytes) -> Any:
    try:
        return json.loads(row.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise _Unparsable(str(error)) from None


def _ends_turn(row: bytes) -> bool:
    try:
        value = _parsed(row)
    except _Unparsable:
        return False
    return isinstance(value, dict) and value.get("type") == "turn/end"
