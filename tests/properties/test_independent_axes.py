"""Plan mode, sandbox mode and approval policy are independent: what each does depends on its own switches and on no other's."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.questions import Answer, Reply
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.features import approval_policy, sandbox
from plan_mode_nb.features.approval_policy import ApprovalPolicy
from plan_mode_nb.features.sandbox import SandboxMode
from plan_mode_nb.features.sandbox.backends import Bubblewrap
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner
from plan_mode_nb.folds.plan import PLAN, is_notice
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.questions import ScriptedAnswers
from plan_mode_nb.testing.workbench import Workbench

GUIDE = "Only look."
PLAN_TEXT = "# A plan\n\nOne step."
MODES: tuple[SandboxMode, ...] = get_args(SandboxMode)
POLICIES: tuple[ApprovalPolicy, ...] = get_args(ApprovalPolicy)
Action = tuple[str, str]
SWITCHES = [("plan", ""), ("plan", "off"), *(("sandbox", mode) for mode in MODES), *(("approval", policy) for policy in POLICIES)]
ACTIONS = st.lists(st.sampled_from([*SWITCHES, ("turn", "")]), max_size=14)


@dataclass(frozen=True)
class Seen:
    """What one turn saw of each axis."""

    plan: tuple[Any, ...]
    sandbox: str
    approval: tuple[str, str]


def look_tool(seams: Seams) -> Tool:
    """A tool that tells where its programs may write, and what comes of an approval that it asks for."""

    async def look(call: ToolCall) -> Outcome:
        assert call.agent is not None
        launch = await seams.confinement.confined(call, ["true"])
        decided = await seams.approvals.decide(call.agent, call.name, "true", reason="to look", call_id=call.call_id)
        return Outcome(text_result(f"{launch.scope} {decided.outcome} {decided.by}"))

    return Tool("look", "Look.", {"type": "object", "properties": {}}, look)


def world() -> Workbench:
    """All three axes and a tool that meets two of them; the backend is named and never started."""
    confiner = SandboxConfiner(sandbox.Grounds(Path(__file__).parent, home=Path("/nowhere")), detect=lambda: Bubblewrap("bwrap", "0"))
    return Workbench(
        install=[
            lambda seams: seams.tools.register(look_tool(seams)),
            lambda seams: install_plan(seams, PlanModeConfig(GUIDE)),
            sandbox.install,
            approval_policy.install,
            lambda seams: seams.confinement.provide(confiner),
            lambda seams: seams.approvals.provide(ScriptedApprovals(itertools.repeat("allowed-once"))),
        ]
    )


async def play(actions: Sequence[Action]) -> list[Seen]:
    """What each turn saw."""
    bench, seen = world(), []
    commands = bench.seams.commands
    assert commands is not None
    for name, argument in actions:
        if name != "turn":
            result = await commands.run(name, CommandCall(bench.agent, argument))
            assert result.kind == "success"
            continue
        before = len(bench.session)
        bench.model.add(call("look", {}), say("done"))
        await bench.ask("go")
        new = bench.session.events[before:]
        (result_text,) = [event.data["message"]["content"][0]["content"][0]["text"] for event in new if event.type == "tool/result"]
        scope, outcome, by = result_text.split()
        requests = bench.model.requests[-2:]
        plan = (
            tuple(GUIDE in request.system for request in requests),
            tuple(is_notice(event.data) for event in new if event.type == "user/message"),
            tuple(event.data["active"] for event in new if event.type == "plan/mode"),
        )
        seen.append(Seen(plan, scope, (outcome, by)))
    return seen


def only(actions: Sequence[Action], axis: str) -> list[Action]:
    return [action for action in actions if action[0] in (axis, "turn")]


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_what_an_axis_does_is_the_same_without_the_switches_of_the_others(actions: list[Action]) -> None:
    """Section, notices and `plan/mode`; where programs may write; who decides an approval: in every order, at every turn."""

    async def body() -> None:
        together = await play(actions)
        for axis in ("plan", "sandbox", "approval"):
            alone = await play(only(actions, axis))
            assert [getattr(turn, axis) for turn in together] == [getattr(turn, axis) for turn in alone]

    asyncio.run(body())


def review(mode: SandboxMode, policy: ApprovalPolicy, reply: Reply) -> tuple[list[str], list[Any], Any, list[str]]:
    """A review under a mode and a policy: the events after the switches but for times, what was asked, the state after it, the requests."""

    async def body() -> tuple[list[str], list[Any], Any, list[str]]:
        bench, answers = world(), ScriptedAnswers(reply)
        bench.seams.questions.provide(answers)
        commands = bench.seams.commands
        assert commands is not None
        for name, argument in (("sandbox", mode), ("approval", policy), ("plan", "")):
            await commands.run(name, CommandCall(bench.agent, argument))
        before = len(bench.session)
        bench.model.add(call("exit_plan_mode", {"plan": PLAN_TEXT}, "c"), say("done"))
        await bench.ask("go")
        events = [f"{event.type} {event.data}" for event in bench.session.events[before:]]
        axes = [event.data for event in bench.events("sandbox/mode", "approval/policy")]
        assert axes == [{"mode": mode}, {"policy": policy}]
        requests = [f"{request.system} {request.tools}" for request in bench.model.requests]
        return events, [request.questions for request in answers.requests], bench.session.fold(PLAN), requests

    return asyncio.run(body())


@pytest.mark.parametrize(
    "reply",
    [
        Reply("answered", (Answer("plan-review", ("Approve",)),)),
        Reply("answered", (Answer("plan-review", ("Keep planning",), "more detail"),)),
        Reply("dismissed"),
        Reply("unavailable", by="policy", reason="nobody is here"),
    ],
    ids=["approved", "keep planning", "dismissed", "unavailable"],
)
def test_a_plan_review_is_the_same_under_all_six_combinations(reply: Reply) -> None:
    """Case 36: asked all the same, every event and request equal, and both axes as they were."""
    found = [review(mode, policy, reply) for mode in MODES for policy in POLICIES]
    assert len(found) == 6
    assert all(each == found[0] for each in found)
    assert len(found[0][1]) == 1
