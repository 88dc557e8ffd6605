"""A log's lines. Those that were appended here are kept; those that were loaded are encoded again from their events when asked for.

Keeping text and values of every event would hold a large restored log in memory twice, and encoding takes less than a microsecond. A loaded
line that the encoder would write otherwise (another writer's spacing or key order, half a surrogate pair) is kept as it came, because
copies are compared as strings; for the others a hash is, so that an event which somebody changed in memory is found and never written.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log.codec import encode
from plan_mode_nb.log.events import Event


class Lines(Sequence[str]):
    """The lines of a session, which only grow. Reading a prefix while another thread appends is safe.

    Reading raises InvariantError where a loaded event is not what it was.
    """

    __slots__ = ("_appended", "_events", "_hashes", "_odd")

    def __init__(self, events: Sequence[Event], given: Sequence[str]) -> None:
        """``events``: the session's, which may grow. ``given``: the lines of those that are there now, one each."""
        self._events = events
        self._hashes = array("q", map(hash, given))
        self._odd = {seq: line for seq, line in enumerate(given) if encode(events[seq]) != line}
        self._appended: list[str] = []

    def extend(self, lines: Sequence[str]) -> None:
        """Take the lines of events that were appended."""
        self._appended.extend(lines)

    def __len__(self) -> int:
        return len(self._hashes) + len(self._appended)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._line(seq) for seq in range(*index.indices(len(self)))]
        seq = index + len(self) if index < 0 else index
        if not 0 <= seq < len(self):
            raise IndexError(f"there is no line {index}: this session has {len(self)}")
        return self._line(seq)

    def __iter__(self) -> Iterator[str]:
        for seq in range(len(self)):
            yield self._line(seq)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Lines, list, tuple)):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Lines({list(self)!r})"

    def _line(self, seq: int) -> str:
        loaded = len(self._hashes)
        if seq >= loaded:
            return self._appended[seq - loaded]
        if seq in self._odd:
            return self._odd[seq]
        line = encode(self._events[seq])
        if hash(line) != self._hashes[seq]:
            raise InvariantError(f"event {seq} was changed in memory; restart the kernel to read it again as it was", seq=seq)
        return line
