"""A turn's calls, and what they asked, as a view of the turn keeps them; each becomes a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from plan_mode_nb.render import facts
from plan_mode_nb.render.cards import QuestionState, approval_card, plan_card, question_card
from plan_mode_nb.render.child_view import ChildView
from plan_mode_nb.render.facts import mapping
from plan_mode_nb.render.html import Bundle
from plan_mode_nb.render.tool_card import ToolStatus, call_title, read_arguments, tool_card

TitleOf = Callable[[str, str], str | None]
"""(tool name, raw arguments) -> what the call's card is titled by, or None for the first words of its arguments."""


class Asked(Struct):
    """A question or an approval that was asked, the slot that shows it, and its answer's data.

    ``of``: the child that asks, in words; ``given``: what its call was given, which no card of its own shows.
    """

    data: Mapping[str, Any]
    slot: str
    answered: Mapping[str, Any] | None = None
    of: str = ""
    given: str = ""


class Call(Struct):
    """A call. ``asked``: what it asked the person; ``inner``: the calls that it made itself, in order; ``child``: the agent it made."""

    name: str
    arguments: str
    result: Sequence[Mapping[str, Any]] | None = None
    is_error: bool = False
    asked: Asked | None = None
    inner: list[Call] = field(default_factory=list)
    child: ChildView | None = None


def call_card(call: Call, title_of: TitleOf, *, ended: bool) -> Bundle:
    """The card of a call. ``ended``: its turn is over, so that nothing of it runs any more."""
    status: ToolStatus = "no result" if ended else "running"
    if call.result is not None:
        status = "failed" if call.is_error else "done"
    inner = [call_card(each, title_of, ended=ended) for each in call.inner]
    title, did = title_of(call.name, call.arguments), call.child.lines if call.child is not None else ()
    if call.child is not None and status == "running" and call.child.last:
        shown = call_title(read_arguments(call.arguments)) if title is None else title
        title = f"{shown} · {call.child.last}"
    return tool_card(call.name, call.arguments, call.result, status, title, inner, did)


def asked_card(asked: Asked, call: Call | None, *, ended: bool) -> Bundle:
    """The card of a question or review. ``call``: the call that asked, where it is known; its result says what the answer led to."""
    plan = facts.reviewed_plan(asked.data)
    if plan is not None:
        outcome = facts.plan_outcome(asked.answered, call.result if call is not None else None, call is not None and call.is_error)
        return plan_card(plan, "interrupted" if ended and outcome == "waiting" else outcome, facts.custom_text(asked.answered))
    said = facts.question_outcome(asked.answered)
    answers = facts.items(mapping(asked.answered).get("answers"))
    shown: QuestionState = "interrupted" if ended and said == "waiting" else said
    return question_card(facts.items(asked.data.get("questions")), answers, shown, asked.of)


def asked_approval_card(asked: Asked, *, ended: bool) -> Bundle:
    """What would run stands in the call's card just above, unless the call is a child's; here is why it asked."""
    said = facts.approval_outcome(asked.answered)
    tool, reason = str(asked.data.get("toolName", "")), str(asked.data.get("reason") or "")
    return approval_card(tool, reason, "interrupted" if ended and said == "waiting" else said, asked.of, asked.given)
