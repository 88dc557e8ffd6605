"""A fixed window on a list that only grows: an immutable sequence that costs nothing to hand out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar, overload

from plan_mode_nb.log.likelist import LikeList

T = TypeVar("T")


class View(LikeList[T]):
    """The first ``length`` items of ``items`` (default: all it has now). The owner of ``items`` may append to it and nothing else."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T], length: int | None = None) -> None:
        self._items = items
        self._length = len(items) if length is None else length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._items[place] for place in range(*index.indices(self._length))]
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(f"index {index} is outside a view of {self._length} items")
        return self._items[place]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)
