"""The whole way: the real loop, the adapter, a real connection; what the log keeps is enough to go on and to replay."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from live_model import PROVIDERS, environ_for

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.script import call, say, think, usage
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import TOOL, a_request, chunks_of
from plan_mode_nb.testing.workbench import Workbench

RAW = '{"name":  "x", "n": 1e1}'
STEPS = [
    [think("Let me look.", "SIGNED"), say("One moment. "), call("look", RAW, "c-1"), usage(20, 7, cache_read_tokens=100)],
    [say("It is 3."), usage(5, 2, cache_read_tokens=125)],
    [say("Still 3.")],
]


def with_look(seams: Seams) -> Callable[[], None]:
    async def look(call: ToolCall) -> Outcome:
        return Outcome(text_result(f"3 (asked: {call.arguments})"))

    return seams.tools.register(Tool(TOOL["name"], TOOL["description"], TOOL["parameters"], look))


def bench_for(model: Any, **more: Any) -> Workbench:
    bench = Workbench(install=[with_look], **more)
    bench.model = model
    return bench


def name_for(provider: str) -> str:
    return "gpt-6.1-sol" if provider == "openai" else "loopback"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_runs_is_reopened_from_its_lines_and_replays_event_for_event(provider: str) -> None:
    async def body(server: LoopbackServer) -> None:
        live = PydanticAIModel(provider, name_for(provider), ModelSettings(), environ_for(server))
        bench = bench_for(live)
        end = await bench.ask("What is x?")
        assert (end.reason, end.steps) == ({"kind": "completed"}, 2)
        assert bench.session.fold(USAGE) == Usage(uncached_input=25, output=9, cache_read=225, cache_write=0)
        assert [event.data["arguments"] for event in bench.events("tool/call")] == [RAW]

        # Another process: nothing but the lines is left of the first one.
        reopened = bench_for(live, lines=bench.sink.lines, ids="later")
        assert (await reopened.ask("And now?")).reason == {"kind": "completed"}
        last = server.requests[2].body
        assert "3 (asked:" in msgspec.json.encode(last).decode()
        if provider in ("anthropic", "openai"):
            assert "SIGNED" in msgspec.json.encode(last).decode()
        assert _prefix(server.requests[1].body, last, provider)

        again = bench_for(RecordedModel(bench.session.events))
        await again.ask("What is x?")
        assert [(event.type, event.data) for event in again.session.events] == [(event.type, event.data) for event in bench.session.events]
        await live.aclose()

    with LoopbackServer(STEPS) as server:
        asyncio.run(asyncio.wait_for(body(server), 30))


def _prefix(earlier: dict[str, Any], later: dict[str, Any], provider: str) -> bool:
    """Whether the later conversation begins with the earlier one, so that the provider's cache serves it."""
    key = "input" if provider == "openai" else "messages"
    return bool(later[key][: len(earlier[key])] == earlier[key] and later["tools"] == earlier["tools"])


def test_an_unexpected_fault_is_logged_once_and_becomes_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    """A message without its text is nobody's protocol: the turn must end with a reason all the same."""

    async def body(server: LoopbackServer) -> None:
        model = PydanticAIModel("openai-chat", "loopback", ModelSettings(), environ_for(server))
        broken = {"role": "user", "content": [{"type": "text"}], "source": {"kind": "user"}, "id": "u"}
        _, error = await chunks_of(model, a_request(messages=[broken]))
        assert error is not None
        assert error.code == "UNKNOWN"
        assert "openai-chat:loopback" in str(error)
        _, error = await chunks_of(model)
        assert error is None, "the next request is not harmed"
        await model.aclose()

    with LoopbackServer([say("fine")]) as server, caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(body(server), 30))
    assert [record.name for record in caplog.records if record.levelno >= logging.ERROR] == ["plan_mode_nb.models.failures"]
