"""Registering: unique names, explicit places and orders, and an undo that leaves everything as before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from plan_mode_nb.agent.commands import Command, CommandResult
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Place, PreStepChain, Reject, Step
from plan_mode_nb.agent.previews import Preview, Previews
from plan_mode_nb.agent.prompt import PromptContext, PromptSections
from plan_mode_nb.agent.redact import Redactions
from plan_mode_nb.agent.registry import Registry, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.folds.plan import PLAN, PlanState
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.workbench import Workbench

NOBODY = PromptContext(None)


def listener(name: str, said: list[str]) -> Any:
    async def listen(step: Step, call_next: CallNext) -> Decision:
        said.append(f"{name} in")
        decision = await call_next(step)
        said.append(f"{name} out")
        return decision

    return listen


def a_step(**more: Any) -> Step:
    return Step(Workbench().agent, 1, 1, ({"id": "m"},), **more)


def test_the_chain_runs_by_place_and_within_a_place_the_first_registered_is_the_outer_one() -> None:
    """Outermost, default, innermost, whatever the order of registration; decisions come back the other way."""
    chain, said = PreStepChain(), list[str]()
    order: list[tuple[str, Place]] = [("i1", "innermost"), ("d1", "default"), ("o1", "outermost"), ("o2", "outermost"), ("d2", "default")]
    for name, place in order:
        chain.register(listener(name, said), place)
    assert asyncio.run(chain.propose(a_step())) == Enter(({"id": "m"},))
    names = ["o1", "o2", "d1", "d2", "i1"]
    assert said == [f"{name} in" for name in names] + [f"{name} out" for name in reversed(names)]


def test_an_empty_chain_accepts_a_step_as_proposed() -> None:
    """Nobody there is nobody against."""
    assert asyncio.run(PreStepChain().propose(a_step())) == Enter(({"id": "m"},))


def test_a_listener_may_add_reject_replace_and_answer_without_asking_the_rest() -> None:
    """The outer listener sees the inner one's decision; who does not call next keeps the rest out."""

    async def add(step: Step, call_next: CallNext) -> Decision:
        decision = await call_next(replace(step, messages=(*step.messages, {"id": "a"})))
        return Enter((*decision.messages, {"id": "z"})) if isinstance(decision, Enter) else decision

    async def reject(step: Step, call_next: CallNext) -> Decision:
        return Reject("no")

    chain, said = PreStepChain(), list[str]()
    chain.register(add)
    assert asyncio.run(chain.propose(a_step())) == Enter(({"id": "m"}, {"id": "a"}, {"id": "z"}))
    undo = chain.register(reject)
    chain.register(listener("behind", said), "innermost")
    assert asyncio.run(chain.propose(a_step())) == Reject("no")
    assert said == []
    undo()
    assert asyncio.run(chain.propose(a_step())) == Enter(({"id": "m"}, {"id": "a"}, {"id": "z"}))
    assert said == ["behind in", "behind out"]


@pytest.mark.parametrize(
    ("due", "stopped", "entering", "runs"),
    [(True, False, 0, True), (False, False, 0, False), (False, False, 1, True), (True, True, 1, False), (False, True, 0, False)],
)
def test_a_step_runs_when_results_wait_or_something_is_said_and_nobody_stopped_it(
    due: bool, stopped: bool, entering: int, runs: bool
) -> None:
    """What a listener can ask before it acts."""
    assert a_step(due=due, is_stopped=lambda: stopped).runs([{}] * entering) is runs


def test_the_undo_of_a_listener_takes_out_that_registration_and_may_be_called_twice() -> None:
    """Also where the same function is registered twice, as two parties may."""
    chain, said = PreStepChain(), list[str]()
    one = listener("x", said)
    first, second = chain.register(one), chain.register(one)
    second()
    second()
    asyncio.run(chain.propose(a_step()))
    assert said == ["x in", "x out"]
    first()
    asyncio.run(chain.propose(a_step()))
    assert said == ["x in", "x out"]


def test_sections_stand_by_order_ties_by_registration_and_an_empty_one_leaves_no_gap() -> None:
    """A blank line between two; what is registered late with a low order still comes first."""
    sections = PromptSections()
    for name, order, text in [("late", 500, "L"), ("none", 100, ""), ("b", 100, "B"), ("c", 100, "C"), ("first", -1, "F")]:
        sections.register(name, order, lambda context, text=text: text)
    assert sections.assemble(NOBODY) == "F\n\nB\n\nC\n\nL"
    assert PromptSections().assemble(NOBODY) == ""


def test_a_section_is_asked_anew_for_every_assembly_and_sees_for_whom() -> None:
    """Nothing is cached: state is the log's."""
    seen: list[Any] = []
    sections = PromptSections()
    sections.register("s", 1, lambda context: str(seen.append(context.agent)))
    agent = Workbench().agent
    sections.assemble(PromptContext(agent))
    sections.assemble(NOBODY)
    assert seen == [agent, None]


async def _nothing(call: ToolCall) -> Outcome:
    return Outcome(text_result("ok"))


def _tool(description: str) -> Tool:
    return Tool("same", description, {}, _nothing)


REGISTERING: dict[str, Callable[[Seams, str], Any]] = {
    "tool": lambda seams, who: seams.tools.register(_tool(who)),
    "section": lambda seams, who: seams.sections.register("same", 1, type(who, (), {"__call__": lambda self, context: ""})()),
    "command": lambda seams, who: seams.commands.register(Command("same", who, lambda call: CommandResult("success", ""))),
    "redaction": lambda seams, who: seams.redactions.register("same", type(who, (), {"__call__": lambda self, text: text})()),
    "projection": lambda seams, who: seams.projections.register("same", type(who, (), {"types": frozenset(), "start": None})()),
}


@pytest.mark.parametrize("kind", REGISTERING)
def test_a_name_that_is_taken_is_refused_and_both_parties_are_named(kind: str) -> None:
    """What stood there stays; after its undo the name is free."""
    seams, register = Seams.create(), REGISTERING[kind]
    undo = register(seams, "FirstParty")
    with pytest.raises(ValueError, match=f"the {kind} 'same' is already registered by .*FirstParty.*SecondParty.* cannot take its place"):
        register(seams, "SecondParty")
    undo()
    register(seams, "SecondParty")
    undo()
    with pytest.raises(ValueError, match=r"already registered by .*SecondParty"):
        register(seams, "ThirdParty")


def test_a_registry_keeps_the_order_of_registration_and_may_change_while_it_is_read() -> None:
    """A plugin that takes itself out in the middle of a round disturbs nobody."""
    registry: Registry[int] = Registry("number")
    undos = [registry.register(str(number), number) for number in (3, 1, 2)]
    seen = []
    for number in registry:
        seen.append(number)
        undos[0]()
    assert seen == [3, 1, 2]
    assert (registry.names(), len(registry), registry.get("3"), registry.get("1")) == (["1", "2"], 2, None, 1)


def test_undoing_all_goes_backwards_and_each_at_most_once() -> None:
    """As a stack unwinds; a second call finds nothing left."""
    done: list[int] = []
    undo = undo_all([lambda number=number: done.append(number) for number in range(3)])
    undo()
    undo()
    assert done == [2, 1, 0]


def test_a_tools_schemas_depend_on_registrations_alone() -> None:
    """In order of registration; an undone and repeated registration stands last."""
    seams = Seams.create()
    tools = [Tool(name, name.upper(), {"type": "object"}, _nothing) for name in "ab"]
    undo, _ = [seams.tools.register(tool) for tool in tools]
    assert [schema["name"] for schema in seams.tools.schemas()] == ["a", "b"]
    undo()
    seams.tools.register(tools[0])
    assert seams.tools.schemas() == [
        {"name": "b", "description": "B", "parameters": {"type": "object"}},
        {"name": "a", "description": "A", "parameters": {"type": "object"}},
    ]


def test_redactions_apply_in_order_to_every_written_text_and_leave_the_rest() -> None:
    """Keys, ids, names and attachments are not text that somebody wrote."""
    redactions = Redactions()
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "tool-call", "id": "a", "name": "a", "arguments": '{"a":1}'},
        {"type": "tool-result", "toolCallId": "a", "content": [{"type": "text", "text": "aa"}]},
        {"type": "image", "attachment": {"attachmentId": "a"}},
    ]
    assert redactions.blocks(blocks) == blocks
    undo = redactions.register("one", lambda text: text.replace("a", "b"))
    redactions.register("two", lambda text: text.replace("b", "c"))
    assert redactions.text("abx") == "ccx"
    assert redactions.blocks(blocks) == [
        {"type": "text", "text": "c"},
        {"type": "tool-call", "id": "a", "name": "a", "arguments": '{"c":1}'},
        {"type": "tool-result", "toolCallId": "a", "content": [{"type": "text", "text": "cc"}]},
        {"type": "image", "attachment": {"attachmentId": "a"}},
    ]
    assert redactions.json({"a": ["a", 1, None, {"a": "a"}]}) == {"a": ["c", 1, None, {"a": "c"}]}
    undo()
    assert redactions.text("ab") == "ac"


def test_a_preview_listener_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the others and the answer go on."""
    previews, seen = Previews(), list[Preview]()

    def fails(preview: Preview) -> None:
        raise RuntimeError("display gone")

    previews.subscribe(fails)
    undo = previews.subscribe(seen.append)
    preview = Preview(SessionId("s"), "text", 0, "hi")
    previews.send(preview)
    undo()
    previews.send(preview)
    assert seen == [preview]
    assert [record.message for record in caplog.records] == ["a preview listener failed in session s"] * 2


def test_a_projection_is_pushed_when_its_value_changes_and_reads_the_same() -> None:
    """One push a change, none for other events; after the undo none at all."""
    bench = Workbench()
    projections = bench.seams.projections
    assert projections is not None
    unregister = projections.register("plan", PLAN)
    pushed: list[tuple[str, Any]] = []
    undo = projections.watch(bench.session, lambda name, value: pushed.append((name, value)))
    bench.session.append(draft("plan/mode", {"active": True}))
    bench.session.append(draft("plan/mode", {"active": True}), draft("sandbox/mode", {"mode": "read-only"}))
    assert pushed == [("plan", PlanState(True))]
    assert projections.read(bench.session) == {"plan": PlanState(True)}
    undo()
    bench.session.append(draft("plan/mode", {"active": False}))
    assert pushed == [("plan", PlanState(True))]
    unregister()
    assert projections.read(bench.session) == {}
