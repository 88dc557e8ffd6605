"""A question, and a provider that does what a test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from plan_mode_nb.agent.questions import Answer, Asked, Option, Question, QuestionRequest, Reply
from plan_mode_nb.testing.workbench import Workbench

ASK = Question("q", "Which?", (Option("A", "first"), Option("B")))


class Provider:
    """Does what a test says for each request."""

    def __init__(self, answer: Callable[[QuestionRequest], Any]) -> None:
        self._answer = answer

    def ask(self, request: QuestionRequest) -> Any:
        return self._answer(request)

    def decide(self, request: Any) -> Any:
        return self._answer(request)


async def commit(bench: Workbench, asked: Awaitable[Asked]) -> Reply:
    done = await asked
    bench.session.append(done.answered)
    return done.reply


def answered(*selected: str, custom: str | None = None) -> Reply:
    return Reply("answered", (Answer("q", selected, custom),))
