"""Stop cannot be hidden by whoever catches a cancellation, and a cancellation from inside is not Stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from stopping import CONFIG, USER, Reached, errors, goes_on, stop_at, tool

from plan_mode_nb.agent.model import Chunk, Finish, Request, TextDelta
from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.tools import Outcome, ToolCall, text_result
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing.workbench import Workbench


def test_a_tool_that_catches_the_cancellation_still_stops_the_turn() -> None:
    """Its own result stands, and no further request is made."""

    async def main() -> None:
        reached = Reached()

        async def wait(call: ToolCall) -> Outcome:
            try:
                await reached.stay()
            except asyncio.CancelledError:
                return Outcome(text_result("caught"))
            raise AssertionError

        bench = Workbench([call("wait", {}, id="a"), call("wait", {}, id="b")], say("never"), install=[tool(wait)])
        await stop_at(bench, reached)
        assert errors(bench) == [("a", None), ("b", "TOOL_ABORTED_BEFORE_DISPATCH")]
        assert len(bench.model.requests) == 1
        assert bench.events("turn/end")[0].data["reason"] == USER

    asyncio.run(main())


@pytest.mark.parametrize("whole", [False, True])
def test_a_model_that_catches_the_cancellation_still_stops_the_turn(whole: bool) -> None:
    """What it delivered afterwards is interrupted all the same, though it says that the answer is whole."""

    async def main() -> None:
        reached = Reached()

        class Stubborn:
            config = CONFIG

            async def stream(self, request: Request) -> AsyncIterator[Chunk]:
                yield TextDelta(0, "so far")
                try:
                    await reached.stay()
                except asyncio.CancelledError:
                    yield TextDelta(0, " and on")
                if whole:
                    yield Finish("stop")

        bench = Workbench()
        bench.agent.models = lambda name: Stubborn()
        await stop_at(bench, reached)
        message = bench.events("assistant/message")[0].data
        assert (message["message"]["content"][0]["text"], message["interrupted"]) == ("so far and on", True)

    asyncio.run(main())


def test_a_pre_step_listener_that_catches_the_cancellation_still_stops_the_turn() -> None:
    """No step starts."""

    async def main() -> None:
        reached = Reached()

        async def listener(step: Step, call_next: CallNext) -> Decision:
            try:
                await reached.stay()
            except asyncio.CancelledError:
                assert step.is_stopped()
            return await call_next(step)

        bench = Workbench(install=[lambda seams: seams.pre_step.register(listener)])
        await stop_at(bench, reached)
        assert not bench.events("step/start", "user/message")
        assert bench.events("turn/end")[0].data["reason"] == USER

    asyncio.run(main())


def test_a_tool_that_is_cancelled_from_inside_failed_and_nobody_stopped_the_turn() -> None:
    """A tool's failure never crosses the loop, whatever its exception is called."""

    async def main() -> None:
        async def wait(call: ToolCall) -> Outcome:
            raise asyncio.CancelledError

        bench = Workbench([call("wait", {}, id="a"), call("wait", {}, id="b")], say("on"), install=[tool(wait)])
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert errors(bench) == [("a", "TOOL_CRASHED"), ("b", "TOOL_CRASHED")]

    asyncio.run(main())


def test_a_model_that_is_cancelled_from_inside_fails_the_turn_and_nobody_stopped_it(caplog: pytest.LogCaptureFixture) -> None:
    """The turn ends in error with a sentence; the caller is not cancelled."""

    async def main() -> None:
        class Broken:
            config = CONFIG

            async def stream(self, request: Request) -> AsyncIterator[Chunk]:
                yield TextDelta(0, "so far")
                raise asyncio.CancelledError

        bench = Workbench()
        bench.agent.models = lambda name: Broken()
        with caplog.at_level(logging.CRITICAL):
            end = await bench.ask("go")
        assert end.reason["error"]["code"] == "UNKNOWN"
        assert end.sentence == "the turn was cancelled from inside, though nobody stopped it; run the cell again"
        assert bench.events("assistant/message")[0].data["interrupted"] is True
        bench.agent.models = lambda name: bench.model
        await goes_on(bench)

    asyncio.run(main())


def test_a_model_that_makes_a_failure_of_the_cancellation_still_stops_the_turn() -> None:
    """It is Stop, not a failed request: nobody is asked about a retry, and no failure is logged."""

    async def main() -> None:
        reached = Reached()

        class Wrapping:
            config = CONFIG

            async def stream(self, request: Request) -> AsyncIterator[Chunk]:
                yield TextDelta(0, "so far")
                try:
                    await reached.stay()
                except asyncio.CancelledError:
                    raise ModelError("connection closed", code="TRANSPORT") from None

        bench = Workbench()
        bench.agent.models = lambda name: Wrapping()
        await stop_at(bench, reached)
        assert bench.events("turn/end")[0].data["reason"] == USER
        assert bench.events("assistant/message")[0].data["interrupted"] is True
        assert not bench.events("assistant/chunk")

    asyncio.run(main())
