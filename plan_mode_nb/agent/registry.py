"""The one registry shape: unique names, insertion order, and registering returns its undo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
Undo = Callable[[], None]


class Registry(Generic[T]):
    """Values by unique name, in order of registration."""

    def __init__(self, kind: str) -> None:
        """``kind``: what is registered here, for messages (``tool``, ``section``…)."""
        self._kind = kind
        self._items: dict[str, T] = {}

    def register(self, name: str, value: T) -> Undo:
        """Add a value; the undo takes exactly this one out again and may be called twice.

        Raises:
            ValueError: the name is taken; names both parties.
        """
        if name in self._items:
            raise ValueError(f"the {self._kind} {name!r} is already registered by {self._items[name]!r}; {value!r} cannot take its place")
        self._items[name] = value

        def undo() -> None:
            if self._items.get(name) is value:
                del self._items[name]

        return undo

    def get(self, name: str) -> T | None:
        """The value of that name, or None."""
        return self._items.get(name)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def names(self) -> list[str]:
        """Registered names, in order of registration."""
        return list(self._items)


def entered(entries: list[tuple[T]], value: T) -> Undo:
    """Append a value, in an entry of its own; the undo takes out exactly that entry, though an equal value may stand there twice."""
    entry = (value,)
    entries.append(entry)

    def undo() -> None:
        entries[:] = [each for each in entries if each is not entry]

    return undo


def undo_all(undos: list[Undo]) -> Undo:
    """One undo for several, last first, each at most once."""

    def undo() -> None:
        while undos:
            undos.pop()()

    return undo
