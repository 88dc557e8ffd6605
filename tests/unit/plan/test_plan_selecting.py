"""Selecting plan mode: outcomes, pending, commit at the pre-step, and what the model is told."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from planning import FIRST, GUIDE, OFF, ON, approve, exits, modes, notices, others, plan_mode, planned, reviewed, shows

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.exceptions import LogError, ModelError, StoreError
from plan_mode_nb.folds.history import NODES
from plan_mode_nb.folds.plan import PLAN, PlanFold, PlanState, fold_plan_mode, fold_plan_state
from plan_mode_nb.log.events import Replace, SessionId
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.models.script import call, fail, hold, say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.testing.workbench import Workbench, counted_clock

# ---- state


def test_an_empty_log_is_inactive_has_no_section_and_lists_the_exit_tool() -> None:
    """Case 1."""
    bench = planned(say("hi"))
    assert PlanMode.get(bench.agent) == PlanState(False, None)
    asyncio.run(bench.ask("go"))
    assert not shows(bench.model.requests[0])
    assert [tool["name"] for tool in bench.model.requests[0].tools] == ["note", "exit_plan_mode"]


def test_the_last_value_of_any_prefix_counts_and_no_other_event_moves_it() -> None:
    """Case 2."""
    bench = planned()
    for active in (True, False, True):
        bench.session.append(draft("plan/mode", {"active": active}))
        bench.session.append(draft("sandbox/mode", {"mode": "read-only"}), draft("approval/policy", {"policy": "never"}))
    events = bench.session.events
    assert [fold_plan_mode(events, end) for end in range(len(events) + 1)] == [False, *[True] * 3, *[False] * 3, *[True] * 3]
    assert [fold_plan_state(events[:end]).active for end in range(len(events) + 1)] == [
        fold_plan_mode(events, end) for end in range(len(events) + 1)
    ]


@pytest.mark.parametrize("value", [1, 0, "true", None, [], {}, 1.0])
def test_a_value_that_is_no_boolean_is_refused_when_appended_and_when_loaded(value: object) -> None:
    """Case 2: never read by truthiness, and nothing of the batch is kept."""
    bench = planned()
    with pytest.raises(LogError, match="must be true or false"):
        bench.session.append(draft("plan/mode", {"active": True}), draft("plan/mode", {"active": value}))
    assert len(bench.session) == 0
    line = json.dumps({"type": "plan/mode", "seq": 0, "time": 1, "data": {"active": value}}, separators=(",", ":"))
    with pytest.raises(LogError, match="must be true or false"):
        Session(bench.session.header, clock=counted_clock(), lines=[line])


def test_a_kernel_restarted_while_active_shows_the_section_at_once_and_says_nothing() -> None:
    """Case 3."""

    async def main() -> None:
        before = planned(say("ok"))
        PlanMode.set(before.agent, True)
        await before.ask("go")
        after = planned(say("ok"), lines=before.sink.lines, ids="after")
        assert PlanMode.get(after.agent) == PlanState(True, None)
        await after.ask("go on")
        assert shows(after.model.requests[0])
        assert notices(after) == []

    asyncio.run(main())


def test_a_fork_inherits_what_was_so_at_its_point_and_a_spawned_child_starts_inactive() -> None:
    """Case 4: the parent is untouched by what the fork then does."""
    bench = planned()
    bench.session.append(draft("session/title", {"title": "t"}))
    PlanMode.set(bench.agent, True)
    before, after = (Workbench(session=bench.session.fork(n, id=SessionId(f"fork-{n}")), install=[plan_mode]) for n in (1, 2))
    assert (PlanMode.get(before.agent).active, PlanMode.get(after.agent).active) == (False, True)
    assert PlanMode.set(after.agent, False) == "committed"
    assert PlanMode.get(bench.agent) == PlanState(True, None)
    child = Workbench(seams=bench.seams, name="child", parent=bench.agent)
    assert PlanMode.get(child.agent) == PlanState(False, None)


def test_a_compaction_neither_ends_plan_mode_nor_starts_it() -> None:
    """Case 5: state is a fold of events, whatever became of the surface."""

    async def main() -> None:
        bench = planned(say("a"), say("b"), say("c"))
        PlanMode.set(bench.agent, True)
        for turn, active in ((1, True), (2, True), (3, False)):
            if not active:
                PlanMode.set(bench.agent, False)
            await bench.ask("go")
            assert shows(bench.model.requests[-1]) is active
            compact(bench, f"summary-{turn}")
            assert PlanMode.get(bench.agent) == PlanState(active, None)
        assert notices(bench) == [OFF]

    asyncio.run(main())


def compact(bench: Workbench, id: str) -> None:
    """Replace the whole surface by one summary, in a turn of its own."""
    nodes = list(bench.session.fold(NODES))
    summary = user_message("we talked", id=id, source={"kind": "plugin", "plugin": "compaction"})
    turn = bench.session.place.next_turn
    bench.session.append(
        draft("turn/start", {"turn": turn}),
        surface("user/message", summary, op=Replace(nodes[0], nodes[-1]), sources=nodes),
        draft("turn/end", {"turn": turn, "reason": {"kind": "completed"}}),
    )


def test_two_agents_of_one_composition_have_two_states() -> None:
    """Case 6: one toggled, the other's requests stay as they are, tools included."""

    async def main() -> None:
        one = planned(say("a"), say("b"))
        other = Workbench(say("a"), say("b"), seams=one.seams, name="other")
        for bench in (one, other):
            await bench.ask("go")
        PlanMode.set(one.agent, True)
        for bench in (one, other):
            await bench.ask("go on")
        assert (shows(one.model.requests[1]), shows(other.model.requests[1])) == (True, False)
        assert other.model.requests[1].system == other.model.requests[0].system
        assert other.model.requests[1].tools == other.model.requests[0].tools == one.model.requests[1].tools
        assert "plan/mode" not in other.types
        assert notices(other) == []

    asyncio.run(main())


@pytest.mark.parametrize("target", [True, False])
def test_a_switch_that_cannot_be_logged_never_blocks_the_turn_and_request_and_log_agree(
    target: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 7: still pending, reported once, no notice; section and exit tool follow the log; it applies as soon as it can."""

    async def main() -> None:
        def toggle(request: object) -> Any:
            PlanMode.set(bench.agent, target)
            return call("note", {"text": "x"})

        bench = planned(say("a"), toggle, exits(), exits(), say("d"), say("e"))
        reviewer = reviewed(bench)
        if not target:
            PlanMode.set(bench.agent, True)
        await bench.ask("go")
        bench.sink.refuse = lambda lines: any('"plan/mode"' in line for line in lines)
        with caplog.at_level(logging.WARNING):
            assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert [shows(request) for request in bench.model.requests[1:]] == [not target] * 4
        assert PlanMode.get(bench.agent) == PlanState(not target, target)
        assert notices(bench) == []
        assert reviewer.shown == []
        assert len([r for r in caplog.records if "the switch could not be logged" in r.message]) == 1
        bench.sink.refuse = lambda lines: False
        await bench.ask("go")
        assert shows(bench.model.requests[-1]) is target
        assert notices(bench) == [ON if target else OFF]

    asyncio.run(main())


def test_a_selection_that_cannot_be_logged_is_not_made() -> None:
    """The person hears of it; nothing waits in memory."""

    async def main() -> None:
        bench = planned(say("a"))
        bench.sink.refuse = lambda lines: any('"plan/' in line for line in lines)
        with pytest.raises(StoreError):
            PlanMode.set(bench.agent, True)
        assert bench.seams.commands is not None
        result = await bench.seams.commands.run("plan", CommandCall(bench.agent, ""))
        assert result.kind == "error"
        assert PlanMode.get(bench.agent) == PlanState(False, None)
        bench.sink.refuse = lambda lines: False
        await bench.ask("go")
        assert not shows(bench.model.requests[0])

    asyncio.run(main())


def test_a_session_that_never_used_plan_mode_is_byte_identical_but_for_one_static_tool() -> None:
    """Case 9: taking the plugin out of the composition takes the tool out of the header, and nothing else changes."""

    async def main() -> None:
        script = [call("note", {"text": "x"}), say("done"), say("more")]
        with_plan, without = planned(*script), Workbench(*script, install=[others])
        for bench in (with_plan, without):
            await bench.ask("go")
            await bench.ask("again")
        tool = with_plan.seams.tools.get("exit_plan_mode")
        assert tool is not None
        for ours, bare in zip(with_plan.model.requests, without.model.requests, strict=True):
            assert [*bare.tools, tool.schema] == list(ours.tools)
            assert (ours.system, ours.config, ours.messages) == (bare.system, bare.config, bare.messages)
        differing = [a for a, b in zip(with_plan.session.lines, without.session.lines, strict=True) if a != b]
        assert [json.loads(line)["type"] for line in differing] == ["request/header"]
        schema = json.dumps(tool.schema, separators=(",", ":"), ensure_ascii=False)
        assert differing[0].replace(f",{schema}", "") in without.session.lines

    asyncio.run(main())


# ---- outcomes


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


# ---- pending and notice


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


def toggling(*values: bool, then: Any = None) -> Any:
    """A model step during which the person selects these values, one after the other."""

    def build(bench: Workbench) -> Any:
        def step(request: object) -> Any:
            for value in values:
                PlanMode.set(bench.agent, value)
            return then or call("note", {"text": "x"})

        return step

    return build


def with_toggles(*builders: Any) -> Workbench:
    bench = planned()
    bench.model.add(*[builder(bench) if callable(builder) else builder for builder in builders])
    return bench


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


def test_a_step_that_is_rejected_or_cancelled_applies_nothing() -> None:
    """Case 14: still pending, and the later step that is accepted applies it once."""

    async def main() -> None:
        mood: dict[str, Any] = {"do": "accept"}

        async def moody(step: Step, call_next: CallNext) -> Decision:
            match mood["do"]:
                case "reject":
                    return Reject("not now")
                case "fail":
                    raise ValueError("hook")
                case "hang":
                    mood["at"].set()
                    await asyncio.Event().wait()
            return await call_next(step)

        bench = planned(install=[lambda seams: seams.pre_step.register(moody)])
        bench.model.add(toggling(True, then=say("a"))(bench), say("b"))
        await bench.ask("go")
        before = modes(bench)
        for mood["do"] in ("reject", "fail"):
            await bench.ask("go")
            assert (modes(bench), PlanMode.get(bench.agent)) == (before, PlanState(False, True))
        mood.update(do="hang", at=asyncio.Event())
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(mood["at"].wait(), 10)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (modes(bench), PlanMode.get(bench.agent), notices(bench)) == (before, PlanState(False, True), [])
        mood["do"] = "accept"
        await bench.ask("go")
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


def test_a_stop_that_a_listener_catches_applies_nothing_either() -> None:
    """The step will not run, so its switch waits for one that does."""

    async def main() -> None:
        reached = asyncio.Event()

        async def catches(step: Step, call_next: CallNext) -> Decision:
            if step.turn == 2:
                reached.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return await call_next(step)
            return await call_next(step)

        bench = planned(install=[lambda seams: seams.pre_step.register(catches)])
        bench.model.add(toggling(True, then=say("a"))(bench))
        await bench.ask("go")
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 10)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (modes(bench), PlanMode.get(bench.agent)) == ([], PlanState(False, True))

    asyncio.run(main())


def test_plan_mode_commits_after_everybody_else_accepted() -> None:
    """It is the outermost listener: who rejects or adds messages has spoken before, and the notice stands after theirs."""

    async def main() -> None:
        seen: list[Any] = []

        async def adds(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            seen.append(PlanMode.get(step.agent))
            assert isinstance(decision, Enter)
            return Enter((*decision.messages, user_message("context", id=f"c{len(seen)}", source={"kind": "plugin", "plugin": "x"})))

        bench = planned(install=[lambda seams: seams.pre_step.register(adds, "outermost")])
        bench.model.add(toggling(True)(bench), say("b"))
        await bench.ask("go")
        assert seen == [PlanState(False, None), PlanState(False, True)]
        assert [m["content"][0]["text"] for m in bench.model.requests[1].messages[-2:]] == ["context", ON]

    asyncio.run(main())


def test_a_users_exit_is_told_exactly_once_and_an_approved_exit_never() -> None:
    """Case 15: the approved result has told it already."""

    async def main() -> None:
        left = with_toggles(toggling(False), say("b"), say("c"))
        PlanMode.set(left.agent, True)
        await left.ask("go")
        await left.ask("go")
        assert [shows(request) for request in left.model.requests] == [True, False, False]
        assert notices(left) == [OFF]
        approved = planned(exits(), say("b"), say("c"))
        reviewed(approved, approve())
        PlanMode.set(approved.agent, True)
        await approved.ask("go")
        await approved.ask("go")
        assert [shows(request) for request in approved.model.requests] == [True, False, False]
        assert notices(approved) == []
        assert modes(approved) == [True, False]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["aborted", "failed model choice", "log refused", "killed"])
def test_a_turn_that_breaks_between_switch_and_notice_tells_it_exactly_once(how: str) -> None:
    """Case 15: neither lost nor repeated, whatever broke: the switch is in the log, the notice in the next accepted step."""

    async def main() -> None:
        bench = with_toggles(toggling(True, then=say("a")))
        await bench.ask("go")
        switched = bench
        if how == "aborted":
            reached = asyncio.Event()

            async def stay() -> None:
                reached.set()
                await asyncio.Event().wait()

            bench.model.add(hold(stay))
            turn = asyncio.ensure_future(bench.ask("go"))
            await asyncio.wait_for(reached.wait(), 10)
            bench.agent.cancel({"kind": "user"})
            with pytest.raises(asyncio.CancelledError):
                await turn
        elif how == "failed model choice":
            bench.model.add(fail(ModelError("no such model")))
            await bench.ask("go")
        elif how == "log refused":
            bench.sink.refuse = lambda lines: any('"step/start"' in line for line in lines)
            await bench.ask("go")
            assert notices(bench) == []
            bench.sink.refuse = lambda lines: False
        else:
            bench.sink.refuse = lambda lines: modes(bench) == [True]
            with pytest.raises(StoreError):
                await bench.ask("go")
            switched = planned(lines=bench.sink.lines, ids="after")
        assert modes(switched) == [True]
        switched.model.add(*[say("b"), say("c")])
        while switched.agent.inbox.has_pending:
            await switched.agent.run_turn()
        await switched.ask("go on")
        assert notices(switched) == [ON]
        assert shows(switched.model.requests[-1])

    asyncio.run(main())


def test_a_pending_selection_survives_a_killed_process() -> None:
    """``plan/selected`` is in the log: the next process applies it at its first accepted step and tells it once."""

    async def main() -> None:
        bench = with_toggles(toggling(True, then=say("a")))
        await bench.ask("go")
        for length in range(len(bench.session), 0, -1):
            if bench.session.events[length - 1].type == "plan/selected":
                break
        after = planned(say("b"), lines=bench.session.lines[:length], ids="after")
        assert PlanMode.get(after.agent) == PlanState(False, True)
        await after.ask("go")
        assert shows(after.model.requests[0])
        assert (modes(after), notices(after)) == ([True], [ON])

    asyncio.run(main())


def test_a_notice_is_never_the_reason_that_a_step_runs() -> None:
    """A turn without a message, and a steer that a listener takes away, stay without a request, though a switch waits to be told."""

    async def main() -> None:
        async def first_only(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            return decision if step.step == 1 else Enter(())

        bench = planned(install=[lambda seams: seams.pre_step.register(first_only)])

        def late(request: object) -> Any:
            PlanMode.set(bench.agent, True)
            bench.steer("one more thing")
            return say("done")

        bench.model.add(late)
        assert (await bench.ask("go")).steps == 1
        assert (await bench.agent.run_turn()).steps == 0
        PlanMode.set(bench.agent, True)
        assert (await bench.agent.run_turn()).steps == 0
        assert len(bench.model.requests) == 1
        assert notices(bench) == []

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


def test_a_prompt_that_is_assembled_for_nobody_has_no_section() -> None:
    """A preview of the prompt belongs to no session."""
    bench = planned()
    PlanMode.set(bench.agent, True)
    assert bench.seams.sections.assemble(PromptContext(None)) == FIRST
    assert bench.seams.sections.assemble(PromptContext(bench.agent)) == f"{FIRST}\n\n{GUIDE}"


def test_plan_mode_gates_no_tool() -> None:
    """It is a soft state: what the model calls in plan mode runs."""

    async def main() -> None:
        ran: list[str] = []

        async def run(each: ToolCall) -> Outcome:
            ran.append(each.name)
            return Outcome(text_result("done"))

        tools = [Tool(name, "T.", {"type": "object"}, run) for name in ("write", "python")]
        bench = planned([call("write", {}), call("python", {})], say("ok"), install=[lambda s, t=t: s.tools.register(t) for t in tools])
        PlanMode.set(bench.agent, True)
        await bench.ask("go")
        assert ran == ["write", "python"]

    asyncio.run(main())


def test_reading_the_state_costs_the_events_since_the_last_reading() -> None:
    """At any length: the fold is stepped once for each new event that it cares about, and never again."""
    bench = planned()
    steps: list[int] = []

    class Counting(PlanFold):
        def step(self, state: Any, event: Any) -> Any:
            steps.append(event.seq)
            return super().step(state, event)

    counting = Counting()
    for _ in range(200):
        bench.session.append(draft("sandbox/mode", {"mode": "x"}), draft("plan/mode", {"active": True}))
        assert bench.session.fold(counting) == bench.session.fold(PLAN) == PlanState(True)
        bench.session.fold(counting)
    assert steps == list(range(1, 400, 2))
