"""Selecting: every outcome, with its events and its state; what a step's selections amount to."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence

import pytest
from planning import (
    FIRST,
    GUIDE,
    ON,
    modes,
    notices,
    planned,
    shows,
    toggling,
    with_toggles,
)

from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.folds.plan import PlanState, fold_plan_state
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.testing.workbench import counted_clock


def _expected(is_open: bool, active: bool, pending: bool | None, target: bool) -> tuple[str, list[str], PlanState]:
    if target == active:
        if pending is None:
            return "noop", [], PlanState(active, None)
        return "cancelled", ["plan/selected"], PlanState(active, None)
    if not is_open:
        return "committed", ["plan/mode"], PlanState(target, None)
    if pending == target:
        return "noop", [], PlanState(active, pending)
    return "queued", ["plan/selected"], PlanState(active, target)


@pytest.mark.parametrize(("is_open", "active", "is_pending", "target"), list(itertools.product([False, True], repeat=4)))
def test_every_selection_has_its_outcome_its_events_and_its_state(is_open: bool, active: bool, is_pending: bool, target: bool) -> None:
    """The whole table: idle or open turn, logged value, pending or not, target."""
    bench = planned()
    pending = (not active) if is_pending else None
    bench.session.append(draft("plan/mode", {"active": active}), draft("turn/start", {"turn": 1}))
    if pending is not None:
        bench.session.append(draft("plan/selected", {"active": pending, "narrate": True}))
    if not is_open:
        bench.session.append(draft("turn/end", {"turn": 1, "reason": {"kind": "completed"}}))
    assert PlanMode.get(bench.agent) == PlanState(active, pending)
    before = len(bench.session)
    outcome, types, state = _expected(is_open, active, pending, target)
    assert PlanMode.set(bench.agent, target) == outcome
    assert bench.types[before:] == types
    assert PlanMode.get(bench.agent) == state
    for event in bench.session.events[before:]:
        assert event.data["active"] is target
        assert event.is_ignorable is (event.type == "plan/selected")
        assert event.data.get("narrate", True) is True
    assert PlanMode.set(bench.agent, target) == "noop"
    assert fold_plan_state(Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines).events) == state


def test_on_and_off_while_idle_are_logged_at_once_and_leave_no_notice() -> None:
    """Case 10: also after the model was told otherwise and back."""

    async def main() -> None:
        bench = planned(say("a"), say("b"))
        assert [PlanMode.set(bench.agent, value) for value in (True, True)] == ["committed", "noop"]
        PlanMode.set(bench.agent, False)
        await bench.ask("go")
        PlanMode.set(bench.agent, True)
        PlanMode.set(bench.agent, False)
        await bench.ask("go on")
        assert modes(bench) == [True, False, True, False]
        assert notices(bench) == []
        assert [shows(request) for request in bench.model.requests] == [False, False]

    asyncio.run(main())


def test_a_toggle_while_a_step_runs_changes_nothing_of_it_and_applies_at_the_next_accepted_step() -> None:
    """Case 11: one ``plan/mode`` before the step, the section, and one notice, last among the step's messages."""

    async def main() -> None:
        bench = with_toggles(toggling(True), say("b"))
        await bench.ask("go")
        assert [shows(request) for request in bench.model.requests] == [False, True]
        assert bench.types[-9:] == [
            "step/end",
            "plan/mode",
            "step/start",
            "user/message",
            "request/header",
            "assistant/chunk",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert notices(bench) == [ON]
        notice = bench.events("user/message")[-1].data
        assert notice["source"] == {"kind": "plugin", "plugin": "plan-mode", "form": "notice", "summary": ON}
        assert bench.model.requests[1].messages[-1] == notice

    asyncio.run(main())


def test_a_toggle_after_the_turns_last_step_makes_no_step_and_applies_in_a_later_turn() -> None:
    """Case 11: it never wakes the loop; then it is told once, after what the person says."""

    async def main() -> None:
        bench = with_toggles(toggling(True, then=say("done")), say("b"))
        end = await bench.ask("go")
        assert end.steps == 1
        assert PlanMode.get(bench.agent) == PlanState(False, True)
        assert modes(bench) == []
        assert (await bench.agent.run_turn()).steps == 0
        assert PlanMode.get(bench.agent) == PlanState(False, True)
        await bench.ask("plan it")
        assert [m["content"][0]["text"] for m in bench.model.requests[1].messages][-2:] == ["plan it", ON]
        assert shows(bench.model.requests[1])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("values", "logged", "told"),
    [((True, False), [], []), ((True, False, True), [True], [ON]), ((False,), [], []), ((True, True), [True], [ON])],
)
def test_only_the_net_change_of_a_step_is_logged_and_told(values: Sequence[bool], logged: list[bool], told: list[str]) -> None:
    """Case 12."""

    async def main() -> None:
        bench = with_toggles(toggling(*values), say("b"))
        await bench.ask("go")
        assert (modes(bench), notices(bench)) == (logged, told)
        assert PlanMode.get(bench.agent).pending is None

    asyncio.run(main())


def test_before_the_first_request_there_is_a_section_and_no_notice() -> None:
    """Case 13: the model was told nothing else before; also when the selection was made in the turn, before its first step."""

    async def main() -> None:
        bench = planned(say("a"))
        PlanMode.set(bench.agent, True)
        await bench.ask("go")

        async def select(step: Step, call_next: CallNext) -> Decision:
            PlanMode.set(step.agent, True)
            return await call_next(step)

        early = planned(say("a"), install=[lambda seams: seams.pre_step.register(select)])
        await early.ask("go")
        for each in (bench, early):
            assert shows(each.model.requests[0])
            assert (modes(each), notices(each)) == ([True], [])

    asyncio.run(main())


def test_toggling_leaves_the_tool_list_and_the_prompt_before_the_section_byte_for_byte() -> None:
    """Case 16: a provider's cache keeps everything ahead of the section."""

    async def main() -> None:
        bench = with_toggles(toggling(True), toggling(False), toggling(True), say("d"))
        await bench.ask("go")
        assert [shows(request) for request in bench.model.requests] == [False, True, False, True]
        tools = [json.dumps(list(request.tools)) for request in bench.model.requests]
        assert len(set(tools)) == 1
        assert {request.system.partition(GUIDE)[0].rstrip("\n") for request in bench.model.requests} == {FIRST}
        assert all(request.system.startswith(FIRST) for request in bench.model.requests)

    asyncio.run(main())


def test_every_switch_precedes_the_header_it_changes() -> None:
    """Between a ``plan/mode`` of a turn and the next header there is no request."""

    async def main() -> None:
        bench = with_toggles(toggling(True), toggling(False), say("c"))
        await bench.ask("go")
        kinds = [event.type for event in bench.events("plan/mode", "request/header", "assistant/message")]
        assert kinds == ["request/header", "assistant/message", *["plan/mode", "request/header", "assistant/message"] * 2]

    asyncio.run(main())
