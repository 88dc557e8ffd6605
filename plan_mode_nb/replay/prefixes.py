"""The values of a fold along a log that is read further and further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, final

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import Fold
from plan_mode_nb.log.vocabulary import kind_of

S = TypeVar("S")
V = TypeVar("V")


@final
class Prefixes(Generic[S, V]):
    """A fold of a log that is read further and further."""

    def __init__(self, fold: Fold[S, V]) -> None:
        self._fold, self._state, self._seen = fold, fold.start(), 0

    def at(self, events: Sequence[Event], place: int) -> V:
        """The value of the first ``place`` events; ``place`` never goes back."""
        types = self._fold.types
        for seq in range(self._seen, place):
            if types is None or kind_of(events[seq]) in types:
                self._state = self._fold.step(self._state, events[seq])
        self._seen = max(self._seen, place)
        return self._fold.value(self._state)
