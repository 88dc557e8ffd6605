"""Live cards from what is asked: content in, one widget out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from plan_mode_nb.agent.approval import ApprovalRequest
from plan_mode_nb.agent.questions import Question, QuestionRequest
from plan_mode_nb.folds.plan import REVIEW_INTENT, PlanState
from plan_mode_nb.hosts.kernel.cards.acts import Act, CardKind
from plan_mode_nb.render.cards import plan_title
from plan_mode_nb.render.child_view import whose
from plan_mode_nb.render.diff import plan_diff_html
from plan_mode_nb.render.markdown import to_html

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.cards.card import Card

OnAct = Callable[[Act], object]


def controls(state: PlanState, on_act: OnAct) -> Card:
    """Stop, the plan toggle and steering, for as long as the turn runs."""
    return _card("controls", on_act=on_act, plan={"active": state.active, "pending": state.pending})


def question(request: QuestionRequest, previous: str | None, on_act: OnAct) -> Card:
    """A plan review as a review card, anything else as a question card."""
    asked = [_json(each) for each in request.questions]
    first = request.questions[0]
    if len(request.questions) == 1 and first.intent is not None and first.intent.get("kind") == REVIEW_INTENT and first.detail is not None:
        changes = "" if previous is None else plan_diff_html(previous, first.detail)
        return _card(
            "review",
            on_act=on_act,
            title=plan_title(first.detail),
            note=first.question,
            html=to_html(first.detail),
            markdown=first.detail,
            diff_html=changes,
            questions=asked,
        )
    title = first.header or "Question"
    of = f" of {whose(request.agent.name)}" if request.agent.parent is not None else ""
    return _card("question", on_act=on_act, title=f"{title}{of}", questions=asked)


def approval(request: ApprovalRequest, on_act: OnAct) -> Card:
    """What would run, exactly, and why it needs the person."""
    asks = f"{whose(request.agent.name)[0].upper()}{whose(request.agent.name)[1:]} asks: " if request.agent.parent is not None else ""
    return _card("approval", on_act=on_act, tool=request.tool, preview=request.preview, reason=f"{asks}{request.reason}")


def _card(kind: CardKind, **content: Any) -> Card:
    # The widget library takes longer to import than any module of ours, and the first turn is early enough for it.
    from plan_mode_nb.hosts.kernel.cards.card import Card

    return Card(kind, **content)


def _json(question: Question) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(question))
    return {"options": [], **built}
