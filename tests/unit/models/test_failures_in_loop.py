"""What goes wrong on the wire, seen from a turn: retried byte for byte, corrected by the model, or ended with a reason and one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from live_model import PROVIDERS, environ_for, stop_in_the_middle

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.features import retry
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import call, finish, say, usage
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.faults import Cut, Drop, Fault, Filtered, Garbage, Nothing, Stall, Status, Trouble
from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep
from plan_mode_nb.testing.workbench import Workbench

EACH = pytest.mark.parametrize("provider", PROVIDERS)
Body = Callable[[Workbench, LoopbackServer], Coroutine[Any, Any, None]]


def look(name: str) -> str:
    """Look at a variable."""
    return f"{name} is 3"


async def no_wait(seconds: float) -> None:
    """Retries do not wait here."""


def over(provider: str, steps: Sequence[ServerStep], body: Body) -> None:
    """Real loop, real connection; retries that do not wait."""

    def composed(seams: Seams) -> Callable[[], None]:
        seams.tools.register(tool_from(look))
        return retry.install(seams, sleep=no_wait)

    async def within(server: LoopbackServer) -> None:
        model = PydanticAIModel(provider, "loopback", ModelSettings(idle_timeout=5), environ_for(server))
        bench = Workbench(install=[composed])
        bench.agent.models = lambda name: model
        try:
            await asyncio.wait_for(body(bench, server), 20)
        finally:
            await model.aclose()

    with LoopbackServer(steps) as server:
        asyncio.run(within(server))


@EACH
@pytest.mark.parametrize(
    "broken",
    [
        [Status(500, "boom")],
        [Status(429, "slow down", retry_after=1.5)],
        [Nothing()],
        [say("One two "), Drop()],
        [say("One two "), Cut()],
        [say("One two "), Garbage()],
        [usage(9, 1), say("One two "), call("look", '{"na'), Trouble("boom")],
    ],
    ids=["500", "429", "empty", "drop", "cut", "garbage", "trouble"],
)
def test_a_retry_sends_the_steps_request_byte_for_byte_and_keeps_nothing_of_the_failed_attempt(provider: str, broken: list[Any]) -> None:
    async def body(bench: Workbench, server: LoopbackServer) -> None:
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        first, second = server.requests
        assert second.raw == first.raw
        (message,) = bench.events("assistant/message")
        assert message.data["message"]["content"] == [{"type": "text", "text": "Whole."}]
        assert not bench.events("tool/call")
        (scheduled,) = bench.events("llm/retry")
        if isinstance(broken[0], Status):
            assert scheduled.data["failure"]["status"] == broken[0].status
        if broken[0] == Status(429, "slow down", retry_after=1.5):
            assert scheduled.data["delayMs"] == scheduled.data["failure"]["providerRetryAfterMs"] == 1500

    over(provider, [broken, say("Whole.")], body)


@EACH
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (Status(400, "prompt is too long: maximum context length", code="context_length_exceeded"), "CONTEXT_OVERFLOW", "%session new"),
        (Filtered(), "CONTENT_FILTER", "rephrase"),
        (Status(401, "no"), "AUTH", "_API_KEY"),
    ],
    ids=["overflow", "filter", "key"],
)
def test_what_repeats_itself_ends_the_turn_at_once_with_what_to_do(provider: str, fault: Fault, code: str, words: str) -> None:
    """The session goes on with the next turn."""

    async def body(bench: Workbench, server: LoopbackServer) -> None:
        end = await bench.ask("go")
        assert end.reason["error"]["code"] == code
        assert words in end.sentence
        assert len(server.requests) == 1
        assert (await bench.ask("again")).reason == {"kind": "completed"}

    over(provider, [fault, say("Fine.")], body)


@EACH
def test_an_answer_that_stays_empty_is_asked_three_times_and_then_said_to_be(provider: str) -> None:
    async def body(bench: Workbench, server: LoopbackServer) -> None:
        end = await bench.ask("go")
        assert end.reason["error"]["code"] == "EMPTY_RESPONSE"
        assert "run the cell again" in end.sentence
        assert len(server.requests) == 3
        assert not bench.events("assistant/message")

    over(provider, [Nothing(), say(" \n"), Nothing()], body)


@EACH
def test_a_call_that_the_token_limit_cut_off_never_runs(provider: str) -> None:
    """What was said ahead of it stays, and the turn says why it ended."""

    async def body(bench: Workbench, server: LoopbackServer) -> None:
        end = await bench.ask("go")
        assert end.reason == {"kind": "max-tokens"}
        assert not bench.events("tool/call")
        assert bench.events("assistant/message")[0].data["message"]["content"] == [{"type": "text", "text": "Let me look. "}]
        assert (await bench.ask("again")).reason == {"kind": "completed"}

    over(provider, [[say("Let me look. "), call("look", '{"name": "x', "c-1"), finish("max-tokens")], say("Fine.")], body)


@EACH
@pytest.mark.parametrize("raw", ['{"name": "x', '["x"]', '{"nam": "x"}', '{"name": 3}', ""])
def test_malformed_arguments_become_a_result_that_the_model_can_correct_itself_by(provider: str, raw: str) -> None:
    """The log keeps the raw text; the conversation goes on."""

    async def body(bench: Workbench, server: LoopbackServer) -> None:
        assert (await bench.ask("go")).reason == {"kind": "completed"}
        first, second = bench.events("tool/call")
        assert (first.data["arguments"], second.data["arguments"]) == (raw, '{"name": "x"}')
        bad, good = (event.data["message"]["content"][0] for event in bench.events("tool/result"))
        assert bad["isError"] is True
        assert (good["isError"], good["content"][0]["text"]) == (False, "x is 3")
        assert bad["content"][0]["text"] in str(server.requests[1].body).replace("\\'", "'")

    over(provider, [[call("look", raw, "c-1")], [call("look", '{"name": "x"}', "c-2")], say("3.")], body)


@EACH
def test_stopping_ends_the_turn_and_the_connection_within_300_ms(provider: str) -> None:
    """What was delivered stays as an interrupted message."""

    async def body(bench: Workbench, server: LoopbackServer) -> None:
        assert await stop_in_the_middle(bench, "go") < 0.3
        assert await asyncio.to_thread(server.wait_for_disconnects, 1)
        (message,) = bench.events("assistant/message")
        assert (message.data["message"]["content"][0]["text"], message.data["interrupted"]) == ("One ", True)
        assert not bench.events("llm/retry")

    over(provider, [[say("One "), Stall()]], body)
