"""What a log amounts to, as one JSON object: the stable machine interface that ``fold --json`` prints (product.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plan_mode_nb.folds.header import HEADER
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.questions import OPEN_REVIEWS
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.events import Event, Header
from plan_mode_nb.log.fold import fold_value


def fold_summary(header: Header, events: Sequence[Event]) -> dict[str, Any]:
    """The object of product.md and definitions.md; keys in their order. ``events`` may be any prefix; no closing events are invented."""
    plan = fold_value(PLAN, events)
    return {
        "session": header.id,
        "events": len(events),
        "plan": {"active": plan.active, "pending": plan.pending},
        "messages": list(fold_value(HISTORY, events)),
        "header": fold_value(HEADER, events),
        "todos": fold_value(TODOS, events),
        "approval_policy": fold_value(APPROVAL_POLICY, events),
        "sandbox_mode": fold_value(SANDBOX_MODE, events),
        "turns": fold_value(TURNS, events).to_json(),
        "usage": fold_value(USAGE, events).to_json(),
        "open_reviews": fold_value(OPEN_REVIEWS, events),
    }
