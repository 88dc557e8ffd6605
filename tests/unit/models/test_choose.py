"""Which model answers, and why; names and settings that cannot work are refused with what to write instead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from plan_mode_nb.agent.model import NoModel
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.models.choose import BY_KEY, PROVIDERS, choose, parse
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.settings import EFFORTS, ModelSettings, read_settings
from plan_mode_nb.testing.model_contract import chunks_of

KEYS = dict.fromkeys(BY_KEY, "sk-1")


def test_a_configured_name_wins_over_every_key() -> None:
    choice = choose("openai-chat:local", KEYS)
    assert (choice.name, choice.why) == ("openai-chat:local", "set by PlanAgent.model")
    assert dict(choice.model.config) == {"provider": "openai-chat", "model": "local"}


@pytest.mark.parametrize(
    ("environ", "name", "why"),
    [
        (KEYS, BY_KEY["DEEPSEEK_API_KEY"], "DEEPSEEK_API_KEY is set"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, BY_KEY["ANTHROPIC_API_KEY"], "ANTHROPIC_API_KEY is set"),
        ({"OPENAI_API_KEY": "k"}, BY_KEY["OPENAI_API_KEY"], "OPENAI_API_KEY is set"),
        ({"DEEPSEEK_API_KEY": "", "OPENAI_API_KEY": "k"}, BY_KEY["OPENAI_API_KEY"], "OPENAI_API_KEY is set"),
    ],
)
def test_without_a_name_the_first_key_chooses(environ: Mapping[str, str], name: str, why: str) -> None:
    choice = choose(None, environ)
    assert (choice.name, choice.why) == (name, why)
    assert isinstance(choice.model, PydanticAIModel)


@pytest.mark.parametrize("environ", [{"OPENAI_BASE_URL": "http://x"}, {"OPENAI_BASE_URL": "http://x", "OPENAI_API_KEY": "k"}])
def test_a_base_url_alone_asks_for_a_models_name(environ: Mapping[str, str]) -> None:
    """A key beside it belongs to that server, which need not know a model of OpenAI's."""
    choice = choose(None, environ)
    assert choice.name == "none"
    _, error = asyncio.run(chunks_of(choice.model))
    assert error is not None
    assert "openai-chat:NAME" in str(error)


def test_nothing_at_all_is_no_model_and_one_sentence_that_says_how() -> None:
    choice = choose(None, {})
    assert isinstance(choice.model, NoModel)
    _, error = asyncio.run(chunks_of(choice.model))
    assert error is not None
    assert error.code == "CONFIG"
    assert "%config PlanAgent.model = 'openai-chat:NAME'" in str(error)
    assert "DEEPSEEK_API_KEY" in str(error)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("gpt-6.1-sol", "'openai:gpt-6.1-sol'"),
        ("claude-sonnet-5-5", "'anthropic:claude-sonnet-5-5'"),
        ("qwen3", "'openai-chat:qwen3'"),
        ("openia:gpt", "did you mean 'openai:gpt'?"),
        ("antropic:claude", "did you mean 'anthropic:claude'?"),
        ("DeepSeek:chat", "did you mean 'deepseek:chat'?"),
        ("openai_chat:x", "did you mean 'openai-chat:x'?"),
        ("zzz:x", "known are openai-chat"),
        ("openai:", "names no model"),
    ],
)
def test_a_bad_name_is_refused_with_a_suggestion(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"PlanAgent\.model") as refused:
        choose(name, KEYS)
    assert words in str(refused.value)


def test_a_models_name_may_hold_colons() -> None:
    assert parse("ollama:qwen3:8b") == ("ollama", "qwen3:8b")


def test_a_recording_is_played_where_recordings_can_be_read() -> None:
    read: list[Path] = []

    def reader(path: Path) -> list[Any]:
        read.append(path)
        return []

    choice = choose("recording:demo/session.jsonl", KEYS, read_recording=reader)
    assert read == [Path("demo/session.jsonl")]
    assert choice.name == "recording:demo/session.jsonl"
    with pytest.raises(ConfigError, match="recordings cannot be played here"):
        choose("recording:demo/session.jsonl", KEYS)


def test_every_provider_named_here_is_one_of_pydantic_ais() -> None:
    """The names are listed here because asking pydantic-ai would import it."""
    from pydantic_ai.providers import infer_provider_class

    for provider in PROVIDERS:
        with contextlib.suppress(ImportError):  # known, but its package is not installed here
            assert infer_provider_class(provider)


def test_every_default_is_a_model_that_pydantic_ai_knows() -> None:
    from pydantic_ai.models import known_model_names

    assert set(BY_KEY.values()) <= set(known_model_names())


def test_settings_appear_in_the_header_under_deepseek_harness_names() -> None:
    settings = {"temperature": 0, "max_tokens": 100, "reasoning_effort": "high", "timeout": 60}
    config = choose("openai-chat:m", {}, settings).model.config
    assert dict(config) == {"provider": "openai-chat", "model": "m", "temperature": 0.0, "maxTokens": 100, "reasoningEffort": "high"}


def test_what_is_not_set_does_not_appear() -> None:
    assert dict(choose("openai-chat:m", {}, {"temperature": None}).model.config) == {"provider": "openai-chat", "model": "m"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"temprature": 1}, "did you mean `temperature`?"),
        ({"maxTokens": 1}, "did you mean `max_tokens`?"),
        ({"seed": 1}, "the settings are"),
        ({"temperature": "hot"}, "`temperature` must be a number"),
        ({"temperature": True}, "`temperature` must be a number"),
        ({"temperature": float("nan")}, "`temperature` must be a number"),
        ({"temperature": 2.5}, "between 0 and 2"),
        ({"max_tokens": 0}, "`max_tokens` must be a whole number from 1"),
        ({"max_tokens": True}, "`max_tokens`"),
        ({"max_tokens": 1.5}, "`max_tokens`"),
        ({"reasoning_effort": "very"}, "must be one of off, minimal, low"),
        ({"timeout": 0}, "more than 0 seconds"),
        ({"idle_timeout": -1}, "more than 0 seconds"),
    ],
)
def test_a_bad_setting_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings(given)
    assert words in str(refused.value)


def test_efforts_are_pydantic_ais_and_off() -> None:
    from pydantic_ai.settings import ThinkingEffort

    assert set(EFFORTS) == {"off", *get_args(ThinkingEffort)}
    assert read_settings({"reasoning_effort": "off"}) == ModelSettings(reasoning_effort="off")
