"""Plan state is a fold: what is in force, what is selected, what the model was told, what was approved."""

from __future__ import annotations

import pytest

from plan_mode_nb.folds.plan import APPROVED_PLAN, PLAN, SUBMISSIONS, TOLD, PlanState, fold_plan_mode, fold_plan_state
from plan_mode_nb.folds.questions import plan_title
from plan_mode_nb.log.events import Draft, Replace
from plan_mode_nb.log.vocabulary import surface
from plan_mode_nb.testing.logs import (
    assistant,
    call_block,
    command_done,
    command_run,
    new_session,
    notice,
    plan_mode,
    plan_selected,
    question_answered,
    request_header,
    review_asked,
    step_end,
    step_start,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user,
)


def plan_of(*drafts: Draft) -> PlanState:
    session = new_session()
    session.append(*drafts)
    assert fold_plan_state(session.events) == session.fold(PLAN)
    return session.fold(PLAN)


def test_the_last_plan_mode_of_a_prefix_is_in_force_there() -> None:
    session = new_session()
    assert session.fold(PLAN) == PlanState(False, None)
    session.append(plan_mode(True), plan_mode(False), turn_start(1), plan_mode(True))
    assert [fold_plan_mode(session.events, end) for end in range(5)] == [False, True, False, False, True]
    assert fold_plan_mode(session.events) is True


@pytest.mark.parametrize(
    ("drafts", "state"),
    [
        ([plan_selected(True)], PlanState(False, True)),
        ([plan_selected(False)], PlanState(False, None)),
        ([plan_selected(True), plan_selected(False)], PlanState(False, None)),
        ([plan_selected(True), plan_selected(False), plan_selected(True)], PlanState(False, True)),
        ([plan_mode(True), plan_selected(False)], PlanState(True, False)),
        ([plan_selected(True), plan_mode(True)], PlanState(True, None)),
        ([plan_selected(True), plan_mode(False)], PlanState(False, None)),
        ([plan_mode(True), plan_selected(False, narrate=False), plan_mode(False)], PlanState(False, None)),
    ],
)
def test_a_selection_is_pending_until_plan_mode_is_logged_and_never_when_it_equals_what_is_in_force(
    drafts: list[Draft], state: PlanState
) -> None:
    assert plan_of(*drafts) == state


@pytest.mark.parametrize(
    ("drafts", "state"),
    [
        ([command_run("1")], PlanState(False, None)),
        ([command_run("1"), command_done("1")], PlanState(False, True)),
        ([command_run("1"), command_done("1", "error")], PlanState(False, None)),
        ([command_run("1"), command_done("2")], PlanState(False, None)),
        ([command_run("1", "off"), command_done("1")], PlanState(False, None)),
        ([plan_mode(True), command_run("1", " OFF\n"), command_done("1")], PlanState(True, False)),
        ([plan_mode(True), command_run("1", "off the legacy API"), command_done("1")], PlanState(True, None)),
        ([command_run("1"), plan_mode(True), command_done("1")], PlanState(True, None)),
        ([command_run("1"), command_done("1"), plan_mode(False)], PlanState(False, None)),
        ([command_run("1"), command_done("1"), command_run("2", "off"), command_done("2", "error")], PlanState(False, True)),
        ([command_run("1", name="other"), command_done("1")], PlanState(False, None)),
        ([command_run("1"), command_done("1"), plan_selected(False)], PlanState(False, None)),
        ([plan_selected(False), command_run("1"), command_done("1")], PlanState(False, None)),
        ([command_run("1"), plan_selected(True), command_done("1")], PlanState(False, True)),
    ],
)
def test_up_to_the_first_selection_the_last_successful_plan_command_is_the_pending_choice(drafts: list[Draft], state: PlanState) -> None:
    assert plan_of(*drafts) == state


STEP = [turn_start(1), step_start(1, 1)]
EXIT = [assistant(1, 1, call_block("c", "exit_plan_mode")), tool_call(1, 1, "c", "exit_plan_mode", {"plan": "# P\n\nbody"})]


@pytest.mark.parametrize(
    ("drafts", "told"),
    [
        ([], None),
        ([plan_mode(True)], None),
        ([plan_mode(True), turn_start(1), request_header()], True),
        ([plan_mode(True), turn_start(1), request_header(), turn_end(1), plan_mode(False)], True),
        ([plan_mode(True), turn_start(1), request_header(), plan_mode(False), notice()], False),
        ([plan_mode(True), turn_start(1), notice()], True),
        ([plan_mode(True), turn_start(1), request_header(), plan_mode(False), user("The user switched", id="x")], True),
        ([plan_mode(True), *STEP, request_header(), *EXIT, tool_result(1, 1, "c")], False),
        ([plan_mode(True), *STEP, request_header(), *EXIT, tool_result(1, 1, "c", is_error=True)], True),
        ([plan_mode(True), *STEP, request_header(), tool_call(1, 1, "d"), tool_result(1, 1, "d")], True),
    ],
)
def test_what_the_model_was_last_told_is_the_header_the_approved_exit_or_the_notice(drafts: list[Draft], told: bool | None) -> None:
    session = new_session()
    session.append(*drafts)
    assert session.fold(TOLD) is told


def test_a_pruned_result_is_not_a_second_approval() -> None:
    session = new_session()
    session.append(plan_mode(True), *STEP, request_header(), *EXIT)
    (result,) = session.append(tool_result(1, 1, "c"))
    session.append(request_header("change"))
    assert session.fold(TOLD) is True
    session.append(surface("tool/result", tool_result(1, 1, "c", "").data, op=Replace(result.seq, result.seq), sources=[result.seq]))
    assert session.fold(TOLD) is True


def test_the_approved_plan_is_the_last_one_whose_exit_succeeded_with_its_exact_bytes() -> None:
    session = new_session()
    plan = "\ufeff# Plan\r\n\r\n- é 😀\n"
    session.append(plan_mode(True), *STEP, *EXIT, tool_result(1, 1, "c", is_error=True))
    assert session.fold(APPROVED_PLAN) is None
    session.append(tool_call(1, 1, "d", "exit_plan_mode", {"plan": plan}), tool_result(1, 1, "d"))
    assert session.fold(APPROVED_PLAN) == plan
    session.append(step_end(1, 1))
    assert session.fold(APPROVED_PLAN) == plan


def test_the_reviewed_text_counts_where_the_arguments_do_not_parse() -> None:
    session = new_session()
    broken = tool_call(1, 1, "c", "exit_plan_mode")
    session.append(*STEP, Draft("tool/call", {**broken.data, "arguments": "{oops"}), review_asked("q", "# P\n\nx", call_id="c"))
    session.append(question_answered("q"), tool_result(1, 1, "c"))
    assert session.fold(APPROVED_PLAN) == "# P\n\nx"


def test_every_submitted_plan_is_listed_in_order_and_views_stay_as_they_were() -> None:
    session = new_session()
    session.append(*STEP, review_asked("1", "# A\n\nx", call_id="c"))
    first = session.fold(SUBMISSIONS)
    session.append(review_asked("2", "# B\n\ny"))
    assert [each.plan for each in first] == ["# A\n\nx"]
    assert [(each.seq, each.request_id, each.call_id) for each in session.fold(SUBMISSIONS)] == [(2, "1", "c"), (3, "2", None)]


@pytest.mark.parametrize(
    ("plan", "title"),
    [
        ("# P\n\nbody", "P"),
        ("\ufeff\n\n  #\tTab `code` ##\r\nx", "Tab `code`"),
        ("# Plan#\nx", "Plan#"),
        ("# Plan ##", "Plan"),
        ("# " + "x" * 500 + "\ny", "x" * 119 + "…"),
        ("## P\n", ""),
        ("", ""),
    ],
)
def test_a_plans_title_is_its_headings_text_without_closing_hashes_on_one_bounded_line(plan: str, title: str) -> None:
    assert plan_title(plan) == title
