"""Opening pydantic-ai models: one HTTP client each, no retries inside (a retry is the loop's, and logged)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from msgspec import Struct
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import create_async_httpx2_client, infer_model

from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.convert import Dialect
from plan_mode_nb.models.failures import Route
from plan_mode_nb.models.settings import ModelSettings

NO_KEY = "no-key"
"""Sent where a local server needs none: the SDK refuses to send nothing."""


class _Known(Struct, frozen=True):
    """A provider handled here: its variables, its address where none is set, and how its wire differs."""

    key: str
    url_name: str
    url: str
    needs_key: bool = True


_KNOWN: Mapping[str, _Known] = {
    "openai-chat": _Known("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openai": _Known("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "deepseek": _Known("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    "anthropic": _Known("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
SAYS_FINISH = frozenset({"openai-chat", "deepseek"})
"""pydantic-ai takes a missing finish reason for ``stop`` on these wires, and with it an answer that a proxy cut in the middle for whole."""


def route_to(provider: str, model: str, environ: Mapping[str, str]) -> Route:
    """Where requests of ``provider:model`` go.

    Raises:
        ModelError: its key is missing (code ``CONFIG``).
    """
    known = _KNOWN.get(provider)
    if known is None:
        name = provider.upper().replace("-", "_")
        return Route(provider, model, provider, f"{name}_BASE_URL", f"{name}_API_KEY")
    own = environ.get(known.url_name)
    key = environ.get(known.key, "")
    if not key and not own:
        raise ModelError(f"{provider}:{model} needs a key: set {known.key} before Jupyter starts, or choose another model.", code="CONFIG")
    return Route(provider, model, (own or known.url).rstrip("/"), known.url_name, known.key, key)


def dialect_of(route: Route) -> Dialect:
    """How this route's wire differs."""
    match route.provider:
        case "anthropic":
            return Dialect(route.provider, rich_results=True, plain_ids=True)
        case "deepseek":
            return Dialect(route.provider, bare_thinking=True)
        case "openai-chat":
            return Dialect(route.provider, merges_users=route.url != _KNOWN["openai-chat"].url)
        case _:
            return Dialect(route.provider)


async def open_model(route: Route, stack: AsyncExitStack) -> ProviderModel:
    """The model with a client of its own, for the running loop. ``stack`` closes the client.

    SDKs import and certificates load in a thread: together they can take seconds, and Stop must be heard meanwhile.

    Raises:
        pydantic_ai.exceptions.UserError, ImportError: a provider that pydantic-ai handles alone lacks its key or its package.
    """
    if route.provider not in _KNOWN:
        return await stack.enter_async_context(await asyncio.to_thread(infer_model, route.name))
    http = await asyncio.to_thread(create_async_httpx2_client)
    stack.push_async_callback(http.aclose)
    return await asyncio.to_thread(_anthropic if route.provider == "anthropic" else _openai, route, http)


def _openai(route: Route, http: Any) -> ProviderModel:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    from plan_mode_nb.models.untransformed import UntransformedOpenAI

    client = UntransformedOpenAI(base_url=route.url, api_key=route.key or NO_KEY, http_client=http, max_retries=0)
    if route.provider == "deepseek":
        return OpenAIChatModel(route.model, provider=DeepSeekProvider(openai_client=client))
    provider = OpenAIProvider(openai_client=client)
    if route.provider == "openai":
        return OpenAIResponsesModel(route.model, provider=provider)
    return OpenAIChatModel(route.model, provider=provider)


def _anthropic(route: Route, http: Any) -> ProviderModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=route.url, api_key=route.key or NO_KEY, http_client=http, max_retries=0)
    return AnthropicModel(route.model, provider=AnthropicProvider(anthropic_client=client))


def request_settings(model: ProviderModel, route: Route, settings: ModelSettings) -> dict[str, Any]:
    """Settings in pydantic-ai's names.

    ``store`` is off on OpenAI's Responses API: the conversation lives in the log, so its reasoning travels encrypted in the replay state
    and nothing has to be looked up there again. Anthropic caches only where markers stand; the others cache by themselves.

    Raises:
        ModelError: the model takes no temperature (code ``CONFIG``). pydantic-ai would drop it with a warning, which nobody reads and which
            would stand in a cell's output.
    """
    named: dict[str, Any] = {"request_timeout": settings.timeout, "timeout": settings.idle_timeout, "max_retries": 0}
    if settings.temperature is not None:
        if _takes_no_temperature(model.profile, settings):
            raise ModelError(f"{route.name} takes no temperature: unset it, or choose another model.", code="CONFIG")
        named["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        named["max_tokens"] = settings.max_tokens
    if settings.reasoning_effort is not None:
        effort = settings.reasoning_effort
        named["thinking"] = False if effort == "off" else effort
        if effort != "off" and route.provider in ("openai", "openai-chat") and not model.profile.get("supports_thinking", False):
            # An unknown model's profile says it cannot think and would drop the setting without a word; its server knows better.
            named["openai_reasoning_effort"] = effort
    if route.provider == "openai":
        named["openai_store"] = False
    if route.provider == "anthropic":
        named["cache"] = True
    return named


def _takes_no_temperature(profile: Mapping[str, Any], settings: ModelSettings) -> bool:
    """By pydantic-ai's own profiles: newer Anthropic models never do, OpenAI's reasoning models do not while they reason."""
    if profile.get("anthropic_disallows_sampling_settings", False):
        return True
    if not profile.get("openai_supports_reasoning", False):
        return False
    effort = settings.reasoning_effort
    reasons = profile.get("thinking_enabled_by_default", False) if effort is None else effort != "off"
    return bool(reasons or not profile.get("openai_supports_reasoning_effort_none", False))
