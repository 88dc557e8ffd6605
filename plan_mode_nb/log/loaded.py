"""A log that was read, as the text it was read from: events are decoded when asked for.

A restored conversation is long and rarely looked at whole. Its text is the smallest form of it, and the one that cannot be changed by
accident: an event is a fresh value each time it is asked for. Of every row its kind is kept, so a fold decodes what it folds and no more.
A row is a line, or one of deepseek-harness's packed rows, which stands for many.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.codec import decode, decode_batch, decode_next
from plan_mode_nb.log.deltas import BEGINNING, is_delta
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.packed import Run, read_run
from plan_mode_nb.log.vocabulary import CHUNK, DELTA, kind_of

BATCH = 128
"""Rows decoded in one call: enough to be fast, few enough that their values are gone before the garbage collector looks for them."""
PACKED = "packed"
"""The kind of a packed row; no event has that type."""


class Rows(Protocol):
    """Rows of text by place, from 0."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> str | bytes: ...

    def joined(self, places: Sequence[int]) -> bytes:
        """These rows, a newline between each two."""


class Listed:
    """Rows that somebody holds as a list of lines; they are shared, not copied."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines if isinstance(lines, (list, tuple)) else list(lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int, /) -> str:
        return self.lines[place]

    def joined(self, places: Sequence[int]) -> bytes:
        """These rows, a newline between each two."""
        # Half a surrogate pair is no UTF-8: the strict parser refuses it, and the line is looked at by itself.
        return "\n".join(map(self.lines.__getitem__, places)).encode("utf-8", "surrogatepass")


class Buffer:
    """The rows of a file's bytes, without a copy of them. ``replaced``: rows that are read in another form than the file has."""

    def __init__(self, data: bytes, start: int) -> None:
        """``start``: where row 0 begins."""
        self.data, self.start = data, start
        self.ends = array("Q")
        self.replaced: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int, /) -> bytes:
        own = self.replaced.get(place)
        return self.data[self._start(place) : self.ends[place]] if own is None else own

    def joined(self, places: Sequence[int]) -> bytes:
        """These rows, a newline between each two."""
        first, last = places[0], places[-1]
        if last - first == len(places) - 1 and not self.replaced:
            return self.data[self._start(first) : self.ends[last]]
        return b"\n".join(map(self.__getitem__, places))

    def _start(self, place: int) -> int:
        return self.ends[place - 1] + 1 if place else self.start


class Loaded:
    """The events of a log that was read, and their lines. Neither is ever changed."""

    __slots__ = ("_firsts", "_kinds", "_length", "_recent", "_rows")

    def __init__(self, rows: Rows, kinds: Sequence[str], firsts: Sequence[int] | None, length: int) -> None:
        """``kinds``: each row's event type, or DELTA, or PACKED. ``firsts``: each row's first seq; None where each row is one event."""
        self._rows, self._kinds, self._firsts, self._length = rows, kinds, firsts, length
        self._recent: tuple[int, Run] | None = None

    def __len__(self) -> int:
        return self._length

    def row_of(self, seq: int) -> int | None:
        """Which row of a file holds an event, from 0; None for one that came in a list of lines."""
        return self._place(seq)[0] if isinstance(self._rows, Buffer) else None

    def line(self, seq: int) -> str:
        """The line of an event."""
        place, member = self._place(seq)
        if self._kinds[place] == PACKED:
            return self._run(place).line(member)
        row = self._rows[place]
        return row if isinstance(row, str) else row.decode()

    def event(self, seq: int) -> Event:
        """An event."""
        place, member = self._place(seq)
        return self._run(place).event(member) if self._kinds[place] == PACKED else decode(self._rows[place])

    def type(self, seq: int) -> str:
        """An event's type."""
        kind = self._kinds[self._place(seq)[0]]
        return CHUNK if kind in (PACKED, DELTA) else kind

    def lines(self, start: int = 0) -> Iterator[str]:
        """The lines from seq ``start`` on, in order."""
        if start >= self._length:
            return
        first, member = self._place(start)
        for place in range(first, len(self._kinds)):
            if self._kinds[place] == PACKED:
                yield from self._run(place).lines(member if place == first else 0)
            else:
                row = self._rows[place]
                yield row if isinstance(row, str) else row.decode()

    def events(self, types: frozenset[str] | None = None, start: int = 0) -> Iterator[Event]:
        """The events from seq ``start`` on, in order; with ``types``, those of these kinds alone."""
        if start >= self._length:
            return iter(())
        first, member = self._place(start)
        with_deltas = types is None or DELTA in types
        found = self._events(range(first, len(self._kinds)), types if types is None or not with_deltas else types | {PACKED, CHUNK})
        for _ in range(member if with_deltas else 0):
            next(found)
        # A scan does not look into chunks, so a row that it says is one may be a delta.
        is_exact = types is None or (CHUNK in types) == with_deltas
        return found if types is None or is_exact else (event for event in found if kind_of(event) in types)

    def samples(self) -> Iterator[Event]:
        """The events in order, of each packed row the first only: the others are of the same shape and differ in their text."""
        return self._events(range(len(self._kinds)), None, members=1)

    def _events(self, places: Sequence[int], kinds: frozenset[str] | None, members: int | None = None) -> Iterator[Event]:
        waiting: list[int] = []
        for place in places:
            kind = self._kinds[place]
            if kinds is not None and kind not in kinds:
                continue
            if kind == PACKED:
                yield from self._decoded(waiting)
                run, waiting = self._run(place), []
                yield from map(run.event, range(len(run) if members is None else members))
                continue
            waiting.append(place)
            if len(waiting) == BATCH:
                yield from self._decoded(waiting)
                waiting = []
        yield from self._decoded(waiting)

    def _decoded(self, places: Sequence[int]) -> Sequence[Event]:
        if not places:
            return ()
        return decode_batch(self._rows.joined(places), len(places)) or [decode(self._rows[place]) for place in places]

    def _place(self, seq: int) -> tuple[int, int]:
        """The row that holds an event, and which member of it the event is."""
        if self._firsts is None:
            return seq, 0
        place = bisect_right(self._firsts, seq) - 1
        return place, seq - self._firsts[place]

    def _run(self, place: int) -> Run:
        recent = self._recent
        if recent is None or recent[0] != place:
            row = self._rows[place]
            self._recent = recent = (place, read_run(row if isinstance(row, bytes) else row.encode()))
        return recent[1]


def load_lines(lines: Sequence[str], visit: Callable[[Event], None]) -> Loaded:
    """Read lines whose seqs are contiguous from 0; ``visit`` gets each event in order, and may refuse it.

    It does not get the streamed pieces of answers that could be checked without making their events.

    Raises:
        FormatError: at the first line that is not an event or not the next one.
    """
    rows = Listed(lines)
    kinds: list[str] = []
    for seq, line in enumerate(rows.lines):
        if line.startswith(BEGINNING) and is_delta(line, seq):
            kinds.append(DELTA)
            continue
        event = decode_next(line, seq) or _looked_at(line, seq)
        kinds.append(sys.intern(event.type))
        visit(event)
    return Loaded(rows, kinds, None, len(kinds))


def _looked_at(line: str, seq: int) -> Event:
    event = decode(line, at=seq + 1)
    if event.seq != seq:
        raise FormatError(f"line {seq + 1}: expected seq {seq}, found {event.seq}", line=seq + 1)
    return event


NOTHING = Loaded(Listed(()), (), None, 0)
"""The log that nothing was read from."""
