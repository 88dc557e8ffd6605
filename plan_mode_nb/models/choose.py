"""Which model answers, and why: resolved once from configuration and environment, refused loudly where it cannot work."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from plan_mode_nb.agent.model import Model, NoModel
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.log.events import Event
from plan_mode_nb.models.following import FollowingModel
from plan_mode_nb.models.local import LocalModel
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.settings import read_settings

BY_KEY: Mapping[str, str] = {
    "DEEPSEEK_API_KEY": "deepseek:deepseek-flash",
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5",
    "OPENAI_API_KEY": "openai:gpt-6.1-sol",
}
"""The first of these keys that is set chooses its model, in this order."""

RECORDING_PREFIX = "recording"
LOCAL_PREFIX = "local"
PROVIDERS: Sequence[str] = (
    "openai-chat openai anthropic deepseek alibaba azure bedrock cerebras cohere fireworks github google google-cloud groq heroku"
    " huggingface litellm mistral moonshotai nebius ollama openai-responses openrouter ovhcloud sambanova together vercel vllm xai zai"
).split()
"""Names that may stand before the colon. The first four are handled here; the rest are passed to pydantic-ai, which reads their keys."""

NO_MODEL = (
    "no model is configured: set DEEPSEEK_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY before Jupyter starts, or choose one with"
    " %config PlanAgent.model = 'openai-chat:NAME' (OPENAI_BASE_URL names a local server)"
)
NEEDS_NAME = "OPENAI_BASE_URL is set, but not which of its models to use: choose one with %config PlanAgent.model = 'openai-chat:NAME'"


class Choice(Struct, frozen=True):
    """A model, its name as configured (``none`` where there is none), and why it was chosen, as a phrase (``DEEPSEEK_API_KEY is set``)."""

    model: Model
    name: str
    why: str


ReadRecording = Callable[[Path], Sequence[Event]]


def choose(
    name: str | None,
    environ: Mapping[str, str],
    settings: Mapping[str, Any] | None = None,
    *,
    read_recording: ReadRecording | None = None,
    setting: str = "PlanAgent.model",
) -> Choice:
    """Choose a model: ``name`` (the value of ``setting``) wins, then the first key of :data:`BY_KEY`; none of them is :class:`NoModel`.

    ``settings``: see :func:`~plan_mode_nb.models.settings.read_settings`. ``read_recording`` reads the session of ``recording:PATH``;
    without it recordings are refused. Nothing is imported, read from the network or connected here.

    Raises:
        ConfigError: the name or a setting cannot work; says what to write instead.
    """
    checked = read_settings(settings or {})
    if name is not None:
        provider, model = parse(name, setting)
        if provider == RECORDING_PREFIX:
            return Choice(_recorded(model, read_recording), name, f"set by {setting}")
        if provider == LOCAL_PREFIX:
            return Choice(LocalModel(model, checked), name, f"set by {setting}")
        return Choice(PydanticAIModel(provider, model, checked, environ), name, f"set by {setting}")
    for key, default in BY_KEY.items():
        # A key beside a base URL belongs to that server, which need not know any model of OpenAI's.
        if environ.get(key) and not (key == "OPENAI_API_KEY" and environ.get("OPENAI_BASE_URL")):
            provider, model = parse(default)
            return Choice(PydanticAIModel(provider, model, checked, environ), default, f"{key} is set")
    if environ.get("OPENAI_BASE_URL"):
        return Choice(NoModel(NEEDS_NAME), "none", "OPENAI_BASE_URL is set without a model's name")
    return Choice(NoModel(NO_MODEL), "none", "no key is set and PlanAgent.model is not configured")


def parse(name: str, setting: str = "PlanAgent.model") -> tuple[str, str]:
    """``provider:model`` -> its two parts. The model's part may hold colons itself (``ollama:qwen3:8b``).

    Raises:
        ConfigError: it is not of that form, or the provider is unknown; suggests the likeliest.
    """
    provider, colon, model = name.strip().partition(":")
    if not name.strip():
        raise ConfigError(f"{setting} is empty; name a model as 'provider:model', for example 'openai-chat:NAME'")
    known = (*PROVIDERS, LOCAL_PREFIX, RECORDING_PREFIX)
    if not colon:
        guess = f"'{_guess(provider)}:{provider}'" if _guess(provider) else "'openai-chat:" + provider + "'"
        raise ConfigError(f"{setting} {name!r} names no provider; write it as 'provider:model', for example {guess}")
    if provider not in known:
        close = difflib.get_close_matches(provider.lower(), known, 1)
        hint = f"did you mean '{close[0]}:{model}'?" if close else f"known are {', '.join(known)}"
        raise ConfigError(f"{setting} {name!r}: there is no provider {provider!r}; {hint}")
    if not model:
        raise ConfigError(f"{setting} {name!r} names no model; write its name after the colon")
    return provider, model


def _guess(model: str) -> str | None:
    """The provider that a bare model's name most likely belongs to."""
    families = {"gpt": "openai", "o1": "openai", "o3": "openai", "claude": "anthropic", "deepseek": "deepseek", "gemini": "google"}
    return next((provider for prefix, provider in families.items() if model.lower().startswith(prefix)), None)


def _recorded(path: str, read: ReadRecording | None) -> Model:
    if read is None:
        raise ConfigError("PlanAgent.model names a recording, but recordings cannot be played here; choose a live model instead")
    return FollowingModel(read(Path(path)))
