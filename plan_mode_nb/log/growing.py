"""The events and the lines of a session: what was loaded, then what was appended. Both only grow.

Of what was loaded, each look is a fresh value; what was appended is kept, as value and as text. Reading a prefix while another thread
appends is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Generic, TypeVar, overload

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.likelist import LikeList
from plan_mode_nb.log.loaded import Loaded
from plan_mode_nb.log.vocabulary import kind_of

T = TypeVar("T", Event, str)


class _Growing(LikeList[T], Generic[T]):
    __slots__ = ("_appended", "_first", "_loaded_at", "_loaded_since", "loaded")

    def __init__(self, loaded: Loaded, at: Callable[[int], T], since: Callable[[int], Iterator[T]]) -> None:
        """``at``, ``since``: what was loaded, at a seq and from one on."""
        self.loaded = loaded
        self._loaded_at: Callable[[int], T] = at
        self._loaded_since: Callable[[int], Iterator[T]] = since
        self._first = len(loaded)
        self._appended: list[T] = []

    @property
    def is_as_loaded(self) -> bool:
        """Whether nothing was appended."""
        return not self._appended

    def extend(self, appended: Sequence[T]) -> None:
        """Take what was appended."""
        self._appended.extend(appended)

    def __len__(self) -> int:
        return self._first + len(self._appended)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return [self._at(seq) for seq in range(start, stop, step)]
            return list(islice(self.since(start), max(0, stop - start)))
        seq = index + len(self) if index < 0 else index
        if not 0 <= seq < len(self):
            raise IndexError(f"there is nothing at {index}: this session has {len(self)} events")
        return self._at(seq)

    def __iter__(self) -> Iterator[T]:
        return self.since(0)

    def since(self, start: int) -> Iterator[T]:
        """From seq ``start`` on, in order."""
        if start >= self._first:
            return islice(self._appended, start - self._first, None)
        return chain(self._loaded_since(start), self._appended)

    def _at(self, seq: int) -> T:
        return self._appended[seq - self._first] if seq >= self._first else self._loaded_at(seq)


class Lines(_Growing[str]):
    """The lines of a session. A line that was loaded comes back as it was, whoever wrote it: copies are compared as strings."""

    __slots__ = ()

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded, loaded.line, loaded.lines)


class Events(_Growing[Event]):
    """The events of a session."""

    __slots__ = ()

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded, loaded.event, lambda start: loaded.events(None, start))

    def of(self, types: frozenset[str] | None, start: int = 0) -> Iterator[Event]:
        """The events of these kinds (None: of all) from seq ``start`` on, in order. Loaded events of other kinds are not decoded."""
        appended = islice(self._appended, max(0, start - self._first), None)
        added = appended if types is None else (event for event in appended if kind_of(event) in types)
        return chain(self.loaded.events(types, start), added)

    def type(self, seq: int) -> str:
        """The type of the event ``seq``, from 0; cheaper than the event."""
        return self._appended[seq - self._first].type if seq >= self._first else self.loaded.type(seq)

    def last(self, types: frozenset[str]) -> int | None:
        """The seq of the last event of these types, None where there is none."""
        return next((seq for seq in range(len(self) - 1, -1, -1) if self.type(seq) in types), None)
