"""What goes wrong at a provider becomes one sentence with a code; never a hang, a key, or a second request behind our back."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from live_model import KEY, PROVIDERS, over

from plan_mode_nb.agent.model import Chunk, UsageChunk
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.faults import Cut, Drop, Fault, Filtered, Garbage, Nothing, Slow, Stall, Status, Trouble
from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep
from plan_mode_nb.testing.model_contract import a_request, blocks_of, chunks_of

EACH = pytest.mark.parametrize("provider", PROVIDERS)


def failed(provider: str, step: ServerStep, **more: Any) -> tuple[ModelError, list[Chunk], int]:
    """The failure, what came before it, and how many requests the server saw."""
    seen: list[tuple[ModelError, list[Chunk], int]] = []

    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        chunks, error = await chunks_of(model)
        assert error is not None, chunks
        seen.append((error, chunks, len(server.requests)))

    over(provider, [step, say("not this")], body, **more)
    error = seen[0][0]
    assert "\n" not in str(error)
    assert KEY not in str(error)
    assert len(str(error)) < 500
    return seen[0]


@EACH
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (Status(401, f"Incorrect API key provided: {KEY}"), "AUTH", ("was refused (401)", "_API_KEY")),
        (Status(403, "no"), "AUTH", ("was refused (403)",)),
        (Status(404, "no such model", code="model_not_found"), "BAD_REQUEST", ("knows no model 'loopback'", "PlanAgent.model")),
        (Status(429, "slow down", retry_after=7), "RATE_LIMIT", ("wait 7 s",)),
        (Status(400, "max_tokens is too large"), "BAD_REQUEST", ("max_tokens is too large",)),
        (Status(422, f"odd {KEY}"), "BAD_REQUEST", ("[key]",)),
        (Status(400, "prompt is too long: maximum context length", code="context_length_exceeded"), "CONTEXT_OVERFLOW", ("%session new",)),
        (Status(500, "boom"), "SERVER", ("boom",)),
        (Status(503, "boom"), "SERVER", ("in a moment",)),
        (Filtered(), "CONTENT_FILTER", ("rephrase",)),
        (Nothing(), "EMPTY_RESPONSE", ("nothing at all",)),
    ],
    ids=lambda value: f"{type(value).__name__}{getattr(value, 'status', '')}" if isinstance(value, Fault) else "",
)
def test_each_failure_has_its_code_and_a_sentence_that_helps(provider: str, fault: Fault, code: str, words: tuple[str, ...]) -> None:
    """A failed request is made once: retries are the loop's, and logged."""
    error, chunks, requests = failed(provider, fault)
    assert error.code == code, error
    assert all(word in str(error) for word in words), error
    assert [chunk for chunk in chunks if not isinstance(chunk, UsageChunk)] == []
    assert requests == 1


@EACH
def test_the_providers_wish_to_wait_is_kept_in_milliseconds(provider: str) -> None:
    error, _, _ = failed(provider, Status(429, "slow down", retry_after=1.5))
    assert (error.retry_after_ms, error.status) == (1500, 429)


@pytest.mark.parametrize("provider", ["openai-chat", "openai", "deepseek"])
def test_an_empty_account_is_not_a_rate_limit(provider: str) -> None:
    """Waiting does not help there."""
    error, _, _ = failed(provider, Status(429, "You exceeded your current quota", code="insufficient_quota"))
    assert error.code == "QUOTA"
    assert "top it up" in str(error)


@EACH
@pytest.mark.parametrize(
    ("fault", "code"), [(Drop(), "TRANSPORT"), (Cut(), "TRANSPORT"), (Garbage(), "SERVER"), (Trouble("boom"), "SERVER")], ids=repr
)
def test_a_failure_in_the_middle_keeps_what_was_delivered(provider: str, fault: Fault, code: str) -> None:
    error, chunks, _ = failed(provider, [say("One two "), fault])
    assert error.code == code, error
    assert blocks_of(chunks) == [{"type": "text", "text": "One two "}]


def test_usage_told_before_a_failure_is_reported() -> None:
    """Anthropic counts the prompt in its first event: those tokens are paid whatever happens after it."""
    _, chunks, _ = failed("anthropic", [usage(20, 5, cache_read_tokens=100), say("One "), Drop()])
    assert [(chunk.usage.input_tokens, chunk.usage.cache_read_tokens) for chunk in chunks if isinstance(chunk, UsageChunk)] == [(20, 100)]


@EACH
def test_blank_text_is_an_empty_answer(provider: str) -> None:
    error, _, _ = failed(provider, say(" \n"))
    assert error.code == "EMPTY_RESPONSE"


@EACH
def test_a_silent_stream_ends_at_the_idle_timeout(provider: str) -> None:
    started = time.monotonic()
    error, chunks, _ = failed(provider, [say("One "), Stall()], settings=ModelSettings(idle_timeout=0.3))
    assert error.code == "TIMEOUT"
    assert "PlanAgent.request_timeout" in str(error)
    assert blocks_of(chunks) == [{"type": "text", "text": "One "}]
    assert time.monotonic() - started < 10


@EACH
def test_a_slow_stream_ends_at_the_timeout(provider: str) -> None:
    """A server that sends a word now and then is never idle."""
    error, _, _ = failed(provider, [Slow(0.1), say("word " * 200)], settings=ModelSettings(timeout=0.5))
    assert error.code == "TIMEOUT"
    assert "0.5 s" in str(error)


@EACH
def test_a_server_that_is_not_there_is_named(provider: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}/v1"
    urls = dict.fromkeys(("OPENAI_BASE_URL", "DEEPSEEK_BASE_URL", "ANTHROPIC_BASE_URL"), address)

    async def body() -> ModelError | None:
        model = PydanticAIModel(provider, "loopback", ModelSettings(), urls)
        _, error = await chunks_of(model)
        await model.aclose()
        return error

    error = asyncio.run(body())
    assert error is not None
    assert error.code == "TRANSPORT"
    assert f"Cannot reach {address}" in str(error)
    assert "_BASE_URL" in str(error)


@EACH
def test_a_missing_key_is_asked_for_by_name(provider: str) -> None:
    async def body() -> ModelError | None:
        _, error = await chunks_of(PydanticAIModel(provider, "loopback", ModelSettings(), {}))
        return error

    error = asyncio.run(body())
    assert error is not None
    assert error.code == "CONFIG"
    assert "_API_KEY" in str(error)


def test_a_server_that_wants_a_key_says_which() -> None:
    error, _, _ = failed("openai-chat", Status(401, "who are you?"), key="")
    assert "wants a key (401): set OPENAI_API_KEY" in str(error)


def test_a_provider_whose_package_is_missing_is_a_sentence() -> None:
    """The rest of pydantic-ai's providers come with their own packages and keys."""

    async def body(name: str, environ: Mapping[str, str]) -> ModelError | None:
        _, error = await chunks_of(PydanticAIModel(name, "some-model", ModelSettings(), environ))
        return error

    for name in ("google", "groq", "openrouter"):
        error = asyncio.run(body(name, {}))
        assert error is not None
        assert error.code == "CONFIG", error
        assert f"{name}:some-model cannot be used" in str(error)


@EACH
def test_cancelling_closes_the_connection_at_once(provider: str) -> None:
    """The provider stops generating, and stops counting."""

    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        first = asyncio.Event()
        got: list[Chunk] = []

        async def read() -> None:
            async for chunk in model.stream(a_request()):
                got.append(chunk)
                first.set()

        task = asyncio.create_task(read())
        await first.wait()
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 0.3
        assert await asyncio.to_thread(server.wait_for_disconnects, 1)
        assert blocks_of(got) == [{"type": "text", "text": "One "}]
        chunks, error = await chunks_of(model)
        assert error is None
        assert blocks_of(chunks) == [{"type": "text", "text": "again"}]

    over(provider, [[say("One "), Stall()], say("again")], body)


@EACH
def test_cancelling_before_the_first_byte_closes_the_connection_too(provider: str) -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        task = asyncio.create_task(chunks_of(model))
        assert await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_for_disconnects, 1)

    over(provider, [Stall()], body)


@EACH
def test_leaving_a_stream_closes_the_connection(provider: str) -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        stream = model.stream(a_request())
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        assert await asyncio.to_thread(server.wait_for_disconnects, 1)

    over(provider, [[say("One "), Stall()]], body)


def test_a_new_loop_gets_a_new_client() -> None:
    """An agent thread that died is replaced, and its model goes on."""
    with LoopbackServer([say("one"), say("two")]) as server:
        model = PydanticAIModel("openai-chat", "loopback", ModelSettings(), {"OPENAI_BASE_URL": server.url})
        for expected in ("one", "two"):
            chunks, error = asyncio.run(chunks_of(model))
            assert error is None
            assert blocks_of(chunks) == [{"type": "text", "text": expected}]


def test_a_closed_model_opens_again() -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        for _ in range(2):
            _, error = await chunks_of(model)
            assert error is None
            await model.aclose()
        await model.aclose()

    over("openai-chat", [say("one"), say("two")], body)


def test_the_loop_goes_on_while_a_provider_is_imported() -> None:
    """Stop must be heard during the first request's seconds of imports: the loop never stands still for long."""
    code = """
import asyncio, time
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.models.script import say
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import chunks_of

async def main():
    with LoopbackServer([say("hi")]) as server:
        model = PydanticAIModel("openai-chat", "m", ModelSettings(), {"OPENAI_BASE_URL": server.url})
        asking = asyncio.create_task(chunks_of(model))
        ticks = 0
        while not asking.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert (await asking)[1] is None
        print(ticks)

asyncio.run(main())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert int(run.stdout) > 10
