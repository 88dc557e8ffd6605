"""How full the model's context is: what it can read, and what the last request had it read.

deepseek-harness's measure: the prompt of the last request as its provider counted it, cached or not, without the answer. A surface that was
replaced since (compaction) makes it unknown until the next request.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from plan_mode_nb.folds.usage import usage_of
from plan_mode_nb.log.events import Event, Replace


class Context(Struct, frozen=True):
    """``said``: the last ``request/context``, None before the first. ``used``: tokens of the last prompt, None where not known."""

    said: dict[str, Any] | None = None
    used: int | None = None

    @property
    def window(self) -> int | None:
        """Tokens that a request may have, None where not known."""
        return None if self.said is None else self.said.get("contextWindow")


class ContextFold:
    """Events -> :class:`Context`."""

    types: Final = frozenset({"request/context", "assistant/chunk", "assistant/message", "user/message", "tool/result"})

    def start(self) -> Context:
        """Nothing known."""
        return Context()

    def step(self, state: Context, event: Event) -> Context:
        """The state after one more event."""
        if event.type == "request/context":
            return replace(state, said=event.data)
        if isinstance(event.surface_op, Replace):
            return replace(state, used=None)
        usage = usage_of(event)
        return state if usage is None else replace(state, used=usage.uncached_input + usage.cache_read + usage.cache_write)

    def value(self, state: Context) -> Context:
        """The state is the value."""
        return state


CONTEXT: Final = ContextFold()
