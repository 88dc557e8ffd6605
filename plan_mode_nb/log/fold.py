"""What a fold is: a pure function events -> value that takes a starting state, so that resuming is a law.

``value(run(f, b, run(f, a))) == value(run(f, a + b))`` for every split. A state belongs to whoever runs the fold: ``step`` may change and
return the state it was given, and ``value`` must stay valid when later events are folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.growing import Events
from plan_mode_nb.log.vocabulary import CHUNK, kind_of

S = TypeVar("S")
V_co = TypeVar("V_co", covariant=True)
V = TypeVar("V")


class Fold(Protocol[S, V_co]):
    """``types``: the only kinds of event that move the state (see :func:`~plan_mode_nb.log.vocabulary.kind_of`); None where all may."""

    @property
    def types(self) -> frozenset[str] | None:
        """Kinds of event that move the state."""

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
        if types is None or kind_of(event) in types:
            current = step(current, event)
    return current


def fold_value(fold: Fold[S, V], events: Iterable[Event]) -> V:
    """The value of a whole log or any prefix of it."""
    return fold.value(run(fold, events))


class Together:
    """Several folds, moved by one pass over a log: each event is looked at, and decoded, once for all of them."""

    def __init__(self, folds: Sequence[Fold[Any, Any]]) -> None:
        """Each fold stands at its start."""
        self.folds = folds
        self.states = [fold.start() for fold in folds]
        self._steps: dict[str, list[tuple[int, Callable[[Any, Event], Any]]]] = {}

    @property
    def types(self) -> frozenset[str] | None:
        """Kinds of event that move one of them; None where every event may."""
        types = [fold.types for fold in self.folds]
        return None if None in types else frozenset().union(*(each for each in types if each is not None))

    def take(self, event: Event) -> None:
        """Move those that this event moves."""
        kind = event.type if event.type != CHUNK else kind_of(event)  # a call less for nearly every event
        steps = self._steps.get(kind)
        if steps is None:
            movers = [(place, fold) for place, fold in enumerate(self.folds) if fold.types is None or kind in fold.types]
            steps = self._steps[kind] = [(place, fold.step) for place, fold in movers]
        for place, step in steps:
            self.states[place] = step(self.states[place], event)


def fold_values(folds: Sequence[Fold[Any, Any]], events: Events | Sequence[Event]) -> list[Any]:
    """The values of several folds of a whole log, in the order of ``folds``, from one pass."""
    together = Together(folds)
    for event in events.of(together.types) if isinstance(events, Events) else events:
        together.take(event)
    return [fold.value(state) for fold, state in zip(folds, together.states, strict=True)]
