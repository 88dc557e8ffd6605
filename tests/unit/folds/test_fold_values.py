"""Several folds in one pass give what each gives alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.made_logs import one_turn
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import Fold, fold_value, fold_values
from plan_mode_nb.testing import logs

MADE = logs.new_session()
for number in (1, 2, 3):
    MADE.append(*one_turn(number))


class Types:
    """A fold that every event moves: the types in order."""

    types = None

    def start(self) -> list[str]:
        """No event."""
        return []

    def step(self, state: list[str], event: Event) -> list[str]:
        """One more."""
        return [*state, event.type]

    def value(self, state: list[str]) -> list[str]:
        """All."""
        return state


@pytest.mark.parametrize("events", [MADE.events, logs.new_session(lines=list(MADE.lines)).events, list(MADE.events)])
@pytest.mark.parametrize("folds", [(), (PLAN,), (PLAN, HISTORY, TURNS, USAGE), (USAGE, Types(), PLAN), (PLAN, PLAN)])
def test_one_pass_gives_what_each_fold_gives(folds: Sequence[Fold[Any, Any]], events: Sequence[Event]) -> None:
    """In the order of the folds; of events that were appended, that were read, and of a plain list; also with a fold of every event."""
    assert fold_values(folds, events) == [fold_value(fold, events) for fold in folds]
