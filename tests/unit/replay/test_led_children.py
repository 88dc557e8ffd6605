"""A turn with children along its recording: each child is led along its own session, and what differs there names it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from leading import Conversation, led
from test_programs import programs

from plan_mode_nb.agent.prestep import CallNext, Decision
from plan_mode_nb.agent.prestep import Step as Proposed
from plan_mode_nb.document.chunks import write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.exceptions import ModelError, ReplayError
from plan_mode_nb.features import children
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, fail, hold, say
from plan_mode_nb.models.scripted import ScriptedModel, Step
from plan_mode_nb.replay.replay import Replay, Rules
from plan_mode_nb.testing.nursery import MemoryNursery

STRICT = Rules()
Edit = Callable[[str, list[dict[str, Any]]], None]


class Held(Conversation):
    """A conversation whose agent may have children. ``own``: their models' answers, in the order of their births."""

    def __init__(self, *steps: Step, own: Sequence[Sequence[Step]] = (), depth: int = 3, ids: str = "live") -> None:
        super().__init__(*steps, ids=ids)
        seams = self.bench.seams
        children.install(seams, depth)
        self.models = [ScriptedModel(each) for each in own]
        self.nursery = MemoryNursery(seams, self.models if own else [ScriptedModel() for _ in range(9)])
        seams.delegation.provide(self.nursery)

    def sessions(self) -> list[Session]:
        return [self.bench.session, *(child.session for child in self.nursery.children)]

    def kept(self, edit: Edit = lambda id, events: None, without: str = "") -> dict[str, Any]:
        """The notebook with all sessions. ``edit`` changes the events of each; ``without``: a session that was lost."""
        stored = {}
        for session in self.sessions():
            events = [json.loads(line) for line in session.lines]
            edit(session.id, events)
            lines = [json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events]
            if session.id != without:
                stored[session.id] = StoredSession(session.header, lines)
        cells = [{"cell_type": "code", "source": source, "outputs": [], "metadata": {}} for source in self.cells]
        metadata = write_metadata(Document(agents={"main": self.bench.session.id}, sessions=stored), {})
        return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def live(*steps: Step, own: Sequence[Sequence[Step]] = (), depth: int = 3, cells: Sequence[str] = ("%agent go",)) -> Held:
    async def body() -> Held:
        held = Held(*steps, own=own, depth=depth)
        for cell in cells:
            await held.run(cell)
        return held

    return asyncio.run(body())


def again(
    notebook: dict[str, Any], rules: Rules = STRICT, depth: int = 3, prepare: Callable[[Held], object] = lambda held: None
) -> tuple[Held, Replay]:
    return led(notebook, lambda: Held(ids="again", depth=depth), rules, prepare)


def task(words: str, kind: str = "spawn_agent", id: str | None = None) -> Any:
    return call(kind, {"task": words}, id=id)


def family() -> Held:
    """One spawned child, which has a child itself, and one forked in plan mode."""
    return live(
        [say("First."), task("a")],
        [say("Second."), task("b", "fork_agent")],
        say("Done."),
        own=[
            [[call("make", {"what": "a"}), call("look", {"what": "out"})], task("c"), say("A is made.")],
            [say("C.")],
            [call("make", {"what": "b"}), call("exit_plan_mode", {"plan": "# P\n\nx"}), say("To decide: b.")],
        ],
        cells=["%plan go"],
    )


def shape(session: Session) -> list[tuple[str, Any]]:
    """Types and turns, without ids."""
    return [(event.type, event.data.get("turn") if isinstance(event.data, dict) else None) for event in session.events]


def test_children_are_led_along_their_own_sessions() -> None:
    """Same logs, no model asked, what rebuilds runs again in the order of the recording, what looks outside does not."""
    first = family()
    led, replay = again(first.kept())
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]
    assert [session.id for session in led.sessions()] == [session.id for session in first.sessions()]
    assert led.made == first.made == ["a", "b"]
    assert led.looked == []
    assert all(model.requests == [] for model in (led.bench.model, *led.models))
    assert replay.is_over
    assert set(replay.children.courses) == {"session.1", "session.1.2", "session.3"}


def edited(session: str, type: str, change: Callable[[dict[str, Any]], None], which: int = -1) -> Edit:
    def edit(id: str, events: list[dict[str, Any]]) -> None:
        if id == session:
            change([event for event in events if event["type"] == type][which]["data"])

    return edit


def said(words: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        content = data["content"] if "content" in data else data["message"]["content"]
        block = content[0] if content[0]["type"] != "tool-result" else content[0]["content"][0]
        block["text"] = words

    return change


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        pytest.param(edited("session.1", "user/message", said("other")), "the child agent “a”, turn 1, ", id="task"),
        pytest.param(edited("session.1", "assistant/message", said("Other.")), "tool/result", id="last words"),
        pytest.param(
            edited("session.1", "tool/result", said("other"), 0), "the child agent “a”, turn 1, step 1, ", id="a result that rebuilds"
        ),
        pytest.param(
            edited("session.1.2", "user/message", said("other")),
            "the child agent “a”, turn 1, step 2, the child agent “c”, ",
            id="a grandchild",
        ),
        pytest.param(edited("session.3", "user/message", said("other"), 0), "the child agent “b”, ", id="the seed of a fork"),
        pytest.param(
            edited("session.3", "request/header", lambda data: data["header"].update(system="Other.")), "drift", id="a section of a child"
        ),
    ],
)
def test_what_differs_in_a_child_names_the_child(edit: Edit, says: str) -> None:
    """And its place, with both texts."""
    with pytest.raises(ReplayError) as found:
        again(family().kept(edit))
    assert says in str(found.value)


def test_a_child_that_the_notebook_lost_is_named_and_no_model_is_asked_for_it() -> None:
    """It would otherwise be the live one."""
    with pytest.raises(ReplayError, match=r"session session\.1\.2 of the child agent “c”") as found:
        again(family().kept(without="session.1.2"))
    assert "nothing: it is not there" in str(found.value)


@pytest.mark.parametrize("where", ["answer", "call"])
def test_a_turn_that_was_stopped_in_a_child_stops_there_again(where: str) -> None:
    """Whether its answer streamed or a call of it ran; both logs end as they did."""

    async def body() -> Held:
        reached = asyncio.Event()

        async def wait() -> None:
            reached.set()
            await asyncio.Event().wait()

        answers: list[Step] = [[say("I begin."), call("look", {"what": "x"})] if where == "call" else [say("I begin"), hold(wait)]]
        held = Held([say("I hand over."), task("a")], own=[answers])
        held.holds_looks = where == "call"
        turn = asyncio.ensure_future(held.run("%agent go"))
        await asyncio.wait_for((held.looking if where == "call" else reached).wait(), 30)
        held.agent.cancel({"kind": "user"})
        await asyncio.wait_for(turn, 30)
        return held

    first = asyncio.run(body())
    assert first.sessions()[1].events[-1].type == "turn/end"
    led, _ = again(first.kept())
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]
    assert led.sessions()[1].events[-1].data["reason"] == {"kind": "aborted", "reason": {"kind": "parent"}}
    assert led.bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}


def test_a_child_that_failed_fails_again() -> None:
    """By its recorded failure: nothing is asked."""
    first = live(task("a"), say("Then not."), own=[[[say("half"), fail(ModelError("the server is down"))]]])
    led, _ = again(first.kept())
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]


def test_a_child_that_failed_for_a_reason_outside_the_log_is_played_whatever_limits_its_log_names() -> None:
    """Nothing says how to make that happen again; what it took over of its parent's limits grants nothing here."""

    async def broken(step: Proposed, call_next: CallNext) -> Decision:
        if step.agent.parent is not None and step.step == 2:
            raise ValueError("a fault of a plugin")
        return await call_next(step)

    async def body() -> Held:
        held = Held(task("a"), say("Then not."), own=[[call("look", {"what": "x"}), say("never")]])
        held.bench.seams.delegation.limit("sandbox", lambda parent, session: [draft("sandbox/mode", {"mode": "danger-full-access"})])
        held.bench.seams.pre_step.register(broken)
        await held.run("%agent go")
        return held

    first = asyncio.run(body())
    assert "a fault of a plugin" in str(first.bench.events("tool/result")[0].data)
    led, _ = again(first.kept(), Rules(plays=lambda type: type != "sandbox/mode"))
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]
    assert led.looked == []


def test_calls_that_had_no_child_are_taken_as_recorded() -> None:
    """The bound of depth is a setting, as other limits are."""
    first = live([task("a", id="x"), call("spawn_agent", {}, id="y")], say("Alone."), depth=0)
    led, _ = again(first.kept(), depth=3)
    assert len(led.sessions()) == 1
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]


def test_accepted_drift_is_accepted_in_children_and_in_seeds_too() -> None:
    """Each session's headers are reported under its own id."""

    def drifted(id: str, events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["type"] == "request/header":
                event["data"]["header"]["system"] = "Another guidance."

    _, replay = again(family().kept(drifted), Rules(accepts_drift=True))
    assert {id: sorted(course.drifted) != [] for id, course in replay.children.courses.items()} == {
        "session.1": True,
        "session.1.2": True,
        "session.3": True,
    }
    fork = replay.children.courses["session.3"]
    assert len(fork.drifted) == sum(event.type == "request/header" for event in fork.recorded)


def test_children_of_a_programs_calls_are_led_in_the_order_of_their_births() -> None:
    """A result inside a call names no session; a call that had no child leaves the next one to those that had."""
    code = 'print(spawn_agent(task="a"))\ntry:\n    spawn_agent(task=" ")\nexcept ToolCallError:\n    pass\nprint(fork_agent(task="b"))'

    async def body() -> Held:
        held = Held(
            [say("One program."), call("run_code", {"code": code})],
            say("Done."),
            own=[[call("make", {"what": "a"}), say("A.")], [call("make", {"what": "b"}), say("B.")]],
        )
        programs(held)
        await held.run("%agent go")
        return held

    first = asyncio.run(body())
    assert first.made == ["a", "b"]
    assert first.sessions()[2].header.seed_length
    led, _ = again(first.kept(), prepare=programs)
    assert led.made == first.made
    assert [shape(session) for session in led.sessions()] == [shape(session) for session in first.sessions()]
    assert [session.id for session in led.sessions()] == [session.id for session in first.sessions()]
