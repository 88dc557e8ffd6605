"""What is in force: a fold of the log, in every process, fork and agent."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from planning import (
    FIRST,
    GUIDE,
    OFF,
    ON,
    exits,
    notices,
    others,
    plan_mode,
    planned,
    reviewed,
    shows,
)

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.exceptions import LogError, StoreError
from plan_mode_nb.folds.history import NODES
from plan_mode_nb.folds.plan import PLAN, PlanFold, PlanState, fold_plan_mode, fold_plan_state
from plan_mode_nb.log.events import Replace, SessionId
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.testing.workbench import Workbench, counted_clock


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
