"""The recorded people answer as the log says, in order, marked as a replay; nothing is approved that was not."""

from __future__ import annotations

import asyncio
from typing import Any

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.questions import Answer, Questions, Reply
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.replay.answers import RecordedAnswers, RecordedApprovals
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.questions import ScriptedAnswers, a_question, a_question_request, dismiss, pick
from plan_mode_nb.testing.workbench import Workbench, counted_ids


def asked(id: str, *questions: str) -> tuple[str, dict[str, Any]]:
    return "question/asked", {"requestId": id, "questions": [{"id": each, "question": "?", "options": []} for each in questions]}


def answered(id: str, outcome: str = "answered", **more: Any) -> tuple[str, dict[str, Any]]:
    return "question/answered", {"requestId": id, "outcome": outcome, "by": "person", **more}


def log(*entries: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(kind, seq, 0, data) for seq, (kind, data) in enumerate(entries)]


def replies(events: list[Event], *ids: str) -> list[Reply]:
    recorded = RecordedAnswers(events)

    async def body() -> list[Reply]:
        return [await recorded.ask(a_question_request(a_question(id))) for id in ids]

    return asyncio.run(body())


def approval(tool: str) -> ApprovalRequest:
    return ApprovalRequest("a-1", Workbench().agent, tool, "x = 1", "it writes", None)


def test_answers_come_in_the_order_they_were_asked_and_say_that_they_are_replayed() -> None:
    events = log(
        asked("q1", "color"),
        answered("q1", answers=[{"id": "color", "selected": ["Red"]}]),
        asked("q2", "plan-review"),
        answered("q2", answers=[{"id": "plan-review", "selected": [], "custom": " not yet\n"}]),
    )
    first, second = replies(events, "color", "plan-review")
    assert first == Reply("answered", (Answer("color", ("Red",)),), by="replay")
    assert second == Reply("answered", (Answer("plan-review", (), " not yet\n"),), by="replay")


def test_a_dismissed_question_is_dismissed_again() -> None:
    assert [reply.outcome for reply in replies(log(asked("q1", "color"), answered("q1", "dismissed")), "color")] == ["dismissed"]


def test_with_no_answer_left_a_question_is_unavailable_and_says_what_to_do() -> None:
    (reply,) = replies(log(), "plan-review")
    assert (reply.outcome, reply.by) == ("unavailable", "replay")
    assert "record this notebook again" in reply.reason


def test_a_question_that_nobody_answered_stays_unanswered_and_keeps_its_place() -> None:
    """The process died while it was open; the next recorded answer belongs to the next question."""
    events = log(asked("q1", "color"), asked("q2", "color"), answered("q2", answers=[{"id": "color", "selected": ["Blue"]}]))
    first, second = replies(events, "color", "color")
    assert first.outcome == "unavailable"
    assert second.answers == (Answer("color", ("Blue",)),)


def test_an_answer_to_another_question_approves_nothing() -> None:
    """And is not used up by it."""
    events = log(asked("q1", "plan-review"), answered("q1", answers=[{"id": "plan-review", "selected": ["Approve"]}]))
    wrong, right = replies(events, "color", "plan-review")
    assert wrong.outcome == "unavailable"
    assert "plan-review" in wrong.reason
    assert right.answers[0].selected == ("Approve",)


def test_what_people_answered_through_the_seam_is_answered_again() -> None:
    """A recording made by the real seam, replayed through the real seam, ends the same way but for who answered."""

    async def ask_all(person: Any) -> tuple[list[Reply], list[Event]]:
        bench = Workbench()
        questions = Questions(counted_ids())
        questions.provide(person)
        given = []
        for question in (a_question("color"), a_question("size", labels=("S", "L")), a_question("end")):
            done = await questions.ask(bench.agent, (question,))
            bench.session.append(done.answered)
            given.append(done.reply)
        return given, bench.session.events

    async def body() -> None:
        first, events = await ask_all(ScriptedAnswers(pick("Red"), pick("L", custom="large"), dismiss()))
        again, replayed = await ask_all(RecordedAnswers(events))
        assert [(reply.outcome, reply.answers) for reply in again] == [(reply.outcome, reply.answers) for reply in first]
        assert {reply.by for reply in again} == {"replay"}
        assert [event.data | {"by": ""} for event in replayed] == [event.data | {"by": ""} for event in events]

    asyncio.run(body())


def test_approvals_are_decided_again_in_order() -> None:
    async def body() -> None:
        bench = Workbench()
        bench.session.append(draft("turn/start", {"turn": 1}))
        bench.seams.approvals.provide(ScriptedApprovals(["allowed-once", "rejected"]))
        for tool in ("python", "bash"):
            await bench.seams.approvals.decide(bench.agent, tool, "x = 1", reason="it writes")
        recorded = RecordedApprovals(bench.session.events)
        assert recorded.remaining == 2
        assert await recorded.decide(approval("python")) == Decided("allowed-once", by="replay")
        assert await recorded.decide(approval("bash")) == Decided("rejected", by="replay")
        assert await recorded.decide(approval("bash")) == Decided("unavailable", by="replay")

    asyncio.run(body())


def test_an_approval_of_another_tool_allows_nothing_and_is_not_used_up() -> None:
    events = log(("approval/asked", {"id": "a", "toolName": "bash"}), ("approval/decided", {"id": "a", "outcome": "allowed-once"}))
    recorded = RecordedApprovals(events)

    async def body() -> list[Decided]:
        return [await recorded.decide(approval(tool)) for tool in ("python", "bash")]

    assert [decided.outcome for decided in asyncio.run(body())] == ["unavailable", "allowed-once"]


def test_an_approval_that_nobody_decided_or_that_says_something_unknown_denies() -> None:
    events = log(
        ("approval/asked", {"id": "a", "toolName": "bash"}),
        ("approval/asked", {"id": "b", "toolName": "bash"}),
        ("approval/decided", {"id": "b", "outcome": "allowed-forever"}),
    )
    recorded = RecordedApprovals(events)

    async def body() -> list[Decided]:
        return [await recorded.decide(approval("bash")) for _ in range(2)]

    assert [decided.outcome for decided in asyncio.run(body())] == ["unavailable", "unavailable"]
