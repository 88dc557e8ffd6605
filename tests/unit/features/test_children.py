"""Child agents: a task handed over runs as a turn of its own, under its parent's limits, and its last words are the call's result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.delegation import Birth, child_of
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.exceptions import ModelError, StoreError
from plan_mode_nb.features import approval_policy, ask_user, children, restart, sandbox
from plan_mode_nb.features.children import tools
from plan_mode_nb.features.tools import kernel
from plan_mode_nb.folds.descriptor import DESCRIPTOR, Descriptor
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.script import call, fail, say, think
from plan_mode_nb.models.scripted import ScriptedModel, Step
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.nursery import MemoryNursery
from plan_mode_nb.testing.questions import ScriptedAnswers, pick
from plan_mode_nb.testing.shells import PlainShell
from plan_mode_nb.testing.workbench import CHECKED, Workbench, counted_clock

EVERYTHING: list[Install] = [
    lambda seams: kernel.install(seams, PlainShell()),
    ask_user.install,
    restart.install,
    lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
    sandbox.install,
    approval_policy.install,
]


class Family:
    """A parent on a bench, and the models of its children, one list of answers each."""

    def __init__(
        self, *parent: Step, own: Sequence[Sequence[Step]] = (), depth: int = children.MAX_DEPTH, more: Sequence[Install] = ()
    ) -> None:
        self.models = [ScriptedModel(each) for each in own]

        def nursery(seams: Seams) -> Callable[[], None]:
            self.nursery = MemoryNursery(seams, self.models)
            return seams.delegation.provide(self.nursery)

        installs = [lambda seams: children.install(seams, depth), *EVERYTHING, *more, nursery]
        self.bench = Workbench(*parent, install=installs)

    def ask(self, text: str = "go") -> Family:
        asyncio.run(self.bench.ask(text))
        return self

    def children(self) -> list[Session]:
        return [child.session for child in self.nursery.children]

    def told(self) -> list[tuple[str, str | None]]:
        """What the parent read of each call, and the error's code."""
        return [told(event.data) for event in self.bench.events("tool/result")]


def told(data: dict[str, Any]) -> tuple[str, str | None]:
    return data["message"]["content"][0]["content"][0]["text"], data.get("error", {}).get("code")


def types(session: Session, first: int = 0) -> list[str]:
    return [event.type for event in session.events[first:]]


def test_a_spawned_child_runs_a_turn_of_its_own_and_its_last_words_are_the_result() -> None:
    """Its log is empty before, plan mode is off, and the descriptor stands in its turn, ahead of its request."""
    family = Family(
        call("spawn_agent", {"task": "Count the rows.", "description": "count rows"}),
        say("There are three."),
        own=[[[say("I look."), call("python", {"code": "1"})], [think("three"), say("Three rows.")]]],
    )
    family.bench.session.append(draft("plan/mode", {"active": True}))
    family.ask()
    (child,) = family.children()
    assert family.told() == [("Three rows.", None)]
    assert family.bench.events("tool/result")[0].data["meta"] == {"child": {"session": "session.1", "steps": 2, "calls": 1}}
    assert child.header == Header(
        id=SessionId("session.1"),
        created_at=child.header.created_at,
        delegation_depth=1,
        parent_session=SessionId("session"),
        origin="subagent",
    )
    order = types(child)
    assert order[:2] == ["agent/inbox/spliced", "agent/inbox/spliced"]
    assert order.index("turn/start") < order.index("subagent/descriptor") < order.index("request/header")
    assert order[-1] == "turn/end"
    assert child.fold(DESCRIPTOR) == Descriptor("spawn", "count rows")
    assert not child.fold(PLAN).active
    first = family.models[0].requests[0]
    assert [message["content"][0]["text"] for message in first.messages] == [tools.SPAWNED, "Count the rows."]
    assert "Only look." not in first.system
    assert list(family.nursery.sinks[0].lines) == list(child.lines)


def test_a_forked_child_inherits_the_log_up_to_its_call() -> None:
    """Plan state and conversation are its own from there; the calls that its parent still waits for are answered in words."""
    family = Family(
        say("I keep it."),
        [say("I ask a copy."), call("fork_agent", {"task": "Which number?"}, id="one"), call("python", {"code": "1"}, id="two")],
        say("Seven it is."),
        own=[[say("Seven.")]],
    )
    family.bench.session.append(draft("plan/mode", {"active": True}))
    family.ask("The number is seven.")
    family.ask("Which is it?")
    (child,) = family.children()
    seed = child.header.seed_length
    assert isinstance(seed, int)
    assert list(child.lines[:seed]) == list(family.bench.session.lines[:seed])
    assert child.events[seed - 1].type == "tool/call"
    assert types(child, seed)[:5] == ["tool/result", "tool/result", "step/end", "turn/end", "session/end-seed"]
    assert [told(event.data) for event in child.events[seed : seed + 2]] == [
        (tools.FORK_POINT, None),
        (tools.LEFT_TO_PARENT, "TOOL_NOT_STARTED"),
    ]
    assert child.fold(PLAN).active
    request = family.models[0].requests[0]
    assert "Only look." in request.system
    assert [message["content"][0].get("text") for message in request.messages[-2:]] == [tools.FORKED, "Which number?"]
    assert "The number is seven." in str(request.messages)
    assert restart.NOTICE not in str(request.messages)
    assert family.told()[0] == ("Seven.", None)
    assert child.fold(DESCRIPTOR) == Descriptor("fork", "Which number?")


def test_plan_mode_of_a_fork_is_its_own() -> None:
    """Switched in the child it stays in the child; the fork's state is that of the moment of the call."""
    family = Family(
        [call("fork_agent", {"task": "a"}, id="a"), call("fork_agent", {"task": "b"}, id="b")],
        say("done"),
        own=[[call("exit_plan_mode", {"plan": "# P\n\nx"}), say("first")], [say("second")]],
    )
    family.ask()
    assert [child.fold(PLAN).active for child in family.children()] == [False, False]
    assert family.told() == [("first", None), ("second", None)]
    second = family.models[1].requests[0]
    assert "first" in str(second.messages), "the second fork knows what the first one answered"


def test_a_child_cannot_open_a_review() -> None:
    """In plan mode it is told where the open decision belongs."""
    family = Family(
        call("fork_agent", {"task": "plan it"}),
        say("done"),
        own=[[call("exit_plan_mode", {"plan": "# P\n\nx"}), say("To decide: x.")]],
    )
    family.bench.session.append(draft("plan/mode", {"active": True}))
    family.ask()
    (child,) = family.children()
    refused = [told(event.data) for event in child.events if event.type == "tool/result"][-1]
    assert refused == ("Error: only the main agent can ask for a review: put the open decision in your final result", "NOT_ROOT")
    assert "question/asked" not in types(child)
    assert family.told() == [("To decide: x.", None)]


@pytest.mark.parametrize("kind", ["spawn_agent", "fork_agent"])
@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
@pytest.mark.parametrize("policy", ["ask", "never"])
def test_a_child_takes_over_both_axes(kind: str, mode: str, policy: str) -> None:
    """Its own log reads as its parent's, whatever order they were set in, so that neither acts with more."""
    family = Family(call(kind, {"task": "t"}), say("done"), own=[[say("ok")]])
    family.bench.session.append(draft("sandbox/mode", {"mode": "danger-full-access"}), draft("approval/policy", {"policy": "never"}))
    family.bench.session.append(draft("sandbox/mode", {"mode": mode}), draft("approval/policy", {"policy": policy}))
    family.ask()
    (child,) = family.children()
    assert (child.fold(SANDBOX_MODE) or "workspace-write") == mode
    assert (child.fold(APPROVAL_POLICY) or "ask") == policy
    assert "plan/mode" not in types(child)


def test_a_childs_approval_and_question_say_whose_they_are() -> None:
    """They go through the queues of its root, one at a time, and are logged in the child's session."""
    approvals, answers = ScriptedApprovals(["allowed-once"]), ScriptedAnswers(pick("Red"))
    question = {"id": "colour", "question": "Which?", "options": [{"label": "Red"}]}
    family = Family(
        call("spawn_agent", {"task": "t", "description": "paint it"}),
        say("done"),
        own=[[[call("python", {"code": "1"}, id="x"), call("ask_user_question", {"questions": [question]}, id="y")], say("ok")]],
        more=[
            lambda seams: seams.approvals.provide(approvals),
            lambda seams: seams.questions.provide(answers),
        ],
    )
    family.ask()
    (child,) = family.nursery.children
    assert [request.agent for request in approvals.requests] == [child]
    assert [request.agent for request in answers.requests] == [child]
    assert child.name == "paint it"
    assert child.parent is family.bench.agent
    assert {"approval/asked", "approval/decided", "question/asked", "question/answered"} <= set(types(child.session))
    assert not {"approval/asked", "question/asked"} & set(family.bench.types)
    assert family.told() == [("ok", None)]


def stopped(where: str) -> Family:
    """A family whose parent is stopped while its child streams, or is in a call."""

    async def run() -> Family:
        reached, held = asyncio.Event(), asyncio.Event()

        async def hold(_: object = None) -> Any:
            reached.set()
            await held.wait()

        async def tool(call: ToolCall) -> Outcome:
            await hold()
            return Outcome(text_result("never"))

        family = Family(
            [call("spawn_agent", {"task": "t"}, id="a"), call("spawn_agent", {"task": "u"}, id="b")],
            own=[[[say("I begin."), call("waits", {})] if where == "call" else say("one two three")], []],
            more=[lambda seams: seams.tools.register(Tool("waits", "Waits.", {"type": "object"}, tool))],
        )
        if where == "answer":
            family.models[0]._before_chunk = hold
        turn = asyncio.ensure_future(family.bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 30)
        family.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 30)
        return family

    return asyncio.run(run())


@pytest.mark.parametrize("where", ["answer", "call"])
def test_a_child_is_stopped_with_its_parent(where: str) -> None:
    """Both logs are closed, the child's as stopped by its parent; the other calls of the answer never ran."""
    family = stopped(where)
    (child,) = family.children()
    assert child.events[-1].data["reason"] == {"kind": "aborted", "reason": {"kind": "parent"}}
    assert child.place.turn is None
    assert family.bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
    first, second = family.bench.events("tool/result")
    assert told(first.data)[0].startswith("Error: the child agent was stopped before it had a result")
    assert child_of(first.data["meta"]) == child.id
    assert told(second.data)[1] == "TOOL_ABORTED_BEFORE_DISPATCH"
    assert not family.nursery.children[0].is_live


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([fail(ModelError("the server is down"))], "Error: the child agent failed: the server is down"),
        ([[say("half of it"), fail(ModelError("cut"))]], "Error: the child agent failed: cut\nWhat it had said until then:\nhalf of it"),
        ([], "Error: the child agent failed: the script ends here: it has 0 answers; add one for request 1"),
    ],
)
def test_how_a_child_failed_is_one_sentence_and_what_it_had_said(answers: list[Step], says: str) -> None:
    """The parent's turn goes on."""
    family = Family(call("spawn_agent", {"task": "t"}), say("Then without."), own=[answers]).ask()
    assert family.told() == [(says, "CHILD_FAILED")]
    assert family.bench.events("turn/end")[0].data["reason"] == {"kind": "completed"}


def test_a_child_that_says_nothing_gives_a_result_all_the_same() -> None:
    """An empty text block would be refused by some providers."""
    family = Family(call("spawn_agent", {"task": "t"}), say("ok"), own=[[think("hm")]]).ask()
    assert family.told() == [("The child agent ended without a word.", None)]


def test_a_long_result_is_capped() -> None:
    """Head and tail stay; the whole is in the child's session."""
    family = Family(call("spawn_agent", {"task": "t"}), say("ok"), own=[[say("word " * 20_000)]]).ask()
    ((text, _),) = family.told()
    assert len(text) <= 30_000
    assert "characters left out here" in text


def test_depth_is_bounded_and_the_tools_stay_as_they_are() -> None:
    """At the bound the answer says what to do; the schemas are the same bytes for every agent and every bound."""
    deep = Family(
        call("spawn_agent", {"task": "one"}),
        say("top"),
        own=[[call("spawn_agent", {"task": "two"}), say("middle")], [call("fork_agent", {"task": "three"}), say("bottom")]],
        depth=2,
    ).ask()
    assert [child.header.delegation_depth for child in deep.children()] == [1, 2]
    assert [child.header.parent_session for child in deep.children()] == ["session", "session.1"]
    middle, bottom = deep.children()
    assert [told(event.data) for event in bottom.events if event.type == "tool/result"] == [
        ("Error: children may be 2 deep here: do the task yourself, and do not call spawn_agent or fork_agent again", "TOO_DEEP")
    ]
    assert [told(event.data)[0] for event in middle.events if event.type == "tool/result"] == ["bottom"]
    none = Family(call("spawn_agent", {"task": "one"}), say("alone"), depth=0).ask()
    assert none.told()[0][0].startswith("Error: agents have no children here: do the task yourself")
    bytes_ = {json.dumps(request.tools) for model in (*deep.models, deep.bench.model, none.bench.model) for request in model.requests}
    assert len(bytes_) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "BAD_ARGUMENTS"),
        ({"task": "  "}, "BAD_ARGUMENTS"),
        ({"task": 1}, "BAD_ARGUMENTS"),
        ({"task": "t", "model": "x"}, "BAD_ARGUMENTS"),
    ],
)
def test_wrong_arguments_make_no_child(arguments: dict[str, Any], code: str) -> None:
    """Each is told what to send."""
    family = Family(call("spawn_agent", arguments), say("ok")).ask()
    assert [each[1] for each in family.told()] == [code]
    assert family.children() == []


def test_without_a_nursery_and_without_an_agent_there_is_no_child() -> None:
    """The composition degrades to a sentence."""
    bench = Workbench(call("spawn_agent", {"task": "t"}), say("ok"), install=[children.install])
    asyncio.run(bench.ask("go"))
    assert told(bench.events("tool/result")[0].data) == ("Error: nothing here can run a child agent: do the task yourself", "NO_CHILDREN")
    outcome = asyncio.run(bench.seams.tools.run(ToolCall("fork_agent", '{"task": "t"}', "x", 1, 1, None)))
    assert outcome.result.error == {"name": "ToolError", "code": "NO_AGENT"}


def test_a_childs_log_that_cannot_be_kept_ends_the_child_and_not_the_parent() -> None:
    """Wherever the disk gives out, at its first line or at its last."""
    for refused in range(3):
        family = Family(call("spawn_agent", {"task": "t"}), say("Then not."), own=[[say("ok")]])
        original = family.nursery.open

        def opened(
            parent: Agent, session: Session, name: str, refused: int = refused, original: Any = original, family: Family = family
        ) -> Any:
            child = original(parent, session, name)
            sink = family.nursery.sinks[0]
            sink.refuse = lambda lines: len(sink.writes) >= refused * 4
            return child

        family.nursery.open = opened  # type: ignore[method-assign]
        family.ask()
        ((text, code),) = family.told()
        assert code == "CHILD_FAILED", text
        assert "cannot be written" in text
        assert family.bench.events("turn/end")[0].data["reason"] == {"kind": "completed"}


def test_a_child_that_cannot_begin_is_a_result() -> None:
    """The nursery may have no place for its log."""
    family = Family(call("spawn_agent", {"task": "t"}), say("ok"))

    def full(parent: Agent, session: Session, name: str) -> Any:
        raise StoreError("no space is left")

    family.nursery.open = full  # type: ignore[method-assign]
    family.ask()
    assert family.told() == [("Error: the child agent's log cannot be kept: no space is left", "CHILD_FAILED")]


def test_watchers_are_told_before_the_childs_first_event() -> None:
    """So that a display misses nothing."""
    births: list[tuple[Birth, int]] = []
    family = Family(call("spawn_agent", {"task": "t"}), say("ok"), own=[[say("ok")]])
    undo = family.bench.seams.delegation.watch(lambda birth: births.append((birth, len(birth.child.session))))
    family.ask()
    ((birth, length),) = births
    assert (birth.parent, birth.kind, birth.label, length) == (family.bench.agent, "spawn", "t", 0)
    undo()


def test_a_child_uses_up_its_own_steps_only() -> None:
    """A limit of the child's ends the child; the parent reads which limit it was."""
    family = Family(call("spawn_agent", {"task": "t"}), say("ok"), own=[[call("python", {"code": "1"}) for _ in range(3)]])
    family.nursery._config = LoopConfig(max_steps=2, check="full")
    family.ask()
    assert family.told()[0][0].startswith("Error: the child agent failed: the turn reached its limit of 2 steps")


def test_logs_of_children_are_the_same_each_time() -> None:
    """Several in one answer run one after the other."""

    def run() -> list[list[str]]:
        family = Family(
            [call("spawn_agent", {"task": name}, id=name) for name in "abc"],
            say("ok"),
            own=[[call("python", {"code": "1"}), say(name)] for name in "abc"],
        ).ask()
        assert [text for text, _ in family.told()] == ["a", "b", "c"]
        return [list(family.bench.session.lines), *(list(child.lines) for child in family.children())]

    assert run() == run()


def test_install_and_remove_leaves_nothing() -> None:
    """Both tools and the pre-step go."""
    seams = Seams.create()
    undo = children.install(seams)
    assert [tool["name"] for tool in seams.tools.schemas()] == ["spawn_agent", "fork_agent"]
    with pytest.raises(ValueError, match="already registered"):
        children.install(seams)
    undo()
    assert seams.tools.schemas() == []


def test_a_session_that_is_not_open_yields_a_child_without_seed() -> None:
    """The log's own part of it: lineage, one deeper, and no end of a seed that there is not."""
    parent = Session(Header(id=SessionId("p"), created_at=1, delegation_depth=1, cwd="/w"), clock=counted_clock())
    child = parent.child(id=SessionId("c"))
    assert child.header.to_json() == {
        "version": 0, "id": "c", "createdAt": 1000, "cwd": "/w", "parentSession": "p", "origin": "subagent", "delegationDepth": 2,
    }  # fmt: skip
    assert len(child) == 0


def test_what_is_owed_is_settled_without_an_event_of_its_own() -> None:
    """A child's interrupted log closes with its parent's first new event."""
    bench = Workbench(say("ok"))
    asyncio.run(bench.ask("go"))
    cut = next(event.seq for event in bench.session.events if event.type == "assistant/message")
    again = Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines[:cut])
    agent = LoopAgent("x", again, bench.seams, lambda name: bench.model, CHECKED, parent=bench.agent)
    assert again.owed
    again.settle()
    again.settle()
    assert types(again)[-2:] == ["step/end", "turn/end"]
    assert not again.owed
    assert agent.is_live
