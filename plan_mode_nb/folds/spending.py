"""Tokens by the model that they were spent on, failed attempts included: what a price is made of.

Unlike :mod:`~plan_mode_nb.folds.usage`, which counts a step once as deepseek-harness does: an attempt that failed after its provider had
counted was paid for as well, and so was the summary of a compaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from plan_mode_nb.folds.usage import Usage, usage_of
from plan_mode_nb.log.events import Event

NOTHING: Final = Usage()
Route = tuple[str, str]
"""Provider and model."""


class _Spent(Struct, frozen=True):
    """``last``: the newest sample of the attempt that ``at`` names, not yet in ``before``."""

    before: Mapping[Route, Usage] = field(default_factory=dict)
    route: Route = ("", "")
    last: Usage = NOTHING
    at: tuple[int, int] | None = None

    def total(self) -> dict[Route, Usage]:
        """The sums, the open attempt's sample included."""
        if self.at is None:
            return dict(self.before)
        return {**self.before, self.route: self.before.get(self.route, NOTHING) + self.last}


class SpendingFold:
    """Events -> ``{(provider, model): Usage}``, in order of first use."""

    types: Final = frozenset({"request/header", "assistant/chunk", "assistant/message", "llm/retry-started", "compaction/summary"})

    def start(self) -> _Spent:
        """Nothing spent."""
        return _Spent()

    def step(self, state: _Spent, event: Event) -> _Spent:
        """The state after one more event."""
        if event.type == "request/header":
            config = event.data["header"]["config"]
            return _Spent(state.total(), (config["provider"], config["model"]))
        if event.type == "compaction/summary":
            return _summarized(state, event)
        if event.type == "llm/retry-started":
            return replace(state, before=state.total(), last=NOTHING, at=None)
        usage = usage_of(event)
        if usage is None:
            return state
        at = (event.data["turn"], event.data["step"])
        before = state.before if at == state.at else state.total()
        return replace(state, before=before, last=usage, at=at)

    def value(self, state: _Spent) -> Mapping[Route, Usage]:
        """The sums."""
        return state.total()


def _summarized(state: _Spent, event: Event) -> _Spent:
    """A summary was a request of its own, perhaps to another model; what its step had counted is not replaced by what comes after."""
    usage, route = usage_of(event), (event.data.get("provider", ""), event.data.get("model", ""))
    total = state.total()
    if usage is not None:
        total[route] = total.get(route, NOTHING) + usage
    return replace(state, before=total, last=NOTHING, at=None)


SPENDING: Final = SpendingFold()
