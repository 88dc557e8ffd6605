"""A live model over a real connection to the loopback server, for tests that look at both ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep
from plan_mode_nb.testing.workbench import Workbench

PROVIDERS = ("openai-chat", "openai", "deepseek", "anthropic")
KEY = "sk-very-secret-key-0123456789"
Body = Callable[[PydanticAIModel, LoopbackServer], Coroutine[Any, Any, None]]


def environ_for(server: LoopbackServer, key: str = KEY) -> Mapping[str, str]:
    urls = {"OPENAI_BASE_URL": server.url, "DEEPSEEK_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.root}
    keys = {"OPENAI_API_KEY": key, "DEEPSEEK_API_KEY": key, "ANTHROPIC_API_KEY": key} if key else {}
    return urls | keys


async def stop_in_the_middle(bench: Workbench, prompt: str) -> float:
    """Ask, and stop the turn when its first words are there; the seconds that the turn took to end, its log closed."""
    began = asyncio.Event()
    undo = bench.seams.previews.subscribe(lambda preview: began.set() if preview.kind == "text" else None)
    turn = asyncio.create_task(bench.ask(prompt))
    await began.wait()
    undo()
    started = time.monotonic()
    bench.agent.cancel({"kind": "user"})
    with pytest.raises(asyncio.CancelledError):
        await turn
    return time.monotonic() - started


def over(
    provider: str,
    steps: Sequence[ServerStep],
    body: Body,
    *,
    settings: ModelSettings | None = None,
    model: str = "loopback",
    key: str = KEY,
) -> None:
    """Serve the steps, run ``body(model, server)`` in bounded time, close the model."""

    async def within(server: LoopbackServer) -> None:
        live = PydanticAIModel(provider, model, settings or ModelSettings(), environ_for(server, key))
        try:
            await asyncio.wait_for(body(live, server), 20)
        finally:
            await live.aclose()

    with LoopbackServer(steps) as server:
        asyncio.run(within(server))
