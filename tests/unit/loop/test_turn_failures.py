"""A turn that fails: one reason in the log, one sentence for the person, and a session that goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping

import pytest
from going_on import goes_on, with_add

from plan_mode_nb.agent.model import Chunk, NoModel, Request, TextDelta
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.exceptions import ConfigError, ModelError
from plan_mode_nb.loop.turn import TurnEnd
from plan_mode_nb.models.script import call, fail, say, usage
from plan_mode_nb.testing.workbench import Workbench

CONFIG: Mapping[str, str] = {"provider": "p", "model": "m"}


AUTH = ModelError("The key was refused (401): set OPENAI_API_KEY and run the cell again.", code="AUTH")


def test_a_request_that_fails_before_any_text_ends_the_turn_in_error_and_leaves_no_message() -> None:
    """Code and sentence are the model's; nothing is lost of the prompt."""

    async def main() -> None:
        bench = Workbench(fail(AUTH))
        end = await bench.ask("go")
        assert end == TurnEnd(1, 1, {"kind": "error", "error": {"message": str(AUTH), "code": "AUTH"}}, str(AUTH))
        assert bench.types[-5:] == ["user/message", "request/header", "assistant/chunk", "step/end", "turn/end"]
        await goes_on(bench)
        assert [m["content"][0]["text"] for m in bench.model.requests[-1].messages] == ["go", "again"]

    asyncio.run(main())


def test_a_request_that_fails_after_text_keeps_the_text_as_interrupted() -> None:
    """What the person saw stays, with the usage that was reported; unfinished calls go."""

    async def main() -> None:
        bench = Workbench([say("so far "), usage(7, 2), call("add", {"a": 1, "b": 1}), fail(AUTH)], install=[with_add])
        assert (await bench.ask("go")).reason["error"]["code"] == "AUTH"
        data = bench.events("assistant/message")[0].data
        assert data["message"]["content"] == [{"type": "text", "text": "so far "}]
        assert (data["interrupted"], data["usage"]) == (True, {"inputTokens": 7, "outputTokens": 2})
        assert not bench.events("tool/call")
        await goes_on(bench)

    asyncio.run(main())


def test_a_stream_that_just_ends_is_a_failure_not_an_answer() -> None:
    """Without a finish nobody knows whether the answer is whole."""

    class Short:
        config = CONFIG

        async def stream(self, request: Request) -> AsyncIterator[Chunk]:
            yield TextDelta(0, "so far")

    async def main() -> None:
        bench = Workbench()
        bench.agent.models = lambda name: Short()
        end = await bench.ask("go")
        assert end.reason["error"] == {"message": "the model's answer broke off; run the cell again", "code": "TRANSPORT"}
        assert bench.events("assistant/message")[0].data["interrupted"] is True
        await goes_on(bench)

    asyncio.run(main())


def test_an_unexpected_error_keeps_what_was_delivered_is_logged_once_and_ends_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of an adapter is a failed turn, never a hung or silent one; its connection is closed."""
    closed: list[bool] = []

    class Faulty:
        config = CONFIG

        async def stream(self, request: Request) -> AsyncIterator[Chunk]:
            try:
                yield TextDelta(0, "so far")
                raise RuntimeError("wires crossed")
            finally:
                closed.append(True)

    async def main() -> None:
        bench = Workbench()
        bench.agent.models = lambda name: Faulty()
        with caplog.at_level(logging.ERROR):
            end = await bench.ask("go")
        assert end.reason == {"kind": "error", "error": {"message": "RuntimeError: wires crossed", "code": "UNKNOWN"}}
        assert [record.message for record in caplog.records] == ["turn 1 of session session failed"]
        assert bench.events("assistant/message")[0].data["message"]["content"][0]["text"] == "so far"
        assert closed == [True]
        await goes_on(bench)

    asyncio.run(main())


def test_a_stream_is_closed_when_its_chunk_cannot_be_logged() -> None:
    """The connection does not wait for a garbage collector."""
    closed: list[bool] = []

    class Odd:
        config = CONFIG

        async def stream(self, request: Request) -> AsyncIterator[Chunk]:
            try:
                yield usage(2**60, 1)
            finally:
                closed.append(True)

    async def main() -> None:
        bench = Workbench()
        bench.agent.models = lambda name: Odd()
        end = await bench.ask("go")
        assert (end.reason["kind"], closed) == ("error", [True])

    asyncio.run(main())


@pytest.mark.parametrize("error", [ConfigError("no model is called x; choose one with %config"), AUTH])
def test_a_model_that_cannot_be_chosen_fails_the_turn_with_its_sentence(error: ConfigError | ModelError) -> None:
    """The choice is made at the step, so that a changed setting helps at once."""

    async def main() -> None:
        def none(name: str | None) -> NoModel:
            raise error

        bench = Workbench()
        bench.agent.models = none
        assert (await bench.ask("go")).sentence == str(error)
        await goes_on(bench)

    asyncio.run(main())


def test_without_a_model_the_turn_says_how_to_choose_one() -> None:
    """The null model's sentence is the turn's."""
    bench = Workbench()
    bench.agent.models = lambda name: NoModel("no model is configured; say %config PlanAgent.model = ...")
    assert asyncio.run(bench.ask("go")).sentence == "no model is configured; say %config PlanAgent.model = ..."


def test_a_rejecting_listener_blocks_the_turn_and_no_request_is_made() -> None:
    """The reason is the person's sentence; the turn is closed without a step."""

    async def reject(step: Step, call_next: CallNext) -> Decision:
        return Reject("the budget is used up")

    bench = Workbench(say("never"), install=[lambda seams: seams.pre_step.register(reject)])
    end = asyncio.run(bench.ask("go"))
    assert end == TurnEnd(1, 0, {"kind": "blocked"}, "the budget is used up")
    assert bench.types[-1] == "turn/end"
    assert not bench.events("step/start", "user/message", "request/header")


def test_a_listener_may_reject_a_later_step_and_the_calls_before_it_have_their_results() -> None:
    """Blocked is blocked, also in the middle."""

    async def main() -> None:
        async def second(step: Step, call_next: CallNext) -> Decision:
            return Reject("enough") if step.step == 2 and step.turn == 1 else await call_next(step)

        bench = Workbench(call("add", {"a": 1, "b": 1}), install=[with_add, lambda seams: seams.pre_step.register(second)])
        assert await bench.ask("go") == TurnEnd(1, 1, {"kind": "blocked"}, "enough")
        await goes_on(bench)

    asyncio.run(main())


def test_a_listener_that_fails_ends_the_turn_in_error() -> None:
    """It neither enters nor hangs."""

    async def main() -> None:
        async def fails(step: Step, call_next: CallNext) -> Decision:
            if step.turn == 1:
                raise ValueError("bad hook")
            return await call_next(step)

        bench = Workbench(install=[lambda seams: seams.pre_step.register(fails)])
        assert (await bench.ask("go")).reason["error"] == {"message": "ValueError: bad hook", "code": "UNKNOWN"}
        await goes_on(bench)

    asyncio.run(main())


def test_a_turn_with_nothing_to_say_makes_no_request() -> None:
    """Also when a listener drops what there was."""

    async def drop(step: Step, call_next: CallNext) -> Decision:
        await call_next(step)
        return Enter(())

    nothing = TurnEnd(1, 0, {"kind": "completed"}, "there was nothing to say to the model")
    assert asyncio.run(Workbench().agent.run_turn()) == nothing
    assert asyncio.run(Workbench(install=[lambda seams: seams.pre_step.register(drop)]).ask("go")) == nothing


def test_a_message_that_the_log_refuses_ends_the_turn_with_the_reason() -> None:
    """A plugin's malformed message is named, and the step it stood in never starts."""

    async def main() -> None:
        async def adds(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            assert isinstance(decision, Enter)
            return Enter((*decision.messages, {"content": [], "role": "user"})) if step.turn == 1 else decision

        bench = Workbench(install=[lambda seams: seams.pre_step.register(adds)])
        end = await bench.ask("go")
        assert end.reason["error"]["code"] == "REFUSED"
        assert "user/message" in end.sentence
        assert not bench.events("step/start")
        await goes_on(bench)

    asyncio.run(main())
