"""When a conversation is compacted by itself: before a step that would read too much, and once where a request was refused as too long.

Pressure is a function of the log and the threshold: what the last ``request/context`` says that the model can read, against the tokens of
the next request. An attempt that failed is not made again in its turn, and none is made for less than what would stay anyway: neither
can loop from step to step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from plan_mode_nb.agent.compaction import Question, Span
from plan_mode_nb.features.compaction.span import head_span
from plan_mode_nb.features.compaction.summary import FRAME
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.tokens import MEASURE
from plan_mode_nb.log.events import Event

OVERFLOW: Final = "CONTEXT_OVERFLOW"
"""The code of a request that was refused as too long."""
STAYS: Final = 5
"""One part in so many of the threshold stays as it is: deepseek-harness's 16 % of the window at its threshold of 80 %."""


@dataclass(frozen=True)
class CompactionPolicy:
    """``at``: the share of what the model can read at which a conversation is compacted; 0: only when a person asks.

    ``models``: names, beside the deployment's own model, that may have answered last (plan mode's); it is the last one that summarizes.
    """

    at: float = 0.8
    models: tuple[str, ...] = ()


STANDARD: Final = CompactionPolicy()


def due(policy: CompactionPolicy) -> Callable[[Question, Callable[[Question], Awaitable[Span | None]]], Awaitable[Span | None]]:
    """The listener that answers by this policy where nobody decided before it."""

    async def decide(question: Question, call_next: Callable[[Question], Awaitable[Span | None]]) -> Span | None:
        span = await call_next(question)
        if span is not None or not policy.at:
            return span
        session = question.agent.session
        if question.trigger == "overflow":
            return None if _tried(session.events, "step/start") else head_span(session, 0, least=FRAME + 1)
        window = session.fold(CONTEXT).window
        if not window:
            return None
        threshold = int(window * policy.at)
        measure = session.fold(MEASURE)
        if measure.total < threshold or _tried(session.events, "turn/start", failed=True):
            return None
        # Where a provider counts more than the estimate, the estimate of what stays is less in the same measure.
        stays = threshold // STAYS * measure.estimated // measure.total
        return head_span(session, stays, least=stays)

    return decide


def _tried(events: Sequence[Event], since: str, *, failed: bool = False) -> bool:
    """Whether an attempt has ended since the last event of a type; ``failed``: one that failed."""
    for event in reversed(events):
        if event.type == "compaction/end" and (not failed or event.data.get("error") is not None):
            return True
        if event.type == since:
            return False
    return False
