"""A read-only sequence that compares and prints as the list of its items does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class LikeList(Sequence[T]):
    """Equal to any such sequence, list or tuple of equal items; not hashable, because it may grow."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (LikeList, list, tuple)):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"
