"""Leaving through review: what ``exit_plan_mode`` checks, what an answer means, and that an approval is one write."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from planning import OFF, ON, PLAN, approve, exits, keep, last_result, modes, notices, plan_mode, planned, reviewed, shows, until

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.questions import Answer, Option, Question, QuestionRequest, Reply
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, ToolError, text_result
from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.folds.plan import APPROVED_PLAN, SUBMISSIONS, TOLD, PlanState
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.questions import OPEN_REVIEWS, QUESTIONS
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, hold, say
from plan_mode_nb.models.scripted import Step
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.plan.review import Approved, read_reply
from plan_mode_nb.testing.workbench import Workbench


def planning(*steps: Step, **more: Any) -> Workbench:
    """An agent in plan mode."""
    bench = planned(*steps, **more)
    PlanMode.set(bench.agent, True)
    return bench


def codes(bench: Workbench) -> list[str | None]:
    return [event.data.get("error", {}).get("code") for event in bench.events("tool/result")]


# ---- the checks


def test_called_while_inactive_it_is_corrected_and_nothing_is_asked() -> None:
    """Case 22: no review, no ``plan/*`` or ``question/*`` event."""
    bench = planned(exits(), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    failed, text = last_result(bench)
    assert failed
    assert text == "Error: exit_plan_mode is only for plan mode, and plan mode is off: carry out the task, or answer in prose"
    assert reviewer.shown == []
    assert not [each for each in bench.types if each.startswith(("plan/", "question/"))]


@pytest.mark.parametrize("selected", [False, True])
def test_it_accepts_exactly_when_the_section_was_in_the_request(selected: bool) -> None:
    """A switch that is only pending counts for neither: the tool and the section read the same fold."""

    def step(request: Any) -> Any:
        PlanMode.set(bench.agent, selected)
        return exits()

    bench = planned(step, say("ok"))
    if not selected:
        PlanMode.set(bench.agent, True)
    reviewer = reviewed(bench, keep())
    asyncio.run(bench.ask("go"))
    assert shows(bench.model.requests[0]) is not selected
    assert codes(bench) == ["PLAN_INACTIVE" if selected else "PLAN_REFUSED"]
    assert reviewer.shown == []


BAD_PLANS: dict[str, tuple[Any, str]] = {
    "empty": ("", "`plan` is empty."),
    "blank": (" \n\t ", "`plan` is empty."),
    "null": (None, "`plan` must be a string of markdown, not null."),
    "number": (42, "`plan` must be a string of markdown, not a number."),
    "list": (["# P"], "`plan` must be a string of markdown, not a list."),
    "boolean": (True, "`plan` must be a string of markdown, not a boolean."),
    "object": ({"title": "P"}, "`plan` must be a string of markdown, not an object."),
    "no space": ("#P\n\nbody", "The plan's `#` needs a space and a title after it."),
    "level 2": ("## P\n\nbody", "The plan starts with a level 2 heading; it must be level 1, one `#`."),
    "setext": ("P\n===\n\nbody", "The plan's title must be written as `# Title`, not underlined."),
    "in a fence": ("```\n# P\n```\n\nbody", "The plan starts with a code block, or is indented by four spaces or more."),
    "front matter": ("---\nt: 1\n---\n# P\n\nbody", "The plan starts with `---`; leave out front matter and rules before the title."),
    "no title": ("# \n\nbody", "The plan's first heading has no visible title."),
    "hash only": ("#\n\ntext", "The plan's first heading has no visible title."),
    "closing only": ("# #\n\nbody", "The plan's first heading has no visible title."),
    "invisible": ("# \u200b\u2060\n\nbody", "The plan's first heading has no visible title."),
    "indented": ("    # P\n\nbody", "The plan starts with a code block, or is indented by four spaces or more."),
    "title only": ("# P\n", "The plan is only a title; its steps are missing."),
    "prose first": ("Here is it:\n\n# P\n\nbody", "The plan does not start with a heading."),
}


@pytest.mark.parametrize("kind", BAD_PLANS)
def test_what_is_no_plan_is_corrected_with_what_to_send_and_is_not_reviewed(kind: str) -> None:
    """Cases 23 and 24: the message says exactly what is wrong and what to call again with."""
    argument, why = BAD_PLANS[kind]
    bench = planning(exits(argument), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    failed, text = last_result(bench)
    assert failed
    assert text.startswith(f"Error: {why} Call exit_plan_mode again with `plan` set to the complete plan as markdown")
    assert reviewer.shown == []
    assert not [each for each in bench.types if each.startswith("question/")]
    assert PlanMode.get(bench.agent) == PlanState(True, None)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("", "must be a string of markdown, not null"),
        ("{}", "must be a string of markdown, not null"),
        ("{", "The arguments are not JSON."),
        ("# P\n\nbody", "The arguments are not JSON."),
        ('"# P"', "Send one object with the one key `plan`"),
        ("[]", "Send one object with the one key `plan`"),
        ('{"plan": "# P\\n\\nx", "title": "P"}', "Send one object with the one key `plan`"),
    ],
)
def test_arguments_that_are_not_one_object_with_the_plan_are_corrected(arguments: str, why: str) -> None:
    """Whatever the model produced stays in the log as produced."""
    bench = planning(call("exit_plan_mode", arguments), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    assert why in last_result(bench)[1]
    assert bench.events("tool/call")[0].data["arguments"] == arguments
    assert reviewer.shown == []


GOOD_PLANS = [
    "# P\n\nbody",
    "\n\n# P\n\nbody",
    "\ufeff# P\n\nbody",
    "#\tP\n\nbody",
    "# P\r\n\r\nbody\r\n",
    "   # P\n\nbody",
    "# P #\n- a\n- b",
    "  # Real\n\n```sh\n# pip install x\n```\n",
]


@pytest.mark.parametrize("plan", GOOD_PLANS)
def test_what_is_a_plan_is_shown_and_logged_exactly_as_submitted(plan: str) -> None:
    """Cases 24 and 25."""
    bench = planning(exits(plan), say("ok"))
    reviewer = reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    assert reviewer.shown[0].questions[0].detail == plan
    assert bench.events("question/asked")[0].data["questions"][0]["detail"] == plan
    assert bench.session.fold(APPROVED_PLAN) == plan
    assert not last_result(bench)[0]


def test_a_plan_of_200_kilobytes_is_submitted_shown_and_logged_byte_for_byte() -> None:
    """Case 26: 5,000 lines with CJK, emoji sequences, tables and trailing blanks."""
    lines = [f"- 手順 {n} 👩🏽‍🔬 \u00e9e\u0301 | a | b |\t$x$ `{{y}}`  " for n in range(5_000)]
    plan = "# 計画 🇯🇵 of everything\n\n" + "\n".join(lines) + "\n\n"
    assert len(plan.encode()) > 200_000
    bench = planning(exits(plan), say("ok"))
    reviewer = reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    reopened = planned(lines=bench.sink.lines, ids="x")
    stored = reopened.events("question/asked")[0].data["questions"][0]["detail"]
    assert reviewer.shown[0].questions[0].detail == stored == plan
    assert reopened.session.fold(APPROVED_PLAN) == plan
    assert json.loads(reopened.events("tool/call")[0].data["arguments"])["plan"] == plan


def test_a_child_of_a_live_agent_is_sent_back_to_its_result_and_an_orphan_is_its_own_root() -> None:
    """Case 37: no review that a person would have to attribute; the check comes after the plan's own."""

    async def main() -> None:
        parent = planned()
        child = planning(exits(""), exits(), call("orphan", {}), exits(), say("ok"), parent=parent.agent, name="child")
        reviewer = reviewed(child, approve())

        async def orphan(c: ToolCall) -> Outcome:
            parent.agent.dispose()
            return Outcome(text_result("alone now"))

        child.seams.tools.register(Tool("orphan", "O.", {"type": "object"}, orphan))
        await child.ask("go")
        assert codes(child) == ["BAD_ARGUMENTS", "NOT_ROOT", None, None]
        texts = [e.data["message"]["content"][0]["content"][0]["text"] for e in child.events("tool/result")]
        assert texts[1] == "Error: only the main agent can ask for a review: put the open decision in your final result"
        assert len(reviewer.shown) == 1
        assert modes(child) == [True, False]

    asyncio.run(main())


def test_without_a_calling_agent_it_fails() -> None:
    """Check 1: there is no session whose plan mode could end."""
    tool = planned().seams.tools.get("exit_plan_mode")
    assert tool is not None
    with pytest.raises(ToolError, match="needs a calling agent") as caught:
        asyncio.run(tool.run(ToolCall("exit_plan_mode", '{"plan":"# P\\n\\nx"}', "c", 1, 1, None)))
    assert caught.value.code == "NO_AGENT"


# ---- the review


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


def test_after_an_interrupted_review_the_next_call_is_reviewed_and_a_late_answer_has_no_effect() -> None:
    """Case 31: the answer that comes after the stop reaches nobody."""

    async def main() -> None:
        late: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def slow(request: QuestionRequest) -> Reply:
            return await asyncio.shield(late)

        bench = planning(exits(id="first"))
        reviewer = reviewed(bench, slow, approve())
        turn = asyncio.ensure_future(bench.ask("go"))
        await until(lambda: bool(reviewer.shown))
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        late.set_result(approve())
        await until(lambda: not bench.agent.is_running)
        assert PlanMode.get(bench.agent) == PlanState(True, None)
        assert bench.session.fold(OPEN_REVIEWS) == []
        bench.model.add(exits(id="second"), say("ok"))
        await bench.ask("present it again")
        assert codes(bench) == ["TOOL_INTERRUPTED", None]
        assert modes(bench) == [True, False]

    asyncio.run(main())


@pytest.mark.parametrize("same_id", [False, True])
@pytest.mark.parametrize("reply", [approve(), keep("no"), Reply("dismissed")], ids=["approve", "keep", "dismiss"])
def test_of_two_exit_calls_in_a_batch_one_is_reviewed_and_the_other_refused_with_the_reason(reply: Reply, same_id: bool) -> None:
    """Case 32: whatever came of the first, and though a careless model gave both calls one id."""
    bench = planning([exits(id="a"), exits("# Other\n\nplan", id="a" if same_id else "b")], say("ok"))
    reviewer = reviewed(bench, reply, approve())
    asyncio.run(bench.ask("go"))
    assert len(reviewer.shown) == 1
    assert last_result(bench) == (
        True,
        "Error: a plan was already submitted in this step: wait for its result and, if it was not approved, submit one revised plan",
    )
    assert codes(bench)[1] == "PLAN_REFUSED"
    assert len(bench.events("question/asked")) == 1


def test_a_second_answer_changes_nothing() -> None:
    """Case 33: the seam takes one reply; approving again is a selection of what is already pending."""

    async def main() -> None:
        bench = planning(exits(), exits(), say("ok"))
        reviewer = reviewed(bench, approve(), approve())
        await bench.ask("go")
        assert len(reviewer.shown) == 1
        assert codes(bench) == [None, "PLAN_INACTIVE"]
        assert len(bench.events("question/answered")) == len(bench.events("plan/selected")) == 1
        assert modes(bench) == [True, False]

    asyncio.run(main())


def test_leaving_by_chip_or_card_during_the_review_closes_it_as_not_approved_with_one_notice() -> None:
    """Case 34: plan mode is left by the user's act; the answer is recorded as cancelled by the person; the card is closed."""

    async def main() -> None:
        async def off_meanwhile(request: QuestionRequest) -> Reply:
            assert bench.seams.commands is not None
            await bench.seams.commands.run("plan", CommandCall(bench.agent, "off"))
            await asyncio.Event().wait()
            raise AssertionError

        bench = planning(exits(), say("ok"), say("later"))
        reviewed(bench, off_meanwhile)
        await bench.ask("go")
        await bench.ask("and?")
        assert last_result(bench) == (True, "Error: The user left plan mode during the review; the plan is not approved.")
        assert bench.events("question/answered")[0].data == {"requestId": "id-3", "outcome": "cancelled", "by": "person"}
        assert [shows(request) for request in bench.model.requests] == [True, False, False]
        assert (modes(bench), notices(bench)) == ([True, False], [OFF])
        assert bench.session.fold(APPROVED_PLAN) is None

    asyncio.run(main())


def test_leaving_and_approving_at_the_same_moment_is_leaving() -> None:
    """What the person selected last counts; one notice, no approval."""

    async def main() -> None:
        async def both(request: QuestionRequest) -> Reply:
            PlanMode.set(bench.agent, False)
            return approve()

        bench = planning(exits(), say("ok"))
        reviewed(bench, both)
        await bench.ask("go")
        assert codes(bench) == ["PLAN_NOT_APPROVED"]
        assert (modes(bench), notices(bench)) == ([True, False], [OFF])

    asyncio.run(main())


def test_off_and_on_again_during_the_review_ends_the_review_and_stays_in_plan_mode() -> None:
    """The review was left; nothing is pending, so the revision can be reviewed again."""

    async def main() -> None:
        async def off_on(request: QuestionRequest) -> Reply:
            PlanMode.set(bench.agent, False)
            PlanMode.set(bench.agent, True)
            await asyncio.Event().wait()
            raise AssertionError

        bench = planning(exits(), exits(), say("ok"))
        reviewer = reviewed(bench, off_on, approve())
        await bench.ask("go")
        assert codes(bench) == ["PLAN_NOT_APPROVED", None]
        assert len(reviewer.shown) == 2
        assert (modes(bench), notices(bench)) == ([True, False], [])

    asyncio.run(main())


def test_other_events_during_the_review_do_not_end_it() -> None:
    """Only leaving plan mode does."""

    async def main() -> None:
        async def busy(request: QuestionRequest) -> Reply:
            bench.session.append(draft("sandbox/mode", {"mode": "read-only"}))
            PlanMode.set(bench.agent, True)
            bench.steer("by the way")
            return approve()

        bench = planning(exits(), say("ok"))
        reviewed(bench, busy)
        await bench.ask("go")
        assert codes(bench) == [None]

    asyncio.run(main())


@pytest.mark.parametrize("stopped", [False, True])
def test_selecting_plan_mode_after_an_approval_cancels_the_exit_with_one_correcting_notice(stopped: bool) -> None:
    """Case 35: also when the turn is stopped before its next step."""

    async def main() -> None:
        reached = asyncio.Event()

        async def again(c: ToolCall) -> Outcome:
            assert bench.session.fold(TOLD) is False
            assert PlanMode.set(bench.agent, True) == "cancelled"
            if stopped:
                reached.set()
                await asyncio.Event().wait()
            return Outcome(text_result("ok"))

        tool = Tool("again", "A.", {"type": "object"}, again)
        bench = planning([exits(), call("again", {})], install=[lambda seams: seams.tools.register(tool)])
        reviewed(bench, approve())
        turn = asyncio.ensure_future(bench.ask("go"))
        if stopped:
            await asyncio.wait_for(reached.wait(), 10)
            bench.agent.cancel({"kind": "user"})
            with pytest.raises(asyncio.CancelledError):
                await turn
        else:
            bench.model.add(say("ok"))
            await turn
        bench.model.add(*[say("more")] * 2)
        await bench.ask("go on")
        await bench.ask("go on")
        assert all(shows(request) for request in bench.model.requests)
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


def test_selecting_plan_mode_between_turns_after_an_approval_stays_with_one_correcting_notice() -> None:
    """The approval was told, the exit not yet applied: the turn was stopped in between."""

    async def main() -> None:
        reached = asyncio.Event()

        async def stay() -> None:
            reached.set()
            await asyncio.Event().wait()

        async def wait(c: ToolCall) -> Outcome:
            await stay()
            raise AssertionError

        tool = Tool("wait", "W.", {"type": "object"}, wait)
        bench = planning([exits(), call("wait", {})], say("ok"), install=[lambda seams: seams.tools.register(tool)])
        reviewed(bench, approve())
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 10)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert PlanMode.get(bench.agent) == PlanState(True, False)
        assert PlanMode.set(bench.agent, True) == "cancelled"
        await bench.ask("go on")
        assert shows(bench.model.requests[-1])
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


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


@pytest.mark.parametrize("also_approved", [False, True])
def test_taking_the_plugin_out_during_a_review_fails_the_call_and_says_to_present_it_again(also_approved: bool) -> None:
    """Case 40: also when the approval came at the same moment; the plugin that is put back in reviews the next call."""

    async def main() -> None:
        async def reload(request: QuestionRequest) -> Reply:
            bench.undos[1]()
            plan_mode(bench.seams)
            if not also_approved:
                await asyncio.Event().wait()
            return approve()

        bench = planning(exits(), exits(), say("ok"))
        reviewer = reviewed(bench, reload, approve())
        await bench.ask("go")
        texts = [e.data["message"]["content"][0]["content"][0]["text"] for e in bench.events("tool/result")]
        assert texts[0] == "Error: plan mode was reloaded while the plan was under review; present it again"
        assert bench.events("question/answered")[0].data["outcome"] == "cancelled"
        assert bench.events("question/answered")[0].data["by"] == "policy"
        assert codes(bench) == ["PLAN_NOT_APPROVED", None]
        assert len(reviewer.shown) == 2
        assert modes(bench) == [True, False]

    asyncio.run(main())


# ---- atomic


def refuse_from(bench: Workbench, type: str) -> None:
    """The process dies with the first write that holds an event of this type: nothing of it or after it is kept."""
    dead: list[bool] = []

    def refuse(lines: Sequence[str]) -> bool:
        if dead or any(json.loads(line)["type"] == type for line in lines):
            dead.append(True)
        return bool(dead)

    bench.sink.refuse = refuse


def test_answer_selection_and_result_of_an_approval_are_one_write_in_this_order() -> None:
    """No reader can ever find one without the others; nothing else is in that write."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    (write,) = [write for write in bench.sink.writes if any('"question/answered"' in line for line in write)]
    events = [json.loads(line) for line in write]
    assert [event["type"] for event in events] == ["question/answered", "plan/selected", "tool/result"]
    assert events[1]["data"] == {"active": False, "narrate": False}
    assert events[2]["sourceEventSeqs"] == [bench.events("tool/call")[0].seq]
    asked = [write for write in bench.sink.writes if any('"question/asked"' in line for line in write)]
    assert [len(write) for write in asked] == [1]


@pytest.mark.parametrize("reply", [keep("no"), Reply("dismissed")], ids=["keep", "dismiss"])
def test_any_other_answer_and_its_result_are_one_write_too(reply: Reply) -> None:
    """Log, transcript and card cannot disagree."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, reply)
    asyncio.run(bench.ask("go"))
    (write,) = [write for write in bench.sink.writes if any('"question/answered"' in line for line in write)]
    assert [json.loads(line)["type"] for line in write] == ["question/answered", "tool/result"]


def test_killed_between_the_click_and_the_result_the_question_is_unresolved_and_planning_goes_on() -> None:
    """Case 8, before: nothing approved, in the log, the section, the transcript and the audit."""

    async def main() -> None:
        bench = planning(exits())
        reviewed(bench, approve())
        refuse_from(bench, "question/answered")
        with pytest.raises(StoreError):
            await bench.ask("go")
        after = planned(say("ok"), lines=bench.sink.lines, ids="after")
        assert [review["title"] for review in after.session.fold(OPEN_REVIEWS)] == ["Fix the join"]
        assert PlanMode.get(after.agent) == PlanState(True, None)
        await after.ask("and?")
        assert shows(after.model.requests[0])
        assert (modes(after), notices(after)) == ([True], [])
        assert after.session.fold(APPROVED_PLAN) is None
        assert after.session.fold(OPEN_REVIEWS) == []
        assert [asked.answer for asked in after.session.fold(QUESTIONS).settled] == [None]
        assert last_result(after)[0]
        assert codes(after) == ["TOOL_OUTCOME_UNKNOWN"]

    asyncio.run(main())


@pytest.mark.parametrize("type", ["step/end", "plan/mode", "step/start"])
def test_killed_right_after_the_result_it_is_approved_and_leaves_at_the_next_step(type: str) -> None:
    """Case 8, after: at whichever event the process died; never a second notice."""

    async def main() -> None:
        bench = planning(exits(), say("ok"))
        reviewed(bench, approve())
        await_result: list[bool] = []
        dead: list[bool] = []

        def refuse(lines: Sequence[str]) -> bool:
            kinds = [json.loads(line)["type"] for line in lines]
            if dead or (await_result and type in kinds):
                dead.append(True)
            if "tool/result" in kinds:
                await_result.append(True)
            return bool(dead)

        bench.sink.refuse = refuse
        with pytest.raises(StoreError):
            await bench.ask("go")
        after = planned(say("ok"), say("ok"), lines=bench.sink.lines, ids="after")
        assert PlanMode.get(after.agent) == (PlanState(False, None) if type == "step/start" else PlanState(True, False))
        await after.ask("and?")
        await after.ask("and?")
        assert [shows(request) for request in after.model.requests] == [False, False]
        assert (modes(after), notices(after)) == ([True, False], [])
        assert after.session.fold(APPROVED_PLAN) == PLAN
        assert codes(after) == [None]

    asyncio.run(main())


def test_an_approval_is_known_to_listeners_only_after_it_is_written() -> None:
    """A card renders from events, so it says approved only when a killed process would find it approved."""

    async def main() -> None:
        seen: list[bool] = []
        bench = planning(exits(), say("ok"))
        reviewed(bench, approve())

        def look(batch: Any) -> None:
            if any(event.type == "question/answered" for event in batch):
                seen.append(any('"question/answered"' in line for line in bench.sink.lines))
                assert [event.type for event in batch] == ["question/answered", "plan/selected", "tool/result"]

        bench.session.subscribe(look)
        await bench.ask("go")
        assert seen == [True]

    asyncio.run(main())


def test_presented_as_a_call_it_is_the_plan_under_its_title() -> None:
    """Bad arguments present nothing of their own."""
    tool = planned().seams.tools.get("exit_plan_mode")
    assert tool is not None
    shown = tool.present_call(json.dumps({"plan": "# The *join* #\n\nbody"}))
    assert shown is not None
    assert (shown.title, shown.body, shown.kind) == ("The join", "# The *join* #\n\nbody", "plan")
    assert [tool.present_call(bad) for bad in ("", "{", '{"plan":42}', "[]")] == [None] * 4


def test_a_review_that_streams_on_holds_nothing_but_its_own_turn() -> None:
    """While a review waits, selections, steers and folds go on."""

    async def main() -> None:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        bench = planning(exits(), [hold(lambda: asyncio.sleep(0)), say("ok")])
        reviewer = reviewed(bench, lambda request: answer)
        turn = asyncio.ensure_future(bench.ask("go"))
        await until(lambda: bool(reviewer.shown))
        bench.steer("and check the index")
        assert [review["title"] for review in bench.session.fold(OPEN_REVIEWS)] == ["Fix the join"]
        answer.set_result(keep("add tests"))
        await turn
        said = [m["content"][0] for m in bench.model.requests[1].messages[-2:]]
        assert said[0]["content"][0]["text"].endswith("their feedback: add tests")
        assert said[1]["text"] == "and check the index"

    asyncio.run(main())
