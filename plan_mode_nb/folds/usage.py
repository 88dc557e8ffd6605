"""Tokens: what the provider reported, once a step.

deepseek-harness's rule: a ``usage`` chunk is an early sample that survives a failed request, the message's ``usage`` is the final one;
within one step the newest sample replaces the one before, and steps are summed. Reports of one step are adjacent, so one slot suffices.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from plan_mode_nb.log.events import Event


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts. ``uncached_input`` excludes what was read from or written to the provider's cache."""

    uncached_input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.uncached_input + other.uncached_input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    def to_json(self) -> dict[str, int]:
        """The keys of definitions.md."""
        return {
            "uncachedInputTokens": self.uncached_input,
            "outputTokens": self.output,
            "cacheReadTokens": self.cache_read,
            "cacheWriteTokens": self.cache_write,
        }


class _Totals(msgspec.Struct, frozen=True, gc=False):
    before: Usage = Usage()
    last: Usage = Usage()
    at: tuple[int, int] | None = None


def usage_of(event: Event) -> Usage | None:
    """The usage that a chunk, a message or a summary reports, None if none."""
    reported: dict[str, Any] | None = None
    if event.type == "assistant/chunk":
        chunk = event.data["chunk"]
        reported = chunk["usage"] if chunk["type"] == "usage" else None
    elif event.type in ("assistant/message", "compaction/summary"):
        reported = event.data.get("usage")
    if reported is None:
        return None
    return Usage(reported["inputTokens"], reported["outputTokens"], reported.get("cacheReadTokens", 0), reported.get("cacheWriteTokens", 0))


class UsageFold:
    """Events -> :class:`Usage` of the whole log."""

    types: Final = frozenset({"assistant/chunk", "assistant/message"})

    def start(self) -> _Totals:
        """Nothing used."""
        return _Totals()

    def step(self, state: _Totals, event: Event) -> _Totals:
        """Replace the last sample of the same step, or begin a new one."""
        usage = usage_of(event)
        if usage is None:
            return state
        at = (event.data["turn"], event.data["step"])
        if at == state.at:
            return _Totals(state.before, usage, at)
        return _Totals(state.before + state.last, usage, at)

    def value(self, state: _Totals) -> Usage:
        """The sum over all steps."""
        return state.before + state.last


USAGE: Final = UsageFold()
