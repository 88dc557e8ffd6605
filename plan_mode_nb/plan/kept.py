"""Which plan stays in front of the model word for word when the older part of the conversation is replaced by a summary (compaction)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from plan_mode_nb.folds.plan import APPROVED_PLAN, EXIT_PLAN_MODE, PLAN, SUBMISSIONS, plan_argument
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.session import Session

APPROVED: Final = "The plan that the user approved last, word for word. How far it is carried out, the summary says."
SUBMITTED: Final = "The plan that was put before the user last, word for word. It was not approved."


def kept_plan(session: Session, staying: Sequence[Message]) -> str:
    """The last approved plan; while another one is being made in plan mode, the last submitted one behind it. Not what ``staying`` has."""
    approved, submissions = session.fold(APPROVED_PLAN), session.fold(SUBMISSIONS)
    submitted = submissions[-1].plan if submissions and session.fold(PLAN).active else None
    told = set(_plans(staying))
    texts = []
    if approved is not None and approved not in told:
        texts.append(f"{APPROVED}\n\n<approved-plan>\n{approved}\n</approved-plan>")
    if submitted is not None and submitted != approved and submitted not in told:
        texts.append(f"{SUBMITTED}\n\n<submitted-plan>\n{submitted}\n</submitted-plan>")
    return "\n\n".join(texts)


def _plans(messages: Sequence[Message]) -> Iterator[str]:
    """The plans that calls in these messages submit."""
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool-call" and block["name"] == EXIT_PLAN_MODE and (plan := plan_argument(block["arguments"])) is not None:
                yield plan
