"""The recorded people: they answer questions and approvals as the log says they did, marked ``by: "replay"``, and nobody else answers.

In order, by what was asked: a question that the recording does not ask next, or has no answer to, is unavailable. Nothing is ever approved
that was not approved in the recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from plan_mode_nb.agent.approval import ApprovalOutcome, ApprovalRequest, Decided
from plan_mode_nb.agent.questions import Answer, QuestionOutcome, QuestionRequest, Reply
from plan_mode_nb.log.events import Event


class RecordedAnswers:
    """A question provider. Each ``question/asked`` of the log answers one request, whether it was answered or left unresolved."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._asked: list[tuple[list[str], str]] = []
        self._answered: dict[str, dict[str, Any]] = {}
        self._next = 0
        for event in events:
            if event.type == "question/asked":
                self._asked.append(([question["id"] for question in event.data["questions"]], event.data["requestId"]))
            elif event.type == "question/answered":
                self._answered.setdefault(event.data["requestId"], event.data)

    @property
    def remaining(self) -> int:
        """Recorded questions that no request has taken yet."""
        return len(self._asked) - self._next

    async def ask(self, request: QuestionRequest) -> Reply:
        """The recorded reply, at once."""
        if not self.remaining:
            return _no_answer("the recording has no more answers; record this notebook again")
        ids, request_id = self._asked[self._next]
        asked = [question.id for question in request.questions]
        if asked != ids:
            return _no_answer(f"the recording answers {', '.join(ids)} next, not {', '.join(asked)}; record this notebook again")
        self._next += 1
        data = self._answered.get(request_id)
        if data is None:
            return _no_answer("nobody answered this question in the recording")
        outcome: QuestionOutcome = data["outcome"]
        answers = tuple(msgspec.convert(answer, Answer) for answer in data.get("answers", ()))
        return Reply(outcome, answers, by="replay", reason="" if outcome == "answered" else f"recorded as {outcome}")


class RecordedApprovals:
    """An approval provider. Each ``approval/asked`` of the log decides one request; one that nobody decided denies."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._asked: list[tuple[str, str]] = []
        self._decided: dict[str, str] = {}
        self._next = 0
        for event in events:
            if event.type == "approval/asked":
                self._asked.append((event.data["toolName"], event.data["id"]))
            elif event.type == "approval/decided":
                self._decided.setdefault(event.data["id"], event.data["outcome"])

    @property
    def remaining(self) -> int:
        """Recorded requests that no request has taken yet."""
        return len(self._asked) - self._next

    async def decide(self, request: ApprovalRequest) -> Decided:
        """The recorded decision, at once."""
        if not self.remaining or self._asked[self._next][0] != request.tool:
            return Decided("unavailable", by="replay")
        _, id = self._asked[self._next]
        self._next += 1
        recorded = self._decided.get(id)
        outcomes: tuple[ApprovalOutcome, ...] = get_args(ApprovalOutcome)
        return Decided(next((outcome for outcome in outcomes if outcome == recorded), "unavailable"), by="replay")


def _no_answer(reason: str) -> Reply:
    return Reply("unavailable", by="replay", reason=reason)
