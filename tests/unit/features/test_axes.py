"""The two axes: each is a fold of its own event, set by its own command, and neither moves the other or plan mode."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from plan_mode_nb.agent.axis import Axis
from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.features import approval_policy, sandbox, todo
from plan_mode_nb.features.tools import files, kernel
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import say
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.shells import PlainShell
from plan_mode_nb.testing.workbench import Workbench

AXES: list[Axis[Any]] = [approval_policy.AXIS, sandbox.AXIS]
SWITCHES = [
    ("plan", ""),
    ("plan", "off"),
    ("approval", "ask"),
    ("approval", "never"),
    ("sandbox", "read-only"),
    ("sandbox", "workspace-write"),
    ("sandbox", "danger-full-access"),
]


@pytest.fixture
def bench(tmp_path: Any) -> Workbench:
    """Plan mode, both axes and every tool of this folder."""
    return Workbench(
        install=[
            lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
            approval_policy.install,
            sandbox.install,
            todo.install,
            lambda seams: files.install(seams, tmp_path),
            lambda seams: kernel.install(seams, PlainShell()),
        ]
    )


def run(bench: Workbench, name: str, args: str = "") -> CommandResult:
    assert bench.seams.commands is not None
    return asyncio.run(bench.seams.commands.run(name, CommandCall(bench.agent, args)))


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.command)
class TestEachAxis:
    """What holds for both."""

    def test_before_its_first_event_the_default_is_in_force(self, axis: Axis[Any], bench: Workbench) -> None:
        """Nothing is logged for a default."""
        assert axis.value(bench.session) == axis.default
        assert len(bench.session) == 0

    def test_the_last_event_wins(self, axis: Axis[Any], bench: Workbench) -> None:
        """The value is a fold: a reopened log has it too."""
        for value in axis.meanings:
            bench.session.append(draft(axis.type, {axis.key: value}))
            assert axis.value(bench.session) == value
        assert axis.value(Workbench(lines=bench.session.lines).session) == value

    def test_without_an_argument_the_command_says_what_is_in_force_and_sets_nothing(self, axis: Axis[Any], bench: Workbench) -> None:
        """One line, with what it means."""
        result = run(bench, axis.command)
        assert result == CommandResult("success", f"{axis.title}: {axis.default}. {axis.meanings[axis.default]}")
        assert bench.types == ["command/run", "command/done"]

    def test_every_value_can_be_set_and_its_result_is_one_line(self, axis: Axis[Any], bench: Workbench) -> None:
        """The event stands between the command's two; case and outer whitespace are ignored."""
        for value in axis.meanings:
            result = run(bench, axis.command, f"  {value.upper()} \n")
            assert result.kind == "success"
            assert result.text.startswith(f"{axis.title}: {value}. ")
            assert "\n" not in result.text
            assert not result.turn
            assert axis.value(bench.session) == value
        assert bench.types[:3] == ["command/run", axis.type, "command/done"]

    def test_setting_the_value_in_force_logs_no_second_event(self, axis: Axis[Any], bench: Workbench) -> None:
        """The first explicit choice is logged even where it equals the default."""
        for _ in range(2):
            run(bench, axis.command, axis.default)
        assert [event.data for event in bench.events(axis.type)] == [{axis.key: axis.default}]

    @pytest.mark.parametrize("wrong", ["nonsense", "ask never", "full", "True", "off", "--help", "🙂"])
    def test_a_wrong_value_is_one_sentence_that_names_the_right_ones(self, axis: Axis[Any], bench: Workbench, wrong: str) -> None:
        """Nothing changes."""
        result = run(bench, axis.command, wrong)
        assert result.kind == "error"
        assert "\n" not in result.text
        assert all(value in result.text for value in axis.meanings)
        assert not bench.events(axis.type)

    def test_a_value_of_a_newer_version_counts_as_the_strictest(self, axis: Axis[Any], bench: Workbench) -> None:
        """A log never loosens anything by a word that this version does not know."""
        bench.session.append(draft(axis.type, {axis.key: "yolo"}))
        assert axis.value(bench.session) == axis.strictest

    def test_sets_within_a_turn_hold_at_once(self, axis: Axis[Any], bench: Workbench) -> None:
        """The person's limit applies to the very next call."""
        bench.session.append(draft("turn/start", {"turn": 1}))
        run(bench, axis.command, axis.strictest)
        assert axis.value(bench.session) == axis.strictest

    def test_the_undo_takes_command_and_enforcement_out(self, axis: Axis[Any]) -> None:
        """Installed, taken out, installed again."""
        install = {"approval": approval_policy.install, "sandbox": sandbox.install}[axis.command]
        bench = Workbench()
        assert bench.seams.commands is not None
        for _ in range(2):
            undo = install(bench.seams)
            assert bench.seams.commands.get(axis.command) is not None
            undo()
            assert bench.seams.commands.all() == []

    def test_installing_twice_is_refused_and_leaves_the_first(self, axis: Axis[Any], bench: Workbench) -> None:
        """Nothing stays half registered."""
        install = {"approval": approval_policy.install, "sandbox": sandbox.install}[axis.command]
        with pytest.raises(ValueError, match="already registered"):
            install(bench.seams)
        assert run(bench, axis.command).kind == "success"


def test_both_commands_say_that_code_in_the_kernel_cannot_be_confined() -> None:
    """No mode but the last claims less, and none claims to confine the kernel."""
    for mode in ("read-only", "workspace-write"):
        assert "Code in the kernel process cannot be confined" in sandbox.AXIS.meanings[mode]
    assert "without an approval" in sandbox.AXIS.meanings["danger-full-access"]


def states(bench: Workbench) -> dict[str, object]:
    session = bench.session
    return {
        "plan": session.fold(PLAN),
        "approval": session.fold(APPROVAL_POLICY),
        "sandbox": session.fold(SANDBOX_MODE),
    }


def test_no_order_of_switches_of_one_moves_the_fold_of_another(bench: Workbench) -> None:
    """After each of many switches only its own fold has changed."""
    order = random.Random(7)
    for _ in range(60):
        name, args = order.choice(SWITCHES)
        before = states(bench)
        assert run(bench, name, args).kind == "success"
        after = states(bench)
        assert {each: after[each] for each in after if each != name} == {each: before[each] for each in before if each != name}


def test_the_order_of_the_last_switches_does_not_matter() -> None:
    """Every order of three switches ends in the same three states."""
    ends = []
    for order in itertools.permutations([("plan", ""), ("approval", "never"), ("sandbox", "read-only")]):
        bench = Workbench(
            install=[lambda seams: install_plan(seams, PlanModeConfig("Only look.")), approval_policy.install, sandbox.install]
        )
        for name, args in order:
            run(bench, name, args)
        ends.append(states(bench))
    assert all(end == ends[0] for end in ends)


def test_tool_schemas_are_the_same_bytes_after_any_switch(bench: Workbench) -> None:
    """Nothing that a person switches moves the tool list; the axes move no byte of the prompt either."""
    tools: set[str] = set()
    system: dict[bool, set[str]] = {}
    for number, (name, args) in enumerate([("plan", "off"), *SWITCHES], start=1):
        run(bench, name, args)
        bench.model.add(say("hello"))
        asyncio.run(bench.ask(f"turn {number}"))
        request = bench.model.requests[-1]
        tools.add(repr(request.tools))
        system.setdefault(bench.session.fold(PLAN).active, set()).add(request.system)
    assert len(tools) == 1
    assert all(len(texts) == 1 for texts in system.values())


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.command)
def test_a_child_acts_under_the_limits_of_its_root(axis: Axis[Any], bench: Workbench) -> None:
    """Its own log says nothing, or something looser: what the person set for the agent that they speak to holds, at once."""
    child = Workbench(parent=bench.agent)
    grandchild = Workbench(parent=child.agent)
    for value in axis.meanings:
        axis.set(bench.session, value)
        assert [axis.in_force(each.agent) for each in (bench, child, grandchild)] == [value] * 3
    axis.set(bench.session, axis.strictest)
    for value in axis.meanings:
        axis.set(grandchild.session, value)
        assert axis.in_force(grandchild.agent) == axis.strictest
