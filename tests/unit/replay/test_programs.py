"""A program is not run again in a replay: its recorded result is taken, and each call that it made is what its own tool says of replays."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from leading import PLAN, Conversation, again

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.confinement import Enforced, Launch
from plan_mode_nb.agent.questions import QuestionRequest, Reply
from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.features import code_mode
from plan_mode_nb.folds.plan import APPROVED_PLAN
from plan_mode_nb.folds.plan import PLAN as PLAN_STATE
from plan_mode_nb.folds.questions import OPEN_REVIEWS
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.plan.review import APPROVE
from plan_mode_nb.replay.replay import Rules
from plan_mode_nb.testing.questions import Answering, pick


class Free:
    """No limits; counts what it starts."""

    def __init__(self) -> None:
        self.started = 0

    async def confined(self, agent: Agent, argv: Sequence[str]) -> Launch:
        return self.unconfined(argv)

    def unconfined(self, argv: Sequence[str]) -> Launch:
        self.started += 1
        return Launch(tuple(argv), dict(os.environ), os.getcwd(), "everything")

    def enforced(self) -> Enforced:
        return Enforced("none", "")


def programs(held: Conversation) -> Free:
    """The same conversation with programs."""
    free = Free()
    held.bench.seams.confinement.provide(free)
    code_mode.install(held.bench.seams)
    return free


CODE = """
for what in ("a", "b"):
    seen = look(what=what)
print(seen, make(what="one"))
todo_write(todos=[{"content": "Two", "status": "pending"}])
try:
    look()
except ToolCallError as error:
    print(error.tool)
"""
EXIT = f"print(exit_plan_mode(plan={PLAN!r}))"


def held() -> Conversation:
    """One turn with a program of several calls, one with a program that hands in a plan."""
    live = Conversation(
        [say("One program."), call("run_code", {"code": CODE}), usage(10, 2)],
        [say("Seen."), usage(20, 5)],
        [call("run_code", {"code": EXIT}), usage(30, 5)],
        [say("Off we go."), usage(40, 5)],
        answers=[pick(APPROVE)],
    )
    assert programs(live) is not None

    async def body() -> None:
        await live.run("%agent look around")
        await live.run("%plan fix it")

    asyncio.run(body())
    return live


def test_calls_of_a_program_are_played_or_run_and_the_program_is_not() -> None:
    """Event for event; what rebuilds runs, what looks outside does not, and no process is started."""
    live = held()
    frees: list[Free] = []
    led, replay = again(live.notebook(), prepare=lambda each: frees.append(programs(each)))
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert (led.looked, led.made, frees[0].started) == ([], live.made, 0) == ([], ["one"], 0)
    assert live.looked == ["a", "b"]
    assert replay.is_over
    assert live.bench.types.count("tool/code-dispatch") == 6


def test_a_plan_handed_in_by_a_program_is_reviewed_and_left_as_any() -> None:
    """Approved together with the call's own result; plan mode ends at the next step, which says so; a replay does the same."""
    live = held()
    led, _ = again(live.notebook(), prepare=lambda each: programs(each) and None)
    for each in (live, led):
        session = each.bench.session
        assert session.fold(APPROVED_PLAN) == PLAN
        assert session.fold(PLAN_STATE).active is False
        types = each.bench.types
        at = len(types) - 1 - types[::-1].index("tool/code-dispatch")
        assert types[at - 2 : at + 2] == ["question/answered", "plan/selected", "tool/code-dispatch", "tool/result"]
    notices = [event.data["source"].get("plugin") for event in live.bench.events("user/message")]
    assert notices.count("plan-mode") == 2  # in, and out again: what the program did with the answer is not known


def changed(type: str, change: Callable[[dict[str, Any]], None], which: int = 0) -> Callable[[list[dict[str, Any]]], None]:
    def edit(events: list[dict[str, Any]]) -> None:
        change([event for event in events if event["type"] == type][which]["data"])

    return edit


def content(text: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["content"][0].update(text=text)


def arguments(**values: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["arguments"].update(values)


START, END = "tool/code-dispatch-start", "tool/code-dispatch"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        pytest.param(changed(END, content("made two"), 2), END, id="a result that is made again"),
        pytest.param(changed(END, lambda data: data.update(isError=True), 5), END, id="a review"),
        pytest.param(changed(START, arguments(what="two"), 2), END, id="what it ran"),
        pytest.param(changed(START, lambda data: data.update(name="look"), 2), END, id="another tool"),
        pytest.param(changed(START, lambda data: data.update(subCallId="somebody's"), 2), START, id="another id"),
        pytest.param(changed(START, lambda data: data.pop("arguments") and None, 2), START, id="no arguments"),
        pytest.param(changed(START, lambda data: data.update(parentCallId="nobody"), 2), START, id="another parent"),
        pytest.param(changed(END, lambda data: data.pop("content") and None, 2), END, id="no content"),
        pytest.param(changed(START, arguments(plan="# Not this\n\n1. Else.\n"), 5), "question/asked", id="another plan"),
    ],
)
def test_a_hand_edited_call_of_a_program_is_named(edit: Callable[[list[dict[str, Any]]], None], says: str) -> None:
    """Whatever is derived or made again is compared."""
    notebook = held().notebook(edit)
    with pytest.raises(ReplayError, match=says):
        again(notebook, prepare=lambda each: programs(each) and None)


def test_where_every_tool_runs_the_program_does_too() -> None:
    """Its result is compared then."""
    live = held()
    frees: list[Free] = []
    led, _ = again(live.notebook(), Rules(runs_all=True), prepare=lambda each: frees.append(programs(each)))
    assert (led.looked, led.made, frees[0].started) == (["a", "b"], ["one"], 2)


def answering(answer: Answering) -> Conversation:
    """One turn: a program hands in a plan, and this is what comes of it."""
    live = Conversation(
        [
            call("run_code", {"code": f"look(what='first')\ntry:\n    {EXIT}\nexcept ToolCallError as error:\n    print('no:', error)"}),
            usage(30, 5),
        ],
        [say("I see."), usage(40, 5)],
        [say("On we go."), usage(50, 5)],
        answers=[answer],
    )
    programs(live)
    return live


def while_the_plan_waits(act: Callable[[Conversation], Awaitable[object]], *more: str) -> Conversation:
    """What somebody does while the plan of a program waits for its review, and the cells after it."""

    async def body() -> Conversation:
        entered = asyncio.Event()

        async def wait(request: QuestionRequest) -> Reply:
            entered.set()
            await asyncio.Event().wait()
            raise AssertionError

        live = answering(wait)
        cell = asyncio.ensure_future(live.run("%plan fix it"))
        await asyncio.wait_for(entered.wait(), 60)
        await act(live)
        await cell
        for source in more:
            await live.run(source)
        return live

    return asyncio.run(body())


def test_a_review_from_a_program_that_the_person_ends_by_leaving_plan_mode() -> None:
    """The program is told and goes on; a replay feeds the act at its place."""
    live = while_the_plan_waits(lambda live: live.select(False))
    text = live.bench.events("tool/result")[0].data["message"]["content"][0]["content"][0]["text"]
    assert text.startswith("no: The user left plan mode during the review")
    led, replay = again(live.notebook(), prepare=lambda each: programs(each) and None)
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert replay.is_over


def test_stop_while_a_plan_from_a_program_waits_closes_all_of_it() -> None:
    """Call, program and turn say so, nothing is approved, and a replay stops there too."""

    async def stop(live: Conversation) -> None:
        live.agent.cancel({"kind": "user"})

    live = while_the_plan_waits(stop, "%agent go on")
    assert [event.data["isError"] for event in live.bench.events("tool/code-dispatch")] == [False, True]
    assert live.bench.events("tool/result")[0].data["error"]["code"] == "PROGRAM_STOPPED"
    assert live.bench.session.fold(APPROVED_PLAN) is None
    assert live.bench.session.fold(PLAN_STATE).active is True
    led, replay = again(live.notebook(), prepare=lambda each: programs(each) and None)
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert (led.looked, replay.is_over) == ([], True)


@pytest.mark.parametrize("end", ["tool/code-dispatch-start", "tool/code-dispatch", "question/asked"])
def test_a_process_that_ended_in_the_middle_of_a_program_leaves_a_log_that_goes_on(end: str) -> None:
    """Its call gets the result that says so, a question that waited is over, and nothing was approved."""
    live = held()
    lines = live.bench.session.lines
    last = max(event.seq for event in live.bench.events(end))
    again_open = Conversation([say("Still here.")], lines=list(lines[: last + 1]), ids="later")
    programs(again_open)
    asyncio.run(again_open.run("%agent are you there?"))
    result = again_open.bench.events("tool/result")[-1].data
    assert result["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    approved = end == "tool/code-dispatch"
    assert again_open.bench.session.fold(APPROVED_PLAN) == (PLAN if approved else None)
    assert again_open.bench.session.fold(OPEN_REVIEWS) == []
