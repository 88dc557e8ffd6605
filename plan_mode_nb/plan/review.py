"""The review of one plan: the question, and what its answer means. Pure but for the withdrawal, which listens to the session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.questions import Option, Question, Reply
from plan_mode_nb.folds.plan import PLAN, REVIEW_INTENT
from plan_mode_nb.log.events import Event

REVIEW_ID: Final = "plan-review"
APPROVE: Final = "Approve"
KEEP_PLANNING: Final = "Keep planning"
RELOADED: Final = "plan mode was reloaded while the plan was under review; present it again"


def review_question(plan: str) -> Question:
    """The one question: ``detail`` is the plan's exact text, the intent changes presentation only."""
    return Question(
        id=REVIEW_ID,
        header="Plan review",
        question="Approve this plan and leave plan mode?",
        detail=plan,
        options=(
            Option(APPROVE, "Leave plan mode; the plan is carried out from the next step."),
            Option(KEEP_PLANNING, "Stay in plan mode; your words go back to the agent."),
        ),
        intent={"kind": REVIEW_INTENT, "approve": APPROVE},
    )


class Approved(Struct, frozen=True):
    """The person approved the plan."""


class NotApproved(Struct, frozen=True):
    """Anything else. ``message``: what the model is told."""

    message: str


def read_reply(reply: Reply) -> Approved | NotApproved:
    """What a reply means. Only one answer item with exactly the label ``Approve`` and no text approves; text never does."""
    match reply.outcome:
        case "answered":
            return _read_answers(reply)
        case "dismissed":
            return NotApproved(
                "The user dismissed the plan review to talk instead; stay in plan mode, stop here, and wait for their message."
            )
        case "cancelled":
            return NotApproved(reply.reason or "The plan review was closed before the plan was approved; it is not approved.")
        case "unavailable":
            return NotApproved(
                f"The plan could not be reviewed: {reply.reason or 'nobody answered'}. It is not approved; stay in plan mode."
            )


def _read_answers(reply: Reply) -> Approved | NotApproved:
    items = [answer for answer in reply.answers if answer.id == REVIEW_ID]
    item = items[0] if len(items) == 1 and len(reply.answers) == 1 else None
    if item is not None and item.selected == (APPROVE,) and not item.custom:
        return Approved()
    words = "\n\n".join(answer.custom for answer in reply.answers if answer.custom and answer.custom.strip())
    if not words:
        return NotApproved("The user chose to keep planning; revise the plan and present it again.")
    return NotApproved(f"The user chose to keep planning; their feedback: {words}")


class Withdrawal:
    """Ends a review from elsewhere: when the person leaves plan mode meanwhile, or when the plugin is taken out."""

    def __init__(self, agent: Agent) -> None:
        self.future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._agent = agent
        self._undo: Callable[[], None] = agent.session.subscribe(self._on_events)

    def _on_events(self, batch: Sequence[Event]) -> None:
        state = self._agent.session.fold(PLAN)
        if state.pending is False or not state.active:
            self.end(Reply("cancelled", by="person", reason="The user left plan mode during the review; the plan is not approved."))

    def end(self, reply: Reply) -> None:
        """End the review with this reply, unless it has ended."""
        if not self.future.done():
            self.future.set_result(reply)

    def close(self) -> None:
        """Stop listening."""
        self._undo()
        self.future.cancel()
