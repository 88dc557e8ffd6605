"""How many tokens a conversation amounts to: what the provider counted last, and an estimate of what changed since.

The estimate is deepseek-harness's fixed one (four UTF-16 units a token, and a few for each block, role and envelope), so that the prices
in ``compaction/*`` events mean the same to both. It knows no tokenizer: text in other scripts is under-priced until a provider counts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from plan_mode_nb.folds.header import canonical
from plan_mode_nb.folds.history import message_of
from plan_mode_nb.folds.usage import Usage, usage_of
from plan_mode_nb.folds.view import View
from plan_mode_nb.log.codec import compact
from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.surface import span

_UNITS_PER_TOKEN: Final = 4
_BLOCK: Final = 4
_ROLE: Final = 4


def _price(text: str) -> int:
    """In UTF-16 units, as JavaScript counts, rounded up to whole tokens."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return -(-units // _UNITS_PER_TOKEN)


def estimate_blocks(blocks: Iterable[dict[str, Any]]) -> int:
    """Tokens of content blocks. One of a kind that has no text, such as an image, is priced by its JSON, which is far too little for it.

    What another writer left out of a user's message costs nothing.
    """
    tokens = 0
    for block in blocks:
        match block["type"]:
            case "text" | "reasoning":
                tokens += _price(str(block.get("text", "")))
            case "tool-call":
                tokens += _price(str(block.get("name", ""))) + _price(str(block.get("arguments", "")))
            case "tool-result":
                tokens += estimate_blocks(block.get("content") or ())
            case _:
                tokens += _price(compact(block))
        tokens += _BLOCK
    return tokens


def estimate_message(message: dict[str, Any]) -> int:
    """Tokens of one message of the history."""
    return estimate_blocks(message["content"]) + _ROLE


def estimate_header(header: dict[str, Any] | None) -> int:
    """Tokens of a request's system prompt and tools; ``header`` as logged, None before the first request."""
    kept: dict[str, Any] = {} if header is None else canonical(header)
    system, tools = kept.get("system"), kept.get("tools")
    return (_price(system) + _ROLE if system else 0) + (_price(compact(tools)) + _BLOCK if tools else 0)


class Measure(Struct, frozen=True):
    """``total``: tokens that the next request has as the log stands; ``estimated``: the same without what any provider counted.

    ``nodes``: the seqs on the surface; ``prices``: of each, estimated.
    """

    total: int
    estimated: int
    nodes: View[int]
    prices: View[int]


class _Meter(Struct):
    """``ahead``: what the total exceeds the estimate by, since the provider counted last. Lists only grow or are replaced whole."""

    header: int = 0
    surface: int = 0
    ahead: int = 0
    nodes: list[int] = field(default_factory=list)
    prices: list[int] = field(default_factory=list)


class MeasureFold:
    """Events -> :class:`Measure`. One more event costs the same however long the log is, but for a replacement.

    An answer's usage counts everything up to it, the answer included. Where a provider counted less than the estimate (a server that
    counts nothing, say), the estimate stays: what is added and taken away later is estimated, too (deepseek-harness's rule). What it
    counted beyond the estimate shrinks with the text when a span is replaced.
    """

    types: Final = frozenset({"request/header", "user/message", "assistant/message", "tool/result"})

    def start(self) -> _Meter:
        """Nothing said."""
        return _Meter()

    def step(self, state: _Meter, event: Event) -> _Meter:
        """The state after one more event."""
        if event.type == "request/header":
            state.header = estimate_header(event.data["header"])
            return state
        message = message_of(event)
        price = 0 if message is None else estimate_message(message)
        if isinstance(event.surface_op, Replace):
            first, last = span(state.nodes, event.surface_op, event.seq)
            before = state.header + state.surface
            state.surface += price - sum(state.prices[first : last + 1])
            state.ahead = state.ahead * (state.header + state.surface) // max(1, before)
            state.nodes = [*state.nodes[:first], event.seq, *state.nodes[last + 1 :]]
            state.prices = [*state.prices[:first], price, *state.prices[last + 1 :]]
            return state
        state.nodes.append(event.seq)
        state.prices.append(price)
        state.surface += price
        if event.type == "assistant/message" and (usage := usage_of(event)) is not None:
            state.ahead = max(0, _counted(usage) - state.header - state.surface)
        return state

    def value(self, state: _Meter) -> Measure:
        """The measure now; it stays valid while the log grows."""
        estimated = state.header + state.surface
        return Measure(estimated + state.ahead, estimated, View(state.nodes), View(state.prices))


def _counted(usage: Usage) -> int:
    return usage.uncached_input + usage.cache_read + usage.cache_write + usage.output


MEASURE: Final = MeasureFold()
