"""What ``%session`` says of money and of room, and what it keeps to itself."""

from __future__ import annotations

import pytest

from plan_mode_nb.folds.context import Context
from plan_mode_nb.folds.tokens import Measure
from plan_mode_nb.folds.usage import Usage
from plan_mode_nb.folds.view import View
from plan_mode_nb.hosts.kernel.status import _context, _price

NOTHING = Measure(0, 0, View([]), View([]))
SPENT = Usage(uncached_input=100_000, output=1_000, cache_read=50_000)


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "DEEPSEEK_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_what_was_spent_is_a_sum_at_list_prices_and_names_whom_it_leaves_out() -> None:
    known, unknown = ("anthropic", "claude-sonnet-4-5"), ("ollama", "qwen3:8b")
    (alone,) = _price({known: SPENT})
    (both,) = _price({known: SPENT, unknown: SPENT})
    assert alone.startswith("price        $0.")
    assert alone.endswith(" at list prices")
    assert both == f"{alone}, without ollama:qwen3:8b"


def test_without_a_known_price_nothing_is_said_of_it() -> None:
    assert _price({}) == _price({("local", "smollm2"): SPENT}) == []


def test_the_gauge_is_there_once_both_its_numbers_are_known() -> None:
    said = {"provider": "p", "model": "m", "contextWindow": 200_000}
    (line,) = _context(Context(said, 24_000), NOTHING, 0.8)
    assert line == "context      12 % of the context (24,000 of 200,000 tokens; compacted at 80 %)"
    assert _context(Context(said, 24_000), NOTHING, 0) == ["context      12 % of the context (24,000 of 200,000 tokens)"]
    for unknown in (Context(said, None), Context(None, 5), Context({"provider": "p", "model": "m"}, 5)):
        assert _context(unknown, NOTHING, 0.8) == []


def test_after_a_compaction_the_gauge_is_an_estimate_until_the_next_request_was_counted() -> None:
    said = {"provider": "p", "model": "m", "contextWindow": 1_000}
    compacted = Measure(120, 120, View([7]), View([120]))
    assert _context(Context(said, None), compacted, 0) == ["context      about 12 % of the context (120 of 1,000 tokens)"]
