"""Applying at the pre-step, and telling the model exactly once, whatever breaks in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from planning import (
    OFF,
    ON,
    approve,
    exits,
    modes,
    notices,
    planned,
    reviewed,
    shows,
    toggling,
    with_toggles,
)

from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.requests import FailedRequest, RequestErrorAction
from plan_mode_nb.exceptions import ModelError, StoreError
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.models.script import call, fail, hold, say
from plan_mode_nb.plan import PlanMode


def test_a_step_that_is_rejected_or_cancelled_applies_nothing() -> None:
    """Case 14: still pending, and the later step that is accepted applies it once."""

    async def main() -> None:
        mood: dict[str, Any] = {"do": "accept"}

        async def moody(step: Step, call_next: CallNext) -> Decision:
            match mood["do"]:
                case "reject":
                    return Reject("not now")
                case "fail":
                    raise ValueError("hook")
                case "hang":
                    mood["at"].set()
                    await asyncio.Event().wait()
            return await call_next(step)

        bench = planned(install=[lambda seams: seams.pre_step.register(moody)])
        bench.model.add(toggling(True, then=say("a"))(bench), say("b"))
        await bench.ask("go")
        before = modes(bench)
        for mood["do"] in ("reject", "fail"):
            await bench.ask("go")
            assert (modes(bench), PlanMode.get(bench.agent)) == (before, PlanState(False, True))
        mood.update(do="hang", at=asyncio.Event())
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(mood["at"].wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (modes(bench), PlanMode.get(bench.agent), notices(bench)) == (before, PlanState(False, True), [])
        mood["do"] = "accept"
        await bench.ask("go")
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


def test_a_stop_that_a_listener_catches_applies_nothing_either() -> None:
    """The step will not run, so its switch waits for one that does."""

    async def main() -> None:
        reached = asyncio.Event()

        async def catches(step: Step, call_next: CallNext) -> Decision:
            if step.turn == 2:
                reached.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return await call_next(step)
            return await call_next(step)

        bench = planned(install=[lambda seams: seams.pre_step.register(catches)])
        bench.model.add(toggling(True, then=say("a"))(bench))
        await bench.ask("go")
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (modes(bench), PlanMode.get(bench.agent)) == ([], PlanState(False, True))

    asyncio.run(main())


def test_a_retry_within_the_step_applies_nothing_and_reuses_its_request() -> None:
    """Case 14: what is selected while a request fails waits for the next step, as what is selected while it streams does."""

    async def main() -> None:
        async def again(failed: FailedRequest, call_next: Any) -> RequestErrorAction:
            PlanMode.set(failed.agent, True)
            return "retry"

        bench = planned(fail(ModelError("busy", code="SERVER")), call("note", {"text": "x"}), say("ok"))
        bench.seams.request_error.register(again)
        await bench.ask("go")
        first, retried, after = bench.model.requests
        assert first is retried
        assert [shows(request) for request in (first, retried, after)] == [False, False, True]
        switch = bench.events("plan/mode")[0].seq
        assert bench.session.events[switch - 1].type == "step/end"
        assert (modes(bench), notices(bench)) == ([True], [ON])

    asyncio.run(main())


def test_plan_mode_commits_after_everybody_else_accepted() -> None:
    """It is the outermost listener: who rejects or adds messages has spoken before, and the notice stands after theirs."""

    async def main() -> None:
        seen: list[Any] = []

        async def adds(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            seen.append(PlanMode.get(step.agent))
            assert isinstance(decision, Enter)
            return Enter((*decision.messages, user_message("context", id=f"c{len(seen)}", source={"kind": "plugin", "plugin": "x"})))

        bench = planned(install=[lambda seams: seams.pre_step.register(adds, "outermost")])
        bench.model.add(toggling(True)(bench), say("b"))
        await bench.ask("go")
        assert seen == [PlanState(False, None), PlanState(False, True)]
        assert [m["content"][0]["text"] for m in bench.model.requests[1].messages[-2:]] == ["context", ON]

    asyncio.run(main())


def test_a_users_exit_is_told_exactly_once_and_an_approved_exit_never() -> None:
    """Case 15: the approved result has told it already."""

    async def main() -> None:
        left = with_toggles(toggling(False), say("b"), say("c"))
        PlanMode.set(left.agent, True)
        await left.ask("go")
        await left.ask("go")
        assert [shows(request) for request in left.model.requests] == [True, False, False]
        assert notices(left) == [OFF]
        approved = planned(exits(), say("b"), say("c"))
        reviewed(approved, approve())
        PlanMode.set(approved.agent, True)
        await approved.ask("go")
        await approved.ask("go")
        assert [shows(request) for request in approved.model.requests] == [True, False, False]
        assert notices(approved) == []
        assert modes(approved) == [True, False]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["aborted", "failed model choice", "log refused", "killed"])
def test_a_turn_that_breaks_between_switch_and_notice_tells_it_exactly_once(how: str) -> None:
    """Case 15: neither lost nor repeated, whatever broke: the switch is in the log, the notice in the next accepted step."""

    async def main() -> None:
        bench = with_toggles(toggling(True, then=say("a")))
        await bench.ask("go")
        switched = bench
        if how == "aborted":
            reached = asyncio.Event()

            async def stay() -> None:
                reached.set()
                await asyncio.Event().wait()

            bench.model.add(hold(stay))
            turn = asyncio.ensure_future(bench.ask("go"))
            await asyncio.wait_for(reached.wait(), 60)
            bench.agent.cancel({"kind": "user"})
            with pytest.raises(asyncio.CancelledError):
                await turn
        elif how == "failed model choice":
            bench.model.add(fail(ModelError("no such model")))
            await bench.ask("go")
        elif how == "log refused":
            bench.sink.refuse = lambda lines: any('"step/start"' in line for line in lines)
            await bench.ask("go")
            assert notices(bench) == []
            bench.sink.refuse = lambda lines: False
        else:
            bench.sink.refuse = lambda lines: modes(bench) == [True]
            with pytest.raises(StoreError):
                await bench.ask("go")
            switched = planned(lines=bench.sink.lines, ids="after")
        assert modes(switched) == [True]
        switched.model.add(*[say("b"), say("c")])
        while switched.agent.inbox.has_pending:
            await switched.agent.run_turn()
        await switched.ask("go on")
        assert notices(switched) == [ON]
        assert shows(switched.model.requests[-1])

    asyncio.run(main())


def test_a_pending_selection_survives_a_killed_process() -> None:
    """``plan/selected`` is in the log: the next process applies it at its first accepted step and tells it once."""

    async def main() -> None:
        bench = with_toggles(toggling(True, then=say("a")))
        await bench.ask("go")
        for length in range(len(bench.session), 0, -1):
            if bench.session.events[length - 1].type == "plan/selected":
                break
        after = planned(say("b"), lines=bench.session.lines[:length], ids="after")
        assert PlanMode.get(after.agent) == PlanState(False, True)
        await after.ask("go")
        assert shows(after.model.requests[0])
        assert (modes(after), notices(after)) == ([True], [ON])

    asyncio.run(main())


def test_a_notice_is_never_the_reason_that_a_step_runs() -> None:
    """A turn without a message, and a steer that a listener takes away, stay without a request, though a switch waits to be told."""

    async def main() -> None:
        async def first_only(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            return decision if step.step == 1 else Enter(())

        bench = planned(install=[lambda seams: seams.pre_step.register(first_only)])

        def late(request: object) -> Any:
            PlanMode.set(bench.agent, True)
            bench.steer("one more thing")
            return say("done")

        bench.model.add(late)
        assert (await bench.ask("go")).steps == 1
        assert (await bench.agent.run_turn()).steps == 0
        PlanMode.set(bench.agent, True)
        assert (await bench.agent.run_turn()).steps == 0
        assert len(bench.model.requests) == 1
        assert notices(bench) == []

    asyncio.run(main())
