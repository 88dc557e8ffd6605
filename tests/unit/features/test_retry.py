"""A failed request is made again where that can help: bounded, logged, and the very same request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plan_mode_nb.agent.requests import CallNext, FailedRequest, RequestErrorAction
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import retry
from plan_mode_nb.features.retry import CODES, STANDARD, RetryPolicy
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.script import call, fail, say, usage
from plan_mode_nb.plan import PlanMode, PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.render.turn_view import render_turn
from plan_mode_nb.testing.workbench import Workbench, counted_clock

DOWN = ModelError("It is down: run the cell again in a moment.", code="SERVER", status=503)


class Waits:
    """Stands in for the clock: notes each wait and returns at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def bench_with(waits: Any, *steps: Any, policy: RetryPolicy = STANDARD, install: list[Any] | None = None) -> Workbench:
    return Workbench(*steps, install=[lambda seams: retry.install(seams, policy, sleep=waits), *(install or [])])


def limited(after_ms: int | None) -> Any:
    return fail(ModelError("Too many requests: wait.", code="RATE_LIMIT", status=429, retry_after_ms=after_ms))


def test_a_failure_that_may_pass_is_logged_and_asked_again_and_only_the_last_attempt_leaves_a_message() -> None:
    """deepseek-harness's shapes: the failed finish, the schedule ahead of the wait, the start after it."""

    async def main() -> None:
        waits = Waits()
        bench = bench_with(waits, [say("half an ans"), usage(7, 2), fail(DOWN)], [say("Whole."), usage(7, 3)])
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        failure = {"message": str(DOWN), "code": "SERVER", "status": 503}
        at = {"turn": 1, "step": 1}
        assert [(event.type, event.data) for event in bench.events("assistant/chunk", "llm/retry", "llm/retry-started")] == [
            ("assistant/chunk", {**at, "chunk": {"type": "usage", "usage": {"inputTokens": 7, "outputTokens": 2}}}),
            ("assistant/chunk", {**at, "chunk": {"type": "finish", "reason": {"kind": "error", "failure": failure}}}),
            (
                "llm/retry",
                {
                    "retryId": "id-2",
                    **at,
                    "provider": "scripted",
                    "mode": "normal",
                    "policyKey": RetryPolicy().key,
                    "retry": 1,
                    "maxRetries": 2,
                    "delayMs": 500,
                    "failure": failure,
                },
            ),
            ("llm/retry-started", {"retryId": "id-2", **at, "retry": 1}),
            ("assistant/chunk", {**at, "chunk": {"type": "usage", "usage": {"inputTokens": 7, "outputTokens": 3}}}),
            ("assistant/chunk", {**at, "chunk": {"type": "finish", "reason": {"kind": "stop"}}}),
        ]
        (message,) = bench.events("assistant/message")
        assert message.data["message"]["content"] == [{"type": "text", "text": "Whole."}]
        chunks = bench.events("assistant/chunk")
        assert message.source_event_seqs == [event.seq for event in chunks[2:]]
        assert waits.seconds == [0.5]
        assert bench.session.fold(USAGE) == Usage(7, 3)

    asyncio.run(main())


@pytest.mark.parametrize("code", CODES)
def test_every_code_that_may_pass_is_retried_with_growing_waits_until_the_limit(code: str) -> None:
    """Then the turn ends with the last failure's sentence, and what its last attempt delivered stays as interrupted."""

    async def main() -> None:
        waits = Waits()
        error = ModelError("It fails.", code=code)
        bench = bench_with(waits, [say("first "), fail(error)], [fail(error)], [say("third "), fail(error)])
        end = await bench.ask("go")
        assert end.reason == {"kind": "error", "error": {"message": "It fails.", "code": code}}
        assert [event.data["retry"] for event in bench.events("llm/retry")] == [1, 2]
        assert len({event.data["retryId"] for event in bench.events("llm/retry", "llm/retry-started")}) == 1
        assert waits.seconds == [0.5, 1.0]
        (message,) = bench.events("assistant/message")
        assert (message.data["message"]["content"][0]["text"], message.data["interrupted"]) == ("third ", True)

    asyncio.run(main())


@pytest.mark.parametrize("code", ["AUTH", "QUOTA", "BAD_REQUEST", "CONTEXT_OVERFLOW", "CONTENT_FILTER", "CONFIG", "UNKNOWN"])
def test_a_failure_that_repeats_itself_is_not_retried(code: str) -> None:
    async def main() -> None:
        bench = bench_with(Waits(), fail(ModelError("No.", code=code)))
        assert (await bench.ask("go")).reason["error"]["code"] == code
        assert not bench.events("llm/retry")

    asyncio.run(main())


def test_the_providers_wish_to_wait_takes_the_place_of_our_own() -> None:
    async def main() -> None:
        waits = Waits()
        bench = bench_with(waits, limited(7_000), limited(None), say("Now."))
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert waits.seconds == [7.0, 1.0]
        assert bench.events("llm/retry")[0].data["failure"]["providerRetryAfterMs"] == 7_000

    asyncio.run(main())


def test_a_wait_beyond_patience_is_the_persons_to_decide() -> None:
    """An hour in a waiting cell helps nobody; the sentence says how long it would be."""

    async def main() -> None:
        waits = Waits()
        bench = bench_with(waits, limited(3_600_000))
        assert (await bench.ask("go")).reason["error"]["code"] == "RATE_LIMIT"
        assert waits.seconds == []

    asyncio.run(main())


def test_no_retries_can_be_wanted() -> None:
    async def main() -> None:
        bench = bench_with(Waits(), fail(DOWN), policy=RetryPolicy(max_retries=0))
        assert (await bench.ask("go")).reason["error"]["code"] == "SERVER"
        assert not bench.events("llm/retry")

    asyncio.run(main())


def test_each_step_has_its_own_budget() -> None:
    """The chain of an earlier step is over."""

    def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    async def main() -> None:
        bench = bench_with(
            Waits(),
            [fail(DOWN)],
            [fail(DOWN)],
            [call("add", {"a": 1, "b": 1})],
            [fail(DOWN)],
            [fail(DOWN)],
            [say("2")],
            install=[lambda seams: seams.tools.register(tool_from(add))],
        )
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert [(event.data["step"], event.data["retry"]) for event in bench.events("llm/retry")] == [(1, 1), (1, 2), (2, 1), (2, 2)]

    asyncio.run(main())


def test_a_retry_makes_the_steps_own_request_and_applies_no_selection_of_plan_mode() -> None:
    """Selected while the first attempt runs, plan mode begins with the next step, not with the retry."""

    async def main() -> None:
        def select(request: Any) -> Any:
            PlanMode.set(bench.agent, True)
            return fail(DOWN)

        bench = bench_with(
            Waits(),
            select,
            say("done"),
            say("planning"),
            install=[lambda seams: install_plan(seams, PlanModeConfig("PLAN"))],
        )
        await bench.ask("go")
        first, second = bench.model.requests
        assert second is first
        assert "PLAN" not in second.system
        assert bench.types.index("plan/selected") < bench.types.index("llm/retry")
        assert "plan/mode" not in bench.types
        await bench.ask("and now")
        assert "PLAN" in bench.model.requests[2].system

    asyncio.run(main())


def test_stopping_during_the_wait_ends_the_turn_at_once_and_starts_no_attempt() -> None:
    """What the last attempt delivered stays, as with every stop."""

    async def main() -> None:
        waiting, forever = asyncio.Event(), asyncio.Event()

        async def wait(seconds: float) -> None:
            waiting.set()
            await forever.wait()

        bench = bench_with(wait, [say("so far "), fail(DOWN)], say("never"))
        turn = asyncio.create_task(bench.ask("go"))
        await asyncio.wait_for(waiting.wait(), 60)
        assert bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 0.3)
        assert bench.types[-4:] == ["llm/retry", "assistant/message", "step/end", "turn/end"]
        assert bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
        assert len(bench.model.requests) == 1
        assert (await bench.ask("again")).reason == {"kind": "completed"}

    asyncio.run(main())


def test_a_listener_that_hides_the_stop_cannot_hide_it_from_the_turn() -> None:
    async def main() -> None:
        waiting = asyncio.Event()

        async def deaf(failed: FailedRequest, call_next: CallNext) -> RequestErrorAction:
            try:
                waiting.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "retry"
            return "fail"

        bench = Workbench(fail(DOWN), say("never"), install=[lambda seams: seams.request_error.register(deaf)])
        turn = asyncio.create_task(bench.ask("go"))
        await asyncio.wait_for(waiting.wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert len(bench.model.requests) == 1

    asyncio.run(main())


def test_another_plugins_retry_is_taken_and_not_counted() -> None:
    """The rest of the chain is asked first."""

    async def main() -> None:
        waits = Waits()

        async def mends(failed: FailedRequest, call_next: CallNext) -> RequestErrorAction:
            return "retry"

        bench = bench_with(waits, fail(DOWN), say("Mended."), install=[lambda seams: seams.request_error.register(mends)])
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        assert (waits.seconds, bench.events("llm/retry")) == ([], [])

    asyncio.run(main())


def test_taking_the_plugin_out_takes_the_retries_out() -> None:
    async def main() -> None:
        bench = Workbench(fail(DOWN), say("later"))
        undo = retry.install(bench.seams, sleep=Waits())
        undo()
        assert (await bench.ask("go")).reason["error"]["code"] == "SERVER"
        assert not bench.events("llm/retry")

    asyncio.run(main())


def test_a_recorded_turn_with_retries_plays_again_event_for_event() -> None:
    """The failures come back with status and wish to wait, so the retries that they led to are derived again."""

    async def main() -> None:
        steps = [[say("a "), limited(3_000)], [fail(DOWN)], [say("Yes."), usage(3, 1)]]
        bench = bench_with(Waits(), *steps)
        await bench.ask("go")
        again = bench_with(waits := Waits())
        again.model = RecordedModel(bench.session.events)  # type: ignore[assignment]
        again.agent.models = lambda name: again.model
        await again.ask("go")
        played = [(event.type, event.data) for event in again.session.events if event.type != "assistant/message"]
        assert played == [(event.type, event.data) for event in bench.session.events if event.type != "assistant/message"]
        assert waits.seconds == [3.0, 1.0]
        Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines)

    asyncio.run(main())


def test_what_a_failed_attempt_streamed_is_dropped_from_the_preview() -> None:
    """Each attempt begins with a fresh preview, and so does the wait, which says what is waited for. The outputs hold the answer once."""

    async def main() -> None:
        kinds: list[str] = []
        bench = bench_with(Waits(), [say("half "), fail(DOWN)], say("Whole."))
        bench.seams.previews.subscribe(lambda preview: kinds.append(preview.text or preview.kind))
        await bench.ask("go")
        waiting = f"{DOWN} Trying again in 0.5 s (1 of 2)."
        assert kinds == ["start", "half ", "start", waiting, "start", "Whole."]
        shown = "\n".join(bundle["text/plain"] for bundle in render_turn(bench.session.events))
        assert "1 retry" in shown
        assert "Whole." in shown
        assert "half" not in shown
        assert "Trying" not in shown

    asyncio.run(main())


def test_a_secret_in_a_failures_words_reaches_no_event() -> None:
    async def main() -> None:
        def hides(seams: Seams) -> Callable[[], None]:
            return seams.redactions.register("test", lambda text: text.replace("hunter2", "[redacted]"))

        error = ModelError("The server said hunter2.", code="SERVER")
        bench = bench_with(Waits(), fail(error), say("ok"), install=[hides])
        await bench.ask("go")
        assert "hunter2" not in "\n".join(bench.session.lines)

    asyncio.run(main())
