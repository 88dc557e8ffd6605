"""The same loop along a recording gives the same log, and the first thing that is not so ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from leading import PLAN, Conversation, again

from plan_mode_nb.exceptions import ModelError, ReplayError
from plan_mode_nb.models.script import call, fail, hold, say, usage
from plan_mode_nb.plan.review import APPROVE, KEEP_PLANNING
from plan_mode_nb.replay.compare import MARK
from plan_mode_nb.replay.replay import Rules
from plan_mode_nb.testing.questions import dismiss, pick


def held(conversation: Conversation, *cells: str) -> Conversation:
    """Hold it live."""

    async def body() -> None:
        for cell in cells:
            await conversation.run(cell)

    asyncio.run(body())
    return conversation


def exits(plan: str = PLAN) -> Any:
    return call("exit_plan_mode", {"plan": plan})


def planned() -> Conversation:
    """Looked, planned, sent back with words, approved, made, and a second turn."""
    return Conversation(
        [say("I look."), call("look", {"what": "the file"}), usage(10, 2)],
        [exits(), usage(20, 5)],
        [exits(PLAN + "3. Test.\n"), usage(30, 5)],
        [call("todo_write", {"todos": [{"content": "Fix", "status": "in_progress"}]}), call("make", {"what": "the fix"}), usage(40, 5)],
        [say("Done."), usage(50, 1)],
        [say("You are welcome."), usage(60, 2)],
        answers=[pick(KEEP_PLANNING, custom="and test it"), pick(APPROVE)],
    )


def test_a_conversation_led_along_its_recording_gives_the_same_log_without_its_model() -> None:
    """Event for event, ids and times aside; what rebuilds runs, what looks outside does not, and answers say that they are replayed."""
    live = held(planned(), "%plan fix it", "%agent thanks")
    led, replay = again(live.notebook())
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert (live.looked, led.looked) == (["the file"], [])
    assert led.made == live.made == ["the fix"]
    assert led.bench.model.requests == []
    assert {event.data["by"] for event in led.bench.events("question/answered")} == {"replay"}
    assert replay.is_over
    assert replay.notes == []


def test_every_tool_runs_again_and_is_compared_where_that_is_asked_for() -> None:
    """Also what looks at the outside, which may have changed since."""
    notebook = held(planned(), "%plan fix it", "%agent thanks").notebook()
    led, _ = again(notebook, Rules(runs_all=True))
    assert led.looked == ["the file"]


def edits(type: str, change: Callable[[dict[str, Any]], None], which: int = 0) -> Callable[[list[dict[str, Any]]], None]:
    """Change the data of the ``which``-th event of a type."""

    def edit(events: list[dict[str, Any]]) -> None:
        change([event for event in events if event["type"] == type][which]["data"])

    return edit


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        pytest.param(edits("user/message", lambda data: data["content"][0].update(text="break it")), "user/message", id="prompt"),
        pytest.param(
            edits("question/answered", lambda data: data["answers"][0].update(custom="and skip tests")), "and skip tests", id="feedback"
        ),
        pytest.param(
            edits("question/asked", lambda data: data["questions"][0].update(detail="# Other\n\nPlan.\n")), "questions.0.detail", id="plan"
        ),
        pytest.param(edits("tool/call", lambda data: data.update(arguments='{"what": "another file"}')), "another file", id="arguments"),
        pytest.param(edits("plan/mode", lambda data: data.update(active=False), 1), "plan/mode", id="plan mode"),
        pytest.param(edits("todo/write", lambda data: data["todos"][0].update(content="Break")), "todo/write", id="todo"),
        pytest.param(
            edits("tool/result", lambda data: data["message"]["content"][0]["content"][0].update(text="made a mess"), 4),
            "made the fix",
            id="rebuilt result",
        ),
        pytest.param(edits("turn/end", lambda data: data.update(reason={"kind": "max-tokens"})), "turn/end", id="end"),
    ],
)
def test_a_hand_edited_log_is_noticed_where_it_was_edited(edit: Any, says: str) -> None:
    """The message has one line that names cell and event, then both texts."""
    if says == "plan/mode":
        # The second plan/mode is the approval's; true again would be no change of state.
        edit = edits("plan/mode", lambda data: data.update(active=True), 1)
    notebook = held(planned(), "%plan fix it", "%agent thanks").notebook(edit)
    with pytest.raises(ReplayError) as caught:
        again(notebook)
    first, *diff = str(caught.value).splitlines()
    assert first.startswith("cell 1 (%plan fix it): ")
    assert first.endswith("is not as recorded")
    assert says in str(caught.value)
    assert any(line.startswith("-") for line in diff)
    assert any(line.startswith("+") for line in diff)


def test_a_replay_ends_at_the_first_difference_and_runs_nothing_more() -> None:
    """What a later step would have run does not run."""
    edit = edits("question/answered", lambda data: data["answers"][0].update(custom="and skip tests"))
    notebook = held(planned(), "%plan fix it", "%agent thanks").notebook(edit)
    seen: list[Conversation] = []
    with pytest.raises(ReplayError):
        again(notebook, prepare=seen.append)
    assert seen[0].made == []


def test_what_rebuilds_is_compared_and_the_first_difference_shows_both_results() -> None:
    notebook = held(planned(), "%plan fix it", "%agent thanks").notebook()

    def otherwise(led: Conversation) -> None:
        led.making = lambda what: f"made {what} in another way"

    with pytest.raises(ReplayError, match=r"step 4, event .* is not as recorded"):
        again(notebook, prepare=otherwise)
    led, _ = again(notebook, Rules(sanitize=[(" in another way", "")]), prepare=otherwise)
    assert led.made == ["the fix"]


def test_the_folder_and_redacted_values_are_not_compared_nothing_else_is_forgiven() -> None:
    """A recorded folder stands for the present one; ``[redacted:…]`` for whatever was there, and the recorded result is then taken."""
    live = planned()
    live.making = lambda what: "/home/ada/data is done with key [redacted:API_KEY]"
    notebook = held(live, "%plan fix it", "%agent thanks").notebook()

    def here(led: Conversation) -> None:
        led.making = lambda what: "/work/data is done with key None"

    led, replay = again(notebook, Rules(folder="/work"), prepare=here)
    results = [event for event in led.bench.events("tool/result") if event.data.get("meta") == MARK]
    assert "[redacted:API_KEY]" in str(results[0].data)
    assert replay.notes == ["cell 1 (%plan fix it): a result of make was not compared: the recorded one was taken"]


def test_steers_and_selections_land_at_their_recorded_place() -> None:
    """A steer while the answer streams, the chip during a call, the chip between two turns."""
    live = Conversation(
        [hold(lambda: _now(live.steer("mind the units"))), say("I start."), call("look", {"what": "it"}), usage(1, 1)],
        [say("With units."), hold(lambda: live.select(True)), usage(2, 1)],
        [exits(), usage(3, 1)],
        [say("Off it is."), usage(4, 1)],
        answers=[dismiss()],
    )

    async def body() -> None:
        await live.run("%agent go")
        await live.select(True)
        await live.run("%agent plan it")

    asyncio.run(body())
    led, _ = again(live.notebook())
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert led.bench.types.count("command/run") == 2


async def _now(_: object) -> None:
    return None


def test_plan_mode_left_during_a_review_withdraws_it_again() -> None:
    live = Conversation([exits(), usage(1, 1)], [say("Left."), usage(1, 1)])

    async def leave(request: Any) -> Any:
        await live.select(False)
        await asyncio.Event().wait()

    live.bench.seams.questions.provide(_Asked(leave))
    held(live, "%plan fix it")
    led, _ = again(live.notebook())
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert led.bench.events("question/answered")[0].data["outcome"] == "cancelled"


class _Asked:
    def __init__(self, ask: Any) -> None:
        self.ask = ask


@pytest.mark.parametrize("where", ["answer", "call", "review"])
def test_a_stopped_turn_is_stopped_again_where_it_was_and_its_tools_do_not_run(where: str) -> None:
    """The log closes the same way, and the next turn works."""
    stop = {
        "answer": [say("I begin"), hold(lambda: _stopped(live)), say(" and go on")],
        "call": [call("make", {"what": "a start"}), call("look", {"what": "something long"}), call("look", {"what": "more"})],
        "review": [exits()],
    }[where]
    live = Conversation(stop, [say("Stopped."), usage(1, 1)])

    async def never(request: Any) -> Any:
        await _stopped(live)

    if where == "review":
        live.bench.seams.questions.provide(_Asked(never))

    async def body() -> None:
        live.holds_looks = where == "call"
        cell = asyncio.ensure_future(live.run("%plan go" if where == "review" else "%agent go"))
        if where == "call":
            await live.looking.wait()
            live.agent.cancel({"kind": "user"})
        await cell
        live.holds_looks = False
        await live.run("%agent what now?")

    asyncio.run(body())
    assert live.ends[0] is None
    led, _ = again(live.notebook())
    assert [event.type for event in led.bench.session.events] == live.bench.types
    assert led.ends[0] is None
    assert (led.made, led.looked) == ([], [])


async def _stopped(conversation: Conversation) -> None:
    conversation.agent.cancel({"kind": "user"})
    await asyncio.Event().wait()


def test_a_failed_request_fails_again_and_its_turn_s_tools_are_played() -> None:
    live = Conversation(
        [call("make", {"what": "a start"}), usage(1, 1)],
        [say("And"), fail(ModelError("the key is refused; set another", code="AUTH", status=401))],
        [say("Again."), usage(1, 1)],
    )
    held(live, "%agent go", "%agent again")
    led, _ = again(live.notebook())
    assert led.ends[0].reason == live.ends[0].reason
    assert led.made == []


def test_a_turn_that_a_killed_process_left_is_played_and_the_restart_is_fed() -> None:
    """The closing events, the mark of the restart and what is owed are derived, not copied."""
    first = Conversation([call("make", {"what": "one"}), usage(1, 1)], [say("Half of it"), hold(lambda: _killed(reached))])
    reached = asyncio.Event()

    async def die() -> None:
        task = asyncio.ensure_future(first.run("%agent go"))
        await reached.wait()
        lines.extend(first.bench.session.lines)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    lines: list[str] = []
    asyncio.run(die())
    second = Conversation([say("Back."), usage(1, 1)], lines=lines, ids="second")
    second.cells.append("%agent go")
    held(second, "%agent are you back?")
    led, _ = again(second.notebook())
    assert [event.type for event in led.bench.session.events] == second.bench.types
    assert "session/end-seed" in led.bench.types
    assert led.made == []


async def _killed(reached: asyncio.Event) -> None:
    reached.set()
    await asyncio.Event().wait()


def test_another_guidance_is_drift_and_accepted_only_where_that_is_asked_for() -> None:
    """It names the section with both texts; accepted, the new header is there to be written."""
    notebook = held(planned(), "%plan fix it", "%agent thanks").notebook()
    with pytest.raises(ReplayError) as caught:
        again(notebook, guide="Explore much, then hand in one plan.")
    assert "drift, not a difference in what happened" in str(caught.value)
    assert "section plan:policy of the system prompt" in str(caught.value)
    assert "-Explore, then hand in one plan." in str(caught.value)
    assert "+Explore much, then hand in one plan." in str(caught.value)
    _, replay = again(notebook, Rules(accepts_drift=True), guide="Explore much, then hand in one plan.")
    (course,) = replay.courses.values()
    assert all("Explore much" in header["system"] for header in list(course.drifted.values())[:1])


def test_a_cell_that_asks_for_more_than_was_recorded_is_told_so() -> None:
    notebook = held(Conversation([say("One."), usage(1, 1)]), "%agent one").notebook()
    notebook["cells"].append({"cell_type": "code", "source": "x = 1", "outputs": [], "metadata": {}})
    led, replay = again({**notebook, "cells": notebook["cells"][:1]})

    async def more() -> None:
        await led.run("%agent two", replay)

    with pytest.raises(ReplayError, match="the recording is over"):
        asyncio.run(more())
