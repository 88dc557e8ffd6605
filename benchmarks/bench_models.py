"""What a model's adapter costs: ``python benchmarks/bench_models.py`` prints one line a measurement.

The server is the loopback server in this process. A step's cost is the time that the loop's own thread spends on one request, from the
log's messages to the end of a one-word answer, when the conversation has grown by one exchange since the last request; latency is from the
cancellation to the end of the turn.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from typing import Any

from plan_mode_nb.log.messages import Message, assistant_message, text_block, tool_result_message, user_message
from plan_mode_nb.models.convert import History
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import say
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.faults import Stall
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import a_request, chunks_of
from plan_mode_nb.testing.workbench import Workbench

PROVIDERS = {"openai-chat": "loopback", "openai": "gpt-6.1-sol", "deepseek": "deepseek-flash", "anthropic": "claude-sonnet-5-5"}
TIMES = 5


def conversation(length: int, provider: str) -> list[Message]:
    """Exchanges of a question, a call, its result and an answer, ``length`` messages."""
    messages: list[Message] = []
    for number in range(length // 4 + 1):
        asked = {"type": "tool-call", "id": f"c{number}", "name": "look", "arguments": '{"name": "x"}'}
        messages += [
            user_message("What is it, and why? " * 5, id=f"u{number}"),
            assistant_message([text_block("Let me look."), asked], id=f"a{number}", provider=provider, model="m"),
            tool_result_message(f"c{number}", [text_block("3 of 5. " * 12)], id=f"r{number}", is_error=False),
            assistant_message([text_block("It is 3, because. " * 3)], id=f"b{number}", provider=provider, model="m"),
        ]
    return [*messages[: length - 1], user_message("And now?", id="last")]


def served(server: LoopbackServer, provider: str) -> PydanticAIModel:
    """The adapter, pointed at the server."""
    urls = {"OPENAI_BASE_URL": server.url, "DEEPSEEK_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.root}
    return PydanticAIModel(provider, PROVIDERS[provider], ModelSettings(), urls)


def grown(messages: list[Message], number: int, provider: str) -> list[Message]:
    """One exchange later."""
    answer = assistant_message([text_block("So.")], id=f"n{number}", provider=provider, model="m")
    return [*messages, answer, user_message("Go on.", id=f"g{number}")]


async def step(provider: str, length: int) -> None:
    """One request more, of a conversation of ``length`` messages."""
    with LoopbackServer([say("Yes.")] * (TIMES + 1)) as server:
        model, messages = served(server, provider), conversation(length, provider)
        await chunks_of(model, a_request(messages=messages))
        assert model._open is not None
        own, whole = History(model._open.history._dialect), []
        own.convert(messages, {})
        ours: list[float] = []
        for number in range(TIMES):
            messages = grown(messages, number, provider)
            started = time.perf_counter()
            own.convert(messages, {})
            ours.append(time.perf_counter() - started)
            started = time.thread_time()
            _, error = await chunks_of(model, a_request(messages=messages))
            whole.append(time.thread_time() - started)
            assert error is None, error
        await model.aclose()
    told = f"{statistics.median(whole) * 1e6:12,.0f} µs, of it our conversion {statistics.median(ours) * 1e6:8,.0f} µs"
    print(f"step  {provider:12} {length:7,} messages {told}")


async def cancel(provider: str) -> None:
    """Stop in the middle of an answer."""
    latencies: list[float] = []
    with LoopbackServer([[say("One "), Stall()]] * TIMES) as server:
        model: Any = served(server, provider)
        for number in range(TIMES):
            bench = Workbench()
            bench.agent.models = lambda name: model
            began = asyncio.Event()
            bench.seams.previews.subscribe(lambda preview, began=began: began.set() if preview.kind == "text" else None)
            turn = asyncio.create_task(bench.ask("go"))
            await began.wait()
            started = time.perf_counter()
            bench.agent.cancel({"kind": "user"})
            await asyncio.wait([turn])
            latencies.append(time.perf_counter() - started)
            assert await asyncio.to_thread(server.wait_for_disconnects, number + 1)
        await model.aclose()
    print(f"stop  {provider:12} median {statistics.median(latencies) * 1e3:6.1f} ms, worst {max(latencies) * 1e3:6.1f} ms")


def main() -> None:
    """All of it."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for provider in PROVIDERS:
        for length in (10, 10_000):
            asyncio.run(step(provider, length))
        asyncio.run(cancel(provider))


if __name__ == "__main__":
    main()
