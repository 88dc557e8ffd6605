"""A live model over a real connection to the loopback server, for tests that look at both ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep

PROVIDERS = ("openai-chat", "openai", "deepseek", "anthropic")
KEY = "sk-very-secret-key-0123456789"
Body = Callable[[PydanticAIModel, LoopbackServer], Coroutine[Any, Any, None]]


def environ_for(server: LoopbackServer, key: str = KEY) -> Mapping[str, str]:
    urls = {"OPENAI_BASE_URL": server.url, "DEEPSEEK_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.root}
    keys = {"OPENAI_API_KEY": key, "DEEPSEEK_API_KEY": key, "ANTHROPIC_API_KEY": key} if key else {}
    return urls | keys


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
