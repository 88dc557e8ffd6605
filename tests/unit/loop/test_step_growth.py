"""A step costs the same at the end of a long conversation as at its beginning. Growth is what fails here, never an absolute time."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks import steps
from benchmarks.made_logs import closed_lines
from benchmarks.measuring import gaps
from benchmarks.steps import STEPS, one_turn
from plan_mode_nb.log.session import Session
from plan_mode_nb.plan import controller

LONG = 100_000
ROUNDS = 3
CALLS_GROWTH = 1.02
TIME_GROWTH = 2.0
"""Generous: medians of processor time, taken in turns, on a machine that does other things."""


@pytest.fixture(scope="module")
def long() -> list[str]:
    """The lines of a log of 100,000 events."""
    return closed_lines(LONG)


def calls_a_step(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> float:
    """The median of the calls, of Python and of C functions, that a step makes after these lines; its first one not counted."""
    counts: list[int] = []
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def counted(clock: Callable[[], float]) -> Callable[[], float]:
        def moment() -> float:
            sys.setprofile(None)
            counts.append(calls)
            sys.setprofile(count)
            return clock()

        return moment

    with monkeypatch.context() as patch:
        # The bench reads the clock at each request and nowhere else.
        patch.setattr(steps, "now", counted(steps.now))
        try:
            one_turn(lines)
        finally:
            sys.setprofile(None)
    return statistics.median(gaps(counts[1:]))


def test_a_step_makes_as_many_calls_after_100_000_events_as_after_none(long: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds are incremental and nothing walks the log: the work of a step is the work of its own events."""
    assert calls_a_step(long, monkeypatch) <= CALLS_GROWTH * calls_a_step([], monkeypatch)


def test_a_step_takes_no_more_than_twice_as_long_after_100_000_events(long: list[str]) -> None:
    """What no count of calls shows: copies of the log inside one call."""
    taken: dict[str, list[float]] = {"none": [], "long": []}
    for _ in range(ROUNDS):
        taken["none"] += one_turn([])
        taken["long"] += one_turn(long)
    assert len(taken["long"]) == ROUNDS * STEPS
    assert statistics.median(taken["long"]) <= TIME_GROWTH * statistics.median(taken["none"])


def test_a_walk_over_the_log_in_each_step_is_noticed(long: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard can fail: a listener that looks at every event makes a step grow."""
    notice = controller.PlanMode._notice

    def walking(self: Any, agent: Any) -> Any:
        session: Session = agent.session
        assert sum(1 for line in session.lines if line.startswith("{")) == len(session)
        return notice(self, agent)

    monkeypatch.setattr(controller.PlanMode, "_notice", walking)
    assert calls_a_step(long[:3_000], monkeypatch) > CALLS_GROWTH * calls_a_step([], monkeypatch)
