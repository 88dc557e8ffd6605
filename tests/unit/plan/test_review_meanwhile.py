"""What may happen while a plan is under review, or right after it."""

from __future__ import annotations

import asyncio

import pytest
from planning import (
    OFF,
    ON,
    approve,
    codes,
    exits,
    keep,
    last_result,
    modes,
    notices,
    plan_mode,
    planning,
    reviewed,
    shows,
    until,
)

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.questions import QuestionRequest, Reply
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.folds.plan import APPROVED_PLAN, TOLD, PlanState
from plan_mode_nb.folds.questions import OPEN_REVIEWS
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, hold, say
from plan_mode_nb.plan import PlanMode


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
            await asyncio.wait_for(reached.wait(), 60)
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
        await asyncio.wait_for(reached.wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert PlanMode.get(bench.agent) == PlanState(True, False)
        assert PlanMode.set(bench.agent, True) == "cancelled"
        await bench.ask("go on")
        assert shows(bench.model.requests[-1])
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


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


def test_a_tool_that_somebody_kept_from_before_the_plugin_was_taken_out_never_approves() -> None:
    """Without its pre-step an approval could never be applied, so it fails and says to present the plan again."""

    async def main() -> None:
        bench = planning()
        reviewed(bench, approve())
        tool = bench.seams.tools.get("exit_plan_mode")
        assert tool is not None
        bench.undos[1]()
        bench.session.append(draft("turn/start", {"turn": 1}), draft("step/start", {"turn": 1, "step": 1}))
        outcome = await tool.run(ToolCall("exit_plan_mode", '{"plan":"# P\\n\\nx"}', "c", 1, 1, bench.agent))
        assert outcome.result.is_error
        assert [event.type for event in outcome.events] == ["question/answered"]

    asyncio.run(main())
