"""The review of a plan: what is asked, and what each answer means."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from typing import Any

import pytest
from planning import (
    OFF,
    PLAN,
    approve,
    codes,
    exits,
    keep,
    last_result,
    modes,
    notices,
    planned,
    planning,
    reviewed,
    shows,
    until,
)

from plan_mode_nb.agent.questions import Answer, Option, Question, QuestionRequest, Reply
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.folds.plan import APPROVED_PLAN, SUBMISSIONS, PlanState
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.questions import OPEN_REVIEWS, QUESTIONS
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.plan.review import Approved, read_reply


def test_the_question_is_one_single_choice_with_free_text_and_the_plans_exact_bytes() -> None:
    """Id, labels and intent are what every card and every replay reads."""
    bench = planning(exits(), say("ok"))
    reviewer = reviewed(bench, keep())
    asyncio.run(bench.ask("go"))
    (request,) = reviewer.shown
    assert request.call_id == bench.events("tool/call")[0].data["callId"]
    (question,) = request.questions
    assert (question.id, question.detail, question.multi_select) == ("plan-review", PLAN, None)
    assert [option.label for option in question.options] == ["Approve", "Keep planning"]
    assert question.intent == {"kind": "plan-review", "approve": "Approve"}


def test_approving_ends_plan_mode_at_the_next_step_and_keeps_the_guidance_until_then() -> None:
    """Case 27: ``{approved: true}``, one ``plan/mode`` before the next request, which lacks the section, and no notice."""

    async def main() -> None:
        seen: list[PlanState] = []

        async def look(c: ToolCall) -> Outcome:
            seen.append(PlanMode.get(bench.agent))
            return Outcome(text_result("seen"))

        tool = Tool("look", "L.", {"type": "object"}, look)
        bench = planning([exits(), call("look", {})], say("ok"), install=[lambda seams: seams.tools.register(tool)])
        reviewed(bench, approve())
        await bench.ask("go")
        assert seen == [PlanState(True, False)]
        assert [shows(request) for request in bench.model.requests] == [True, False]
        assert (modes(bench), notices(bench)) == ([True, False], [])
        block = bench.events("tool/result")[0].data["message"]["content"][0]
        assert block["isError"] is False
        assert block["content"][0]["text"] == (
            "The user approved the plan. Plan mode ends now: carry the plan out from your next step; "
            "keep a todo list where the plan has several parts."
        )
        switch = bench.events("plan/mode")[-1].seq
        assert bench.session.events[switch + 1].type == "step/start"

    asyncio.run(main())


def test_the_tools_structured_result_of_an_approval_is_approved_true() -> None:
    """For code that calls tools."""

    async def main() -> None:
        values: list[Any] = []
        bench = planning()
        reviewed(bench, approve(), keep())
        tool = bench.seams.tools.get("exit_plan_mode")
        assert tool is not None
        bench.session.append(draft("turn/start", {"turn": 1}))
        for step in (1, 2):
            bench.session.append(draft("step/start", {"turn": 1, "step": step}))
            outcome = await tool.run(ToolCall("exit_plan_mode", json.dumps({"plan": PLAN}), "c", 1, step, bench.agent))
            values.append((outcome.result.value, outcome.result.is_error, [event.type for event in outcome.events]))
            bench.session.append(draft("step/end", {"turn": 1, "step": step}))
        assert values == [
            ({"approved": True}, False, ["question/answered", "plan/selected"]),
            (None, True, ["question/answered"]),
        ]

    asyncio.run(main())


GENERIC = "Error: The user chose to keep planning; revise the plan and present it again."


@pytest.mark.parametrize("words", [None, "", " ", "\n\t \u2028"])
def test_keep_planning_without_words_is_a_generic_correction(words: str | None) -> None:
    """Case 28: blank is nothing; still active; the revision is reviewed again and can be approved."""

    async def main() -> None:
        bench = planning(exits(), exits("# Second\n\nbody"), say("ok"))
        reviewer = reviewed(bench, keep(words), approve())
        await bench.ask("go")
        first = bench.events("tool/result")[0].data["message"]["content"][0]
        assert (first["isError"], first["content"][0]["text"]) == (True, GENERIC)
        assert [shows(request) for request in bench.model.requests] == [True, True, False]
        assert [request.questions[0].detail for request in reviewer.shown] == [PLAN, "# Second\n\nbody"]
        assert [submission.plan for submission in bench.session.fold(SUBMISSIONS)] == [PLAN, "# Second\n\nbody"]
        assert bench.session.fold(APPROVED_PLAN) == "# Second\n\nbody"

    asyncio.run(main())


WORDS = "  do not delete\nthe data — 絶対に! {x} $HOME \u202e "


@pytest.mark.parametrize("selected", [("Keep planning",), ("Approve",), (), ("Approve", "Keep planning")])
def test_words_go_to_the_model_verbatim_and_never_approve(selected: tuple[str, ...]) -> None:
    """Cases 28 and 29: whatever was picked beside them."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, Reply("answered", (Answer("plan-review", selected, WORDS),)))
    asyncio.run(bench.ask("go"))
    assert last_result(bench) == (True, f"Error: The user chose to keep planning; their feedback: {WORDS}")
    assert PlanMode.get(bench.agent) == PlanState(True, None)
    assert bench.events("question/answered")[0].data["answers"] == [{"id": "plan-review", "selected": list(selected), "custom": WORDS}]


LABELS = ["Approve", "Keep planning", "approve", "APPROVE", "Approve ", " Approve", "Approve\u200b", "Yes", "", "plan-review"]


ITEMS = [
    Answer(id, selected, custom)
    for id in ("plan-review", "other")
    for selected in [(), *[(label,) for label in LABELS], ("Approve", "Approve"), ("Approve", "Keep planning")]
    for custom in (None, "", "Approve")
]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_exactly_one_answer_approves(count: int) -> None:
    """Case 29: one item of this question's id, exactly the label, no text; every other reply of every shape does not."""
    approving = (Answer("plan-review", ("Approve",), None), Answer("plan-review", ("Approve",), ""))
    for items in itertools.product(ITEMS, repeat=count):
        reply = Reply("answered", items)
        assert (read_reply(reply) == Approved()) is (count == 1 and items[0] in approving), items
    for outcome in ("dismissed", "cancelled", "unavailable"):
        for items in itertools.product(ITEMS[:5], repeat=min(count, 1)):
            assert read_reply(Reply(outcome, items)) != Approved()


def test_words_that_stand_in_an_answer_of_the_wrong_shape_are_not_lost() -> None:
    """Two items, or an item of another id: not approved, and the model still hears what was said."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, Reply("answered", (Answer("plan-review", ("Approve",)), Answer("other", (), "use pandas"))))
    asyncio.run(bench.ask("go"))
    assert last_result(bench) == (True, "Error: The user chose to keep planning; their feedback: use pandas")


def test_dismissing_says_to_stop_and_wait_in_plan_mode() -> None:
    """Case 30."""
    bench = planning(exits(), say("waiting"))
    reviewed(bench, Reply("dismissed"))
    asyncio.run(bench.ask("go"))
    assert last_result(bench) == (
        True,
        "Error: The user dismissed the plan review to talk instead; stay in plan mode, stop here, and wait for their message.",
    )
    assert PlanMode.get(bench.agent) == PlanState(True, None)
    assert bench.events("question/answered")[0].data == {"requestId": "id-3", "outcome": "dismissed", "by": "person"}


@pytest.mark.parametrize("policy", ["ask", "never"])
@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
def test_a_plan_is_reviewed_whatever_the_axes_say_and_they_stay_as_they_are(policy: str, mode: str) -> None:
    """Case 36: no switch of one moves another."""
    bench = planned(exits(), say("ok"))
    bench.session.append(draft("approval/policy", {"policy": policy}), draft("sandbox/mode", {"mode": mode}))
    before = list(bench.session.events)
    PlanMode.set(bench.agent, True)
    reviewer = reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    assert len(reviewer.shown) == 1
    assert (bench.session.fold(APPROVAL_POLICY), bench.session.fold(SANDBOX_MODE)) == (policy, mode)
    assert bench.events("approval/policy", "sandbox/mode") == before


def test_with_nobody_to_answer_the_call_fails_at_once_and_is_never_approved() -> None:
    """Case 38: what nbclient, papermill and nbval meet."""
    bench = planning(exits(), say("ok"))
    asyncio.run(bench.ask("go"))
    failed, text = last_result(bench)
    assert failed
    assert text == (
        "Error: The plan could not be reviewed: nobody is here to answer; run this cell in a live notebook, or replay a recording. "
        "It is not approved; stay in plan mode."
    )
    answered = bench.events("question/answered")[0].data
    assert (answered["outcome"], answered["by"]) == ("unavailable", "policy")
    assert PlanMode.get(bench.agent) == PlanState(True, None)


def _raise(request: QuestionRequest) -> Reply:
    raise RuntimeError("no display")


async def _cancelled(request: QuestionRequest) -> Reply:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "provide",
    [_raise, _cancelled, lambda request: None, lambda request: "Approve", lambda request: Reply("answered", None)],  # type: ignore[arg-type]
    ids=["raises", "cancels itself", "None", "text", "no answers"],
)
def test_a_provider_that_fails_or_answers_junk_is_an_error_and_plan_mode_stays(provide: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Case 39: the question is answered in the log all the same, and the turn goes on."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, provide)
    with caplog.at_level(logging.CRITICAL):
        assert asyncio.run(bench.ask("go")).reason == {"kind": "completed"}
    failed, text = last_result(bench)
    assert failed
    assert "present it again" in text
    assert PlanMode.get(bench.agent) == PlanState(True, None)
    assert bench.session.fold(OPEN_REVIEWS) == []
    assert bench.session.fold(QUESTIONS).settled[0].answer is not None


def test_a_review_and_another_question_are_asked_one_after_the_other() -> None:
    """Case 35a: one first-in queue; a review that is left while it waits its turn is never shown."""

    async def main() -> None:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        bench = planning(exits(), say("ok"))
        reviewer = reviewed(bench, lambda request: answer, approve())
        asking = asyncio.ensure_future(bench.seams.questions.ask(bench.agent, (Question("q", "Which?", (Option("A"),)),)))
        await until(lambda: len(reviewer.shown) == 1)
        turn = asyncio.ensure_future(bench.ask("go"))
        await until(lambda: bool(bench.events("tool/call")))
        assert [request.questions[0].id for request in reviewer.shown] == ["q"]
        answer.set_result(Reply("answered", (Answer("q", ("A",)),)))
        bench.session.append((await asking).answered)
        await turn
        assert [request.questions[0].id for request in reviewer.shown] == ["q", "plan-review"]
        assert codes(bench) == [None]

    async def left() -> None:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        bench = planning(exits(), say("ok"))
        reviewer = reviewed(bench, lambda request: answer)
        asking = asyncio.ensure_future(bench.seams.questions.ask(bench.agent, (Question("q", "Which?", (Option("A"),)),)))
        await until(lambda: len(reviewer.shown) == 1)
        turn = asyncio.ensure_future(bench.ask("go"))
        await until(lambda: bool(bench.events("tool/call")))
        PlanMode.set(bench.agent, False)
        answer.set_result(Reply("answered", (Answer("q", ("A",)),)))
        bench.session.append((await asking).answered)
        await turn
        assert [request.questions[0].id for request in reviewer.shown] == ["q"]
        assert (codes(bench), notices(bench)) == (["PLAN_NOT_APPROVED"], [OFF])

    asyncio.run(main())
    asyncio.run(left())
