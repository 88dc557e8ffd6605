"""Laws of every fold, over random legal logs."""

from __future__ import annotations

import copy
import inspect
import pkgutil
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import SEEDS, LogMaker, sessions

import plan_mode_nb.folds
from plan_mode_nb.folds.plan import PLAN, TOLD, fold_plan_mode
from plan_mode_nb.log.fold import fold_value, run
from plan_mode_nb.log.session import Session


def _all_folds() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(plan_mode_nb.folds.__path__):
        for name, value in vars(import_module(f"plan_mode_nb.folds.{module.name}")).items():
            is_fold = all(hasattr(value, part) for part in ("types", "start", "step", "value")) and not inspect.isclass(value)
            if name.isupper() and is_fold:
                found[name] = value
    return found


FOLDS = _all_folds()
EVERY_FOLD = pytest.mark.parametrize("name", sorted(FOLDS))


def plain(value: Any) -> Any:
    """A value that compares by content, and that a later fold cannot change."""
    return copy.deepcopy(repr(value))


def test_every_fold_of_the_package_is_under_these_laws() -> None:
    assert {"PLAN", "TOLD", "APPROVED_PLAN", "SUBMISSIONS", "HISTORY", "NODES", "HEADER", "HEADER_SEQ", "INBOX"} <= FOLDS.keys()
    assert {"TURNS", "TODOS", "USAGE", "APPROVAL_POLICY", "SANDBOX_MODE", "QUESTIONS", "OPEN_REVIEWS"} <= FOLDS.keys()


@EVERY_FOLD
@settings(max_examples=40, deadline=None)
@given(session=sessions(), data=st.data())
def test_resuming_is_a_law(name: str, session: Session, data: st.DataObject) -> None:
    """fold(b, fold(a)) == fold(a + b) for every split."""
    fold = FOLDS[name]
    split = data.draw(st.integers(0, len(session)))
    resumed = run(fold, session.events[split:], run(fold, session.events[:split]))
    assert plain(fold.value(resumed)) == plain(fold_value(fold, session.events))


@EVERY_FOLD
@settings(max_examples=25, deadline=None)
@given(session=sessions())
def test_a_value_that_was_handed_out_never_changes(name: str, session: Session) -> None:
    fold = FOLDS[name]
    state, seen = fold.start(), []
    for event in session.events:
        if fold.types is None or event.type in fold.types:
            state = fold.step(state, event)
        value = fold.value(state)
        seen.append((value, plain(value)))
    assert all(plain(value) == before for value, before in seen)


@settings(max_examples=60, deadline=None)
@given(session=sessions())
def test_reading_after_every_append_is_reading_once(session: Session) -> None:
    grown = Session(session.header, clock=lambda: 1)
    for event in session.events:
        grown.events.extend([event])
        for fold in FOLDS.values():
            grown.fold(fold)
    assert all(plain(grown.fold(fold)) == plain(fold_value(fold, session.events)) for fold in FOLDS.values())


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, before_count=st.integers(0, 30), noise=st.integers(1, 30))
def test_what_others_append_never_moves_plan_state(seed: int, before_count: int, noise: int) -> None:
    maker = LogMaker(seed)
    for _ in range(before_count):
        maker.grow()
    before, told = maker.session.fold(PLAN), maker.session.fold(TOLD)
    calls = maker.session.place.calls
    for _ in range(noise):
        maker.grow(noise_only=True)
    assert maker.session.fold(PLAN) == before
    assert calls or maker.session.fold(TOLD) == told


@settings(max_examples=60, deadline=None)
@given(session=sessions())
def test_pending_never_equals_what_is_in_force_and_a_commit_clears_it(session: Session) -> None:
    for end in range(len(session) + 1):
        state = fold_value(PLAN, session.events[:end])
        assert state.pending is None or state.pending is not state.active
        assert state.active is fold_plan_mode(session.events, end)
        if end and session.events[end - 1].type == "plan/mode":
            assert state.pending is None
