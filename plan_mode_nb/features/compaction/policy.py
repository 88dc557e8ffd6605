"""When a conversation is compacted by itself: before a step that would read too much, and where a request was refused as too long.

Pressure is a function of the log and the threshold: what the last ``request/context`` says that the model can read, against the tokens of
the next request. An attempt that failed is not made again in its turn, and none is made for less than what would stay anyway: neither
can loop from step to step. Where the request for the summary is itself too long, half as much is summarized, and half of that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from plan_mode_nb.agent.compaction import Question, Span
from plan_mode_nb.features.compaction.span import half_span, head_span
from plan_mode_nb.features.compaction.summary import FRAME
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.tokens import MEASURE
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.session import Session

OVERFLOW: Final = "CONTEXT_OVERFLOW"
"""The code of a request that was refused as too long."""
MOST: Final = 6
"""Attempts that one step may take."""
STAYS: Final = 5
"""One part in so many of the threshold stays as it is: deepseek-harness's 16 % of the window at its threshold of 80 %."""


class CompactionPolicy(Struct, frozen=True):
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
        if span is not None:
            return span
        session = question.agent.session
        match question.trigger:
            case "asked":
                return head_span(session, 0, least=FRAME + 1)
            case "shorter" if question.tried is not None and question.error is not None and question.error.code == OVERFLOW:
                return half_span(session, question.tried, least=FRAME + 1)
            case "overflow" if policy.at and _may_go_on(session.events):
                return head_span(session, 0, least=FRAME + 1)
            case "pressure" if policy.at:
                return _at_pressure(session, policy.at)
            case _:
                return None

    return decide


def _at_pressure(session: Session, at: float) -> Span | None:
    window = session.fold(CONTEXT).window
    if not window:
        return None
    threshold = int(window * at)
    measure = session.fold(MEASURE)
    if measure.total < threshold or any(_failures(session.events, "turn/start")[-1:]):
        return None
    # Where a provider counts more than the estimate, the estimate of what stays is less in the same measure.
    stays = threshold // STAYS * measure.estimated // measure.total
    return head_span(session, stays, least=stays)


def _may_go_on(events: Sequence[Event]) -> bool:
    """Whether an open step whose request was too long may be helped (again)."""
    before = _failures(events, "step/start")
    return len(before) < MOST and not any(before[-1:])


def _failures(events: Sequence[Event], since: str) -> list[bool]:
    """Of each attempt since the last event of a type, whether it failed, in order."""
    found: list[bool] = []
    for event in reversed(events):
        if event.type == "compaction/end":
            found.append(event.data.get("error") is not None)
        elif event.type == since:
            break
    return found[::-1]
