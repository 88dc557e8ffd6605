"""What is publicly known of a model: what it can read, and what its tokens cost. From genai-prices' own data; no network.

Prices are list prices of the day and appear in ``%session`` alone: nothing that is kept or compared may depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from plan_mode_nb.folds.usage import Usage

_OWN_SERVER: Mapping[str, str] = {
    "openai-chat": "OPENAI_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "deepseek": "DEEPSEEK_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
}
"""By provider, the variable that sends its requests elsewhere. What is asked there need not be the public model of that name."""


def window_for(provider: str, model: str, environ: Mapping[str, str]) -> int | None:
    """Tokens that a request may have; None: not known."""
    known = _find(provider, model, environ)
    window = None if known is None else known[1].context_window
    return window if isinstance(window, int) else None


def price_of(provider: str, model: str, usage: Usage, environ: Mapping[str, str]) -> Decimal | None:
    """The list price of these tokens in US dollars; None: not known."""
    known = _find(provider, model, environ)
    if known is None:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.uncached_input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    priced: Decimal = calc_price(counted, model, provider_id=known[0].id).total_price
    return priced


def _find(provider: str, model: str, environ: Mapping[str, str]) -> tuple[Any, Any] | None:
    """Provider and model as the list has them."""
    own = _OWN_SERVER.get(provider)
    if own is not None and environ.get(own):
        return None
    from genai_prices.data_snapshot import get_snapshot

    id = "openai" if provider in ("openai-chat", "openai-responses") else provider
    try:
        found: tuple[Any, Any] = get_snapshot().find_provider_model(model, None, id, None)
    except LookupError:
        return None
    return found
