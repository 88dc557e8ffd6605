"""Closing an interrupted log is deepseek-harness's crash repair: results, then the step, then the turn, at the last event's time."""

from __future__ import annotations

import pytest

from plan_mode_nb.folds.questions import QUESTIONS
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.events import Draft
from plan_mode_nb.testing.logs import (
    assistant,
    call_block,
    new_session,
    plan_mode,
    review_asked,
    step_end,
    step_start,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user,
)

STEP = [turn_start(1), step_start(1, 1)]


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        [plan_mode(True)],
        [turn_start(1), turn_end(1)],
        [turn_start(1), turn_end(1), plan_mode(True)],
        [*STEP, assistant(1, 1, call_block("c")), step_end(1, 1), turn_end(1)],
    ],
)
def test_a_log_without_an_open_turn_is_left_alone_even_with_a_dangling_call(drafts: list[Draft]) -> None:
    session = new_session()
    session.append(*drafts)
    assert closers(session.events) == []


def test_an_open_turn_ends_as_interrupted() -> None:
    session = new_session()
    session.append(turn_start(1), user())
    (end,) = closers(session.events)
    assert (end.type, end.data) == ("turn/end", {"turn": 1, "reason": {"kind": "interrupted"}})


def test_unanswered_calls_get_an_error_result_each_in_the_assistants_order() -> None:
    session = new_session()
    session.append(*STEP, assistant(1, 1, call_block("b"), call_block("a"), call_block("c")), tool_call(1, 1, "c"), tool_call(1, 1, "b"))
    session.append(tool_result(1, 1, "b"))
    first, second, step, turn = closers(session.events)
    assert [each.data["message"]["source"]["callId"] for each in (first, second)] == ["a", "c"]
    assert [each.data["error"]["code"] for each in (first, second)] == ["TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN"]
    assert first.data["message"]["id"] == "interrupted-tool-result-a-6"
    assert second.data["message"]["id"] == "interrupted-tool-result-c-7"
    assert second.source_event_seqs == [3]
    assert [step.type, turn.type] == ["step/end", "turn/end"]


def test_only_the_last_turn_is_closed() -> None:
    session = new_session()
    session.append(*STEP, assistant(1, 1, call_block("old")), step_end(1, 1), turn_end(1), turn_start(2))
    assert [each.type for each in closers(session.events)] == ["turn/end"]


def test_closing_events_carry_the_time_of_the_last_real_one() -> None:
    session = new_session()
    session.append(turn_start(1))
    last = session.append(user())[0]
    session.owe(closers(session.events), time=last.time)
    session.append(plan_mode(True))
    assert [event.time for event in session.events[1:3]] == [last.time, last.time]
    assert session.events[3].time > last.time


def test_a_review_that_was_open_is_over_and_was_never_answered() -> None:
    session = new_session()
    session.append(*STEP, assistant(1, 1, call_block("c", "exit_plan_mode")), tool_call(1, 1, "c", "exit_plan_mode"))
    session.append(review_asked("q", "# P\n\nbody", call_id="c"))
    session.owe(closers(session.events), time=1)
    session.append(plan_mode(True))
    questions = session.fold(QUESTIONS)
    assert questions.open == ()
    assert questions.settled[0].answer is None
