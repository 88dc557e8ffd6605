"""deepseek-harness's JSONL file to header and lines, and back. ``FORMAT.md`` of its recorded logs gives the rules.

Bytes in, bytes out: files and Zstandard frames are the store's. What comes out is a log of this format (packed rows unpacked, old shapes
upgraded, each line as definitions.md fixes it); whether it breaks a rule of the log is found by opening a session on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log import codec
from plan_mode_nb.log.events import Event, Header
from plan_mode_nb.log.headers import read_header
from plan_mode_nb.log.legacy import Upgrade
from plan_mode_nb.log.packed import TAGS, Malformed, expand, is_packed

_PACKED = tuple(f'{{"type":"{tag}"'.encode() for tag in TAGS)
"""How the writer begins a packed row. A row that begins otherwise and is one is found too, after it failed to be an event."""


@dataclass(frozen=True)
class Scan:
    """What a file holds. ``problems``: one sentence for each part that was left out (a torn tail, damage after the last turn)."""

    header: Header
    lines: list[str]
    problems: list[str] = field(default_factory=list)


def read_jsonl(data: bytes) -> tuple[Header, list[str]]:
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
    first, newline, rest = data.partition(b"\n")
    if not newline:
        raise FormatError("this is not a session log: it has no complete first line", line=1)
    rows = rest.split(b"\n")
    torn = rows.pop()
    header = _read_header(first)
    reader = _Reader(header)
    for number, row in enumerate(rows, start=2):
        reader.read(row, number)
    problems = [] if reader.issue is None else [f"{reader.issue}; what follows it was left out"]
    if torn and reader.issue is None:
        problems.append(f"line {len(rows) + 2} is cut off and was left out")
    return Scan(header, reader.lines, problems)


def write_jsonl(header: Header, lines: Sequence[str]) -> bytes:
    """The log as dsh reads it: the header row, then one event a line."""
    return "".join(f"{line}\n" for line in (header_row(header), *lines)).encode()


def header_row(header: Header) -> str:
    """The header's row, without a newline."""
    return json.dumps({"type": "session", **header.to_json()}, ensure_ascii=False, separators=(",", ":"))


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
    """Rows to lines, by the damage rule. ``issue``: the first thing that stopped reading."""

    def __init__(self, header: Header) -> None:
        self.lines: list[str] = []
        self.issue: FormatError | None = None
        self._upgrade = Upgrade(header.id)

    def read(self, row: bytes, number: int) -> None:
        """Take one row; ``number``: its line in the file, from 1."""
        if self.issue is not None:
            if _ends_turn(row):
                raise FormatError(f"{self.issue}, and turns ended after it; restore the file from a copy", line=self.issue.line)
            return
        try:
            events = _events(row, number)
        except _Unparsable as fault:
            self.issue = FormatError(f"line {number} is not an event: {fault}", line=number)
            return
        if isinstance(events, FormatError):
            self._out_of_shape(row, events, number)
            return
        lines: list[str] = []
        for event in events:
            expected = len(self.lines) + len(lines)
            if event.seq != expected:
                self._gap(expected, event.seq, number, any(each.type == "turn/end" for each in events))
                return
            if event.type in self._upgrade.types:
                event = self._upgrade(event)
            lines.append(codec.encode(event))
        self.lines.extend(lines)

    def _out_of_shape(self, row: bytes, fault: FormatError, number: int) -> None:
        """JSON, but not an event: refused where it stands in sequence (no damage looks like that), a gap where it does not."""
        value = _parsed(row)
        seq = value.get("seq") if isinstance(value, dict) else None
        if seq == len(self.lines) and not isinstance(seq, bool):
            raise FormatError(f"{fault}; correct that line in a copy of the file", line=number)
        self._gap(len(self.lines), seq, number, isinstance(value, dict) and value.get("type") == "turn/end")

    def _gap(self, expected: int, found: object, number: int, ends_turn: bool) -> None:
        self.issue = FormatError(f"line {number}: expected seq {expected}, found {found}", line=number)
        if ends_turn:
            raise FormatError(f"{self.issue}, where a turn ended; restore the file from a copy", line=number)


class _Unparsable(ValueError):
    """A line that is no JSON, or a packed row that is malformed."""


def _events(row: bytes, number: int) -> list[Event] | FormatError:
    """The events of one row; a FormatError when it is JSON but no event."""
    fault = None
    if not row.startswith(_PACKED):
        try:
            return [codec.decode(row, at=number, lone="keep")]
        except FormatError as error:
            fault = error
    value = _parsed(row)
    if not is_packed(value):
        return fault or _events(b" " + row, number)
    try:
        return expand(value)
    except Malformed as malformed:
        raise _Unparsable(f"a packed row is malformed: {malformed}") from None


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
