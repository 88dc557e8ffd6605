"""A session: one conversation, one append-only list of events.

Appends are staged: the whole batch is encoded and checked, then written ahead to the sink, and only then becomes part of the log. So a
refused or unwritten batch leaves nothing behind, and nothing visible can happen before its event is safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from msgspec import UNSET

from plan_mode_nb.exceptions import FormatError, InvariantError, LogError
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.codec import decode, stage
from plan_mode_nb.log.events import Clock, Draft, Event, Header, SessionId
from plan_mode_nb.log.fold import Fold, Together
from plan_mode_nb.log.growing import Events, Lines
from plan_mode_nb.log.invariants import Place, Trace, place_of
from plan_mode_nb.log.loaded import Loaded, load_lines
from plan_mode_nb.log.vocabulary import DELTA, draft

S = TypeVar("S")
V = TypeVar("V")
Listener = Callable[[Sequence[Event]], None]
_logger = logging.getLogger(__name__)


class Sink(Protocol):
    """Where lines are made durable before they count. One call is one write; it raises to refuse the batch."""

    def write(self, lines: Sequence[str]) -> None:
        """Keep these lines, in order, all or none."""


class Session:
    """``events`` and ``lines`` (the same events as text) only ever grow; treat both as read-only.

    Not thread-safe for appending: every append runs on the agent thread. Reading a prefix from another thread is safe.
    """

    def __init__(
        self,
        header: Header,
        *,
        clock: Clock,
        lines: Sequence[str] = (),
        sink: Sink | None = None,
        folds: Sequence[Fold[Any, Any]] = (),
    ) -> None:
        """Open a log from its lines (none: a new one). The sink receives new lines only.

        ``folds``: what will be asked for at once, folded while the lines are read, so that they are decoded once.

        Raises:
            LogError: the lines are not a log of this format or break one of its rules.
        """
        self.header = header
        self._trace = Trace()
        together = Together([fold for fold in folds if fold.types is not None and DELTA not in fold.types])
        loaded = self._load(lines, together)
        self.events, self.lines = Events(loaded), Lines(loaded)
        self._trace.place = place_of(self.events)
        self.sink = sink
        self._clock = clock
        self._owed: list[tuple[Event, str]] = []
        self._owed_place = self._trace.place
        self._listeners: list[Listener] = []
        self._folds: dict[int, tuple[Any, int, Any]] = {
            id(fold): (fold, len(loaded), state) for fold, state in zip(together.folds, together.states, strict=True)
        }

    def _load(self, lines: Sequence[str], together: Together) -> Loaded:
        """Check every event of what was read; a log that a scan read keeps its form, other lines are shared."""
        if isinstance(lines, Lines) and lines.is_as_loaded:
            rows = lines.loaded
            for event in rows.samples():
                try:
                    self._trace.take(event, rows.event)
                except LogError as error:
                    raise _located(error, rows.row_of(event.seq)) from None
                together.take(event)
            return rows
        given = tuple(lines)
        check, fold = self._trace.take, together.take

        def earlier(seq: int) -> Event:
            return decode(given[seq])

        def visit(event: Event) -> None:
            check(event, earlier)
            fold(event)

        return load_lines(given, visit)

    @property
    def place(self) -> Place:
        """The open turn and step, the next numbers, and the calls that have no result yet; as if what is owed were written."""
        return self._owed_place if self._owed else self._trace.place

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.header.id

    def __len__(self) -> int:
        return len(self.events)

    def __bool__(self) -> bool:
        """A session without events is still a session: ``session or other`` must not pass it over."""
        return True

    @property
    def owed(self) -> int:
        """How many closing events wait for the first new one."""
        return len(self._owed)

    def owe(self, drafts: Sequence[Draft], *, time: int) -> None:
        """Closing events of an interrupted log (``closers(events)``, with the last event's time), behind those that are owed already.

        They are written with, and before, the first new event, so looking changes no file.

        Raises:
            LogError: they do not continue this log.
        """
        first = len(self.events) + len(self._owed)
        staged = [*self._owed, *(stage(each, first + offset, time) for offset, each in enumerate(drafts))]
        self._owed_place = self._trace.check([event for event, _ in staged], self.events)
        self._owed = staged

    def append(self, *drafts: Draft) -> tuple[Event, ...]:
        """Add events in order, all or none; returns them with their seq and time.

        Raises:
            LogError: a draft is not lossless JSON, not of the vocabulary, or breaks an invariant.
            StoreError: the sink could not keep them.
        """
        return self._write(drafts) if drafts else ()

    def settle(self) -> None:
        """Write what is owed now: somebody else's new event is the occasion (a child's log closes with its parent's).

        Raises:
            StoreError: the sink could not keep it; it stays owed.
        """
        if self._owed:
            self._write(())

    def _write(self, drafts: Sequence[Draft]) -> tuple[Event, ...]:
        now, owed = self._clock(), len(self._owed)
        first = len(self.events) + owed
        staged = [*self._owed, *(stage(each, first + offset, now) for offset, each in enumerate(drafts))]
        events = tuple(event for event, _ in staged)
        place = self._trace.check(events, self.events)
        lines = [line for _, line in staged]
        if self.sink is not None:
            self.sink.write(lines)
        self.events.extend(events)
        self.lines.extend(lines)
        self._trace.commit(events, place)
        self._owed = []
        for listener in tuple(self._listeners):
            try:
                listener(events)
            except Exception:  # the batch is committed: a fault of a listener must not undo or hide that
                _logger.exception("a listener of session %s failed at events %d..%d", self.id, events[0].seq, events[-1].seq)
        return events[owed:]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(batch)`` after each append, on the appending thread; returns the undo."""
        self._listeners.append(listener)

        def undo() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return undo

    def fold(self, fold: Fold[S, V]) -> V:
        """The fold's value now. Reading costs O(events since the last reading), at any length."""
        # Taken out while it moves: a step may change its state in place, and one that raises must not be resumed half done.
        kept, seen, state = self._folds.pop(id(fold), (fold, 0, None))
        if state is None:
            state = fold.start()
        if seen < len(self.events):
            step = fold.step
            for event in self.events.of(fold.types, seen):
                state = step(state, event)
        self._folds[id(fold)] = (kept, len(self.events), state)
        return fold.value(state)

    def fork(self, length: int, *, id: SessionId) -> Session:
        """A new session that begins with this one's first ``length`` events and has no sink yet; this one is untouched.

        An open turn of the seed is closed as interrupted; then ``session/end-seed`` marks the seed's end, unless it already ends in one.

        Raises:
            FormatError: ``length`` lies outside the log.
        """
        if not 0 <= length <= len(self.events):
            raise FormatError(f"cannot fork after {length} events: this session has {len(self.events)}")
        header = Header(
            id=id,
            created_at=self._clock(),
            delegation_depth=self.header.delegation_depth,
            cwd=self.header.cwd,
            parent_session=self.id,
            seed_length=length,
        )
        return self._seeded(header, length)

    def child(self, *, id: SessionId, length: int = 0, answers: Mapping[str, str] = MappingProxyType({})) -> Session:
        """The session of a child agent, one delegation deeper; it has no sink yet and this one is untouched.

        ``length``: it begins with so many of this one's events, as :meth:`fork` has it; 0: with none. ``answers``: what it is told instead
        of the results that calls of an open step have not had yet, by call id.
        """
        header = Header(
            id=id,
            created_at=self._clock(),
            delegation_depth=self.header.delegation_depth + 1,
            cwd=self.header.cwd,
            parent_session=self.id,
            seed_length=length or UNSET,
            origin="subagent",
        )
        return self._seeded(header, length, answers) if length else Session(header, clock=self._clock)

    def _seeded(self, header: Header, length: int, answers: Mapping[str, str] = MappingProxyType({})) -> Session:
        seeded = Session(header, clock=self._clock, lines=self.lines[:length])
        if seeded.place.turn is not None:
            seeded.owe(closers(seeded.events, answers), time=seeded.events[-1].time)
        if not seeded.events or seeded.events[-1].type != "session/end-seed":
            seeded.append(draft("session/end-seed", {}))
        return seeded


def _located(error: LogError, row: int | None) -> LogError:
    """The error of an event that came from a row of a file: names its line, whose first is the header, and says what to do."""
    if row is None:
        return error
    line = row + 2
    if isinstance(error, InvariantError):
        return InvariantError(f"line {line}: {error}; correct that line in a copy of the file, or open an older copy", seq=error.seq)
    return FormatError(f"line {line}: {error}", line=line)
