"""What is publicly known of a model, and what is better left unsaid."""

from __future__ import annotations

from decimal import Decimal

import pytest

from plan_mode_nb.folds.usage import Usage
from plan_mode_nb.models.choose import BY_KEY, parse
from plan_mode_nb.models.prices import price_of, window_for

SPENT = Usage(uncached_input=1000, output=100, cache_read=500, cache_write=0)


@pytest.mark.parametrize("name", BY_KEY.values())
def test_window_and_price_of_every_default_model_are_known(name: str) -> None:
    provider, model = parse(name)
    window, price = window_for(provider, model, {}), price_of(provider, model, SPENT, {})
    assert window is not None
    assert window >= 100_000
    assert price is not None
    assert Decimal(0) < price < Decimal(1)


def test_tokens_from_the_cache_cost_less() -> None:
    cached, not_cached = Usage(0, 0, 1_000_000, 0), Usage(1_000_000, 0, 0, 0)
    for name in BY_KEY.values():
        cheap, dear = (price_of(*parse(name), spent, {}) for spent in (cached, not_cached))
        assert cheap is not None
        assert dear is not None
        assert cheap < dear


@pytest.mark.parametrize(
    ("provider", "model", "environ"),
    [
        ("openai-chat", "gpt-6.1-sol", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}),
        ("deepseek", "deepseek-flash", {"DEEPSEEK_BASE_URL": "http://127.0.0.1:1"}),
        ("openai", "a-model-that-nobody-knows", {}),
        ("scripted", "scripted", {}),
        ("recording", "recording", {}),
    ],
)
def test_of_a_server_of_ones_own_and_of_the_unknown_nothing_is_claimed(provider: str, model: str, environ: dict[str, str]) -> None:
    """A model's name says nothing about what another server runs under it, or what it costs there."""
    assert window_for(provider, model, environ) is None
    assert price_of(provider, model, SPENT, environ) is None
