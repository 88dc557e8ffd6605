"""A stopped turn: wherever it stands, its log is closed, says why, and goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from stopping import PLAN, USER, Reached, errors, goes_on, stop_at, tool

from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.questions import QuestionRequest, Reply
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, ToolCall, text_result
from plan_mode_nb.exceptions import HostError
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.loop.turn import TurnEnd
from plan_mode_nb.models.script import call, hold, say
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install
from plan_mode_nb.testing.workbench import Workbench


def test_stopped_while_streaming_keeps_what_was_delivered_as_an_interrupted_message() -> None:
    """Text stays, an unfinished call goes, step and turn are closed."""

    async def main() -> None:
        reached = Reached()
        bench = Workbench([say("half a "), call("wait", {}), hold(reached.stay), say("never")])
        await stop_at(bench, reached)
        assert bench.types[-3:] == ["assistant/message", "step/end", "turn/end"]
        message = bench.events("assistant/message")[0].data
        assert message["message"]["content"] == [{"type": "text", "text": "half a "}]
        assert message["interrupted"] is True
        assert bench.events("turn/end")[0].data["reason"] == USER
        await goes_on(bench)

    asyncio.run(main())


def test_stopped_before_anything_visible_was_delivered_leaves_no_message() -> None:
    """An empty or blank interrupted message would only confuse the next request."""

    async def main() -> None:
        for delivered in ([], [say("  \n")], [call("wait", {})]):
            reached = Reached()
            bench = Workbench([*delivered, hold(reached.stay)])
            await stop_at(bench, reached)
            assert not bench.events("assistant/message")
            await goes_on(bench)

    asyncio.run(main())


def test_stopped_in_a_tool_gives_it_and_every_later_call_of_the_batch_a_truthful_result() -> None:
    """Interrupted is not the same as never started."""

    async def main() -> None:
        reached = Reached()

        async def wait(call: ToolCall) -> Outcome:
            await reached.stay()
            raise AssertionError

        bench = Workbench([call("wait", {}, id=id) for id in "abc"], install=[tool(wait)])
        await stop_at(bench, reached)
        assert errors(bench) == [("a", "TOOL_INTERRUPTED"), ("b", "TOOL_ABORTED_BEFORE_DISPATCH"), ("c", "TOOL_ABORTED_BEFORE_DISPATCH")]
        assert bench.types[-2:] == ["step/end", "turn/end"]
        assert bench.events("turn/end")[0].data["reason"] == USER
        await goes_on(bench)
        assert [m["role"] for m in bench.model.requests[-1].messages] == ["user", "assistant", "user", "user", "user", "user"]

    asyncio.run(main())


def test_a_tool_that_knows_what_it_had_done_says_so_in_its_result() -> None:
    """``CallInterrupted`` carries the result in place of the loop's own."""

    async def main() -> None:
        reached = Reached()

        async def wait(call: ToolCall) -> Outcome:
            try:
                await reached.stay()
            except asyncio.CancelledError:
                raise CallInterrupted(Outcome(text_result("wrote 3 of 5 files", is_error=True))) from None
            raise AssertionError

        bench = Workbench(call("wait", {}), install=[tool(wait)])
        await stop_at(bench, reached)
        block = bench.events("tool/result")[0].data["message"]["content"][0]
        assert block["content"][0]["text"] == "wrote 3 of 5 files"
        assert bench.events("turn/end")[0].data["reason"] == USER

    asyncio.run(main())


def test_stopped_before_the_first_request_has_no_step_and_no_request() -> None:
    """The claimed prompt is accounted for by the turn that took it; nothing is waiting any more."""

    async def main() -> None:
        reached = Reached()

        async def listener(step: Step, call_next: CallNext) -> Decision:
            if not bench.events("turn/end"):
                await reached.stay()
            return await call_next(step)

        bench = Workbench(install=[lambda seams: seams.pre_step.register(listener)])
        await stop_at(bench, reached)
        assert bench.types == ["agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "turn/end"]
        assert not bench.agent.inbox.has_pending
        await goes_on(bench)

    asyncio.run(main())


def test_stopped_in_a_review_records_a_cancelled_answer_and_stays_in_plan_mode() -> None:
    """The question is answered as cancelled, the call failed, and the next call is reviewed again."""

    async def main() -> None:
        reached = Reached()

        class Waiting:
            async def ask(self, request: QuestionRequest) -> Reply:
                await reached.stay()
                raise AssertionError

        bench = Workbench(call("exit_plan_mode", PLAN), install=[lambda s: install(s, PlanModeConfig("GUIDE"))])
        bench.seams.questions.provide(Waiting())
        PlanMode.set(bench.agent, True)
        await stop_at(bench, reached)
        types = bench.types
        assert types[-6:] == ["tool/call", "question/asked", "question/answered", "tool/result", "step/end", "turn/end"]
        answered = bench.events("question/answered")[0].data
        assert (answered["outcome"], answered["by"]) == ("cancelled", "person")
        assert errors(bench) == [("call-0-0", "TOOL_INTERRUPTED")]
        assert PlanMode.get(bench.agent).active
        await goes_on(bench)

    asyncio.run(main())


@pytest.mark.parametrize("cause", [{"kind": "user"}, {"kind": "parent"}, {"kind": "hook", "reason": "limit"}, {"kind": "disposed"}])
def test_the_first_cause_of_a_stop_is_the_one_logged(cause: dict[str, Any]) -> None:
    """A second stop cancels again and changes nothing of the reason."""

    async def main() -> None:
        reached = Reached()

        async def wait(call: ToolCall) -> Outcome:
            try:
                await reached.stay()
            finally:
                bench.agent.cancel({"kind": "hook", "reason": "later"})
            raise AssertionError

        bench = Workbench(call("wait", {}), install=[tool(wait)])
        await stop_at(bench, reached, cause=cause)
        assert bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": cause}

    asyncio.run(main())


def test_cancelling_the_task_from_outside_is_a_stop_by_the_user() -> None:
    """A host may cancel the task it runs the turn in; a turn in the same task later is not taken for stopped."""

    async def main() -> None:
        reached = Reached()
        bench = Workbench([hold(reached.stay)], say("back"))

        async def host() -> TurnEnd:
            try:
                await bench.ask("go")
            except asyncio.CancelledError:
                return await bench.ask("again")
            raise AssertionError

        turn = asyncio.ensure_future(host())
        await asyncio.wait_for(reached.event.wait(), 60)
        turn.cancel()
        assert (await turn).reason == {"kind": "completed"}
        assert bench.session.fold(TURNS).closed[0].end == USER

    asyncio.run(main())


def test_a_stopped_turn_takes_what_waits_out_of_the_inbox_as_canceled() -> None:
    """A steer or prompt meant for a turn that the person stopped must not start the next one by itself."""

    async def main() -> None:
        reached = Reached()
        bench = Workbench([hold(reached.stay)])
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.event.wait(), 60)
        bench.steer("also")
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert not bench.agent.inbox.has_pending
        last = bench.session.events[-1]
        assert (last.type, last.data["outcome"], last.data["removedCount"]) == ("agent/inbox/spliced", "canceled", 1)

    asyncio.run(main())


def test_there_is_no_turn_to_stop_when_none_runs() -> None:
    """A late click stops nothing, and not the next turn either."""

    async def main() -> None:
        bench = Workbench(say("ok"))
        assert not bench.agent.cancel({"kind": "user"})
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert not bench.agent.cancel({"kind": "user"})

    asyncio.run(main())


def test_a_turn_inside_a_turn_is_refused_and_changes_nothing() -> None:
    """One turn at a time; the sentence says what to do."""

    async def main() -> None:
        async def wait(call: ToolCall) -> Outcome:
            before = len(bench.session)
            with pytest.raises(HostError, match="already in a turn; wait for its cell to end, or steer it"):
                await bench.agent.run_turn()
            assert len(bench.session) == before
            return Outcome(text_result("ok"))

        bench = Workbench(call("wait", {}), say("done"), install=[tool(wait)])
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert not bench.events("tool/result")[0].data["message"]["content"][0]["isError"]

    asyncio.run(main())


def test_disposing_stops_the_turn_as_disposed_and_no_other_starts() -> None:
    """What is left of the agent is its log."""

    async def main() -> None:
        reached = Reached()
        bench = Workbench([hold(reached.stay)])
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.event.wait(), 60)
        bench.agent.dispose()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": {"kind": "disposed"}}
        assert not bench.agent.is_live
        with pytest.raises(HostError, match="is gone; run %load_ext plan_mode_nb again"):
            await bench.agent.run_turn()

    asyncio.run(main())
