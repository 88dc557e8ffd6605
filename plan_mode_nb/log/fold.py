"""What a fold is: a pure function events -> value that takes a starting state, so that resuming is a law.

``value(run(f, b, run(f, a))) == value(run(f, a + b))`` for every split. A state belongs to whoever runs the fold: ``step`` may change and
return the state it was given, and ``value`` must stay valid when later events are folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.growing import Events

S = TypeVar("S")
V_co = TypeVar("V_co", covariant=True)
V = TypeVar("V")


class Fold(Protocol[S, V_co]):
    """``types``: the only event types that move the state; None where every event may."""

    @property
    def types(self) -> frozenset[str] | None:
        """Event types that move the state."""

    def start(self) -> S:
        """The state of the empty log."""

    def step(self, state: S, event: Event) -> S:
        """The state after one more event."""

    def value(self, state: S) -> V_co:
        """What callers see of a state."""


def run(fold: Fold[S, V], events: Iterable[Event], state: S | None = None) -> S:
    """The state after ``events``, from ``state`` (default: the empty log's)."""
    current = fold.start() if state is None else state
    types, step = fold.types, fold.step
    if isinstance(events, Events):
        events = events.of(types)
    for event in events:
        if types is None or event.type in types:
            current = step(current, event)
    return current


def fold_value(fold: Fold[S, V], events: Iterable[Event]) -> V:
    """The value of a whole log or any prefix of it."""
    return fold.value(run(fold, events))


def fold_values(folds: Sequence[Fold[Any, Any]], events: Events | Sequence[Event]) -> list[Any]:
    """The values of several folds of a whole log, in the order of ``folds``. Each event is looked at, and decoded, once for all of them."""
    types: frozenset[str] | None = frozenset()
    for fold in folds:
        types = None if types is None or fold.types is None else types | fold.types
    states = [fold.start() for fold in folds]
    readers: dict[str, list[int]] = {}
    for event in events.of(types) if isinstance(events, Events) else events:
        if event.type not in readers:
            readers[event.type] = [place for place, fold in enumerate(folds) if fold.types is None or event.type in fold.types]
        for place in readers[event.type]:
            states[place] = folds[place].step(states[place], event)
    return [fold.value(state) for fold, state in zip(folds, states, strict=True)]
