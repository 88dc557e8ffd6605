"""What a log amounts to, as one JSON object: the stable machine interface that ``fold --json`` prints (product.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from plan_mode_nb.folds.header import HEADER
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.questions import OPEN_REVIEWS
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.events import Event, Header
from plan_mode_nb.log.fold import Fold, fold_values
from plan_mode_nb.log.session import Session

SUMMARY: Final[Sequence[Fold[Any, Any]]] = (PLAN, HISTORY, HEADER, TODOS, APPROVAL_POLICY, SANDBOX_MODE, TURNS, USAGE, OPEN_REVIEWS)
"""What a summary is made of: a session that is opened with these (``folds=``) has its summary at once."""


def fold_summary(header: Header, events: Sequence[Event]) -> dict[str, Any]:
    """The object of product.md and definitions.md; keys in their order. ``events`` may be any prefix; no closing events are invented."""
    return _summary(header, len(events), fold_values(SUMMARY, events))


def session_summary(session: Session) -> dict[str, Any]:
    """:func:`fold_summary` of a session as it stands."""
    return _summary(session.header, len(session), [session.fold(fold) for fold in SUMMARY])


def _summary(header: Header, length: int, values: Sequence[Any]) -> dict[str, Any]:
    plan, history, request, todos, policy, mode, turns, usage, reviews = values
    return {
        "session": header.id,
        "events": length,
        "plan": {"active": plan.active, "pending": plan.pending},
        "messages": list(history),
        "header": request,
        "todos": todos,
        "approval_policy": policy,
        "sandbox_mode": mode,
        "turns": turns.to_json(),
        "usage": usage.to_json(),
        "open_reviews": reviews,
    }
