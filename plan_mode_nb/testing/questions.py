"""A person who answers from a list, and what every question provider must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from plan_mode_nb.agent.questions import Answer, Option, Question, QuestionProvider, QuestionRequest, Reply
from plan_mode_nb.testing.workbench import Workbench

Answering: TypeAlias = Reply | Callable[[QuestionRequest], Reply | Awaitable[Reply]]
"""What a scripted person does with one request."""


def pick(*labels: str, custom: str | None = None) -> Callable[[QuestionRequest], Reply]:
    """Pick these labels of the first question, and say ``custom`` to it."""
    return lambda request: Reply("answered", (Answer(request.questions[0].id, labels, custom),))


def dismiss() -> Reply:
    """Close the question without an answer: the person wants to talk."""
    return Reply("dismissed")


class ScriptedAnswers:
    """Satisfies the QuestionProvider protocol. Each request gets the next answer; with none left it is unavailable.

    ``requests``: what was presented, in order. ``withdrawn``: those among them whose presenting was cancelled.
    """

    def __init__(self, *answers: Answering) -> None:
        self.requests: list[QuestionRequest] = []
        self.withdrawn: list[QuestionRequest] = []
        self._answers = list(answers)

    def add(self, *answers: Answering) -> None:
        """Put more answers at the end."""
        self._answers.extend(answers)

    async def ask(self, request: QuestionRequest) -> Reply:
        """The next answer."""
        self.requests.append(request)
        if not self._answers:
            return Reply("unavailable", by="policy", reason="the script has no more answers; add one")
        answer = self._answers.pop(0)
        if isinstance(answer, Reply):
            return answer
        try:
            reply = answer(request)
            return await reply if isinstance(reply, Awaitable) else reply
        except asyncio.CancelledError:
            self.withdrawn.append(request)
            raise


def a_question(id: str = "color", question: str = "Which color?", labels: Sequence[str] = ("Red", "Blue"), **more: Any) -> Question:
    """A question with options."""
    return Question(id, question, tuple(Option(label) for label in labels), **more)


def a_question_request(*questions: Question, request_id: str = "q-1", call_id: str | None = "c-1") -> QuestionRequest:
    """A request of a real agent, in memory."""
    return QuestionRequest(request_id, Workbench().agent, questions or (a_question(),), call_id)


class QuestionProviderContract:
    """Rules for every question provider. Subclass it and say how a person's acts are played; pytest collects the rules."""

    def person(self, *acts: Callable[[QuestionRequest], Reply] | Reply | None) -> AbstractContextManager[QuestionProvider]:
        """A provider whose person does these acts, one a request: answers as the reply says, or (None) never moves."""
        raise NotImplementedError

    def run(
        self,
        acts: Iterable[Callable[[QuestionRequest], Reply] | Reply | None],
        body: Callable[[QuestionProvider], Coroutine[Any, Any, None]],
    ) -> None:
        """Give the provider to ``body``, on a loop of its own, in bounded time."""

        async def within() -> None:
            with self.person(*acts) as provider:
                await asyncio.wait_for(body(provider), 10)

        asyncio.run(within())

    def test_a_picked_label_comes_back_exactly_as_offered(self) -> None:
        """Who asked decides by labels, so they must not change on the way."""

        async def body(provider: QuestionProvider) -> None:
            reply = await provider.ask(a_question_request())
            assert reply.outcome == "answered"
            assert reply.answers == (Answer("color", ("Blue",)),)

        self.run([pick("Blue")], body)

    def test_the_persons_own_words_come_back_verbatim(self) -> None:
        """Text is feedback, never an option: blanks and line ends stay."""

        async def body(provider: QuestionProvider) -> None:
            reply = await provider.ask(a_question_request())
            assert reply.answers == (Answer("color", (), "  Green,\nplease "),)

        self.run([pick(custom="  Green,\nplease ")], body)

    def test_a_dismissed_question_has_no_answers(self) -> None:
        """It is an outcome of its own, and no consent."""

        async def body(provider: QuestionProvider) -> None:
            reply = await provider.ask(a_question_request())
            assert (reply.outcome, reply.answers) == ("dismissed", ())

        self.run([dismiss()], body)

    def test_questions_are_answered_in_the_order_they_are_put(self) -> None:
        """One after the other, each by its own answer."""

        async def body(provider: QuestionProvider) -> None:
            first = await provider.ask(a_question_request(request_id="q-1"))
            second = await provider.ask(a_question_request(a_question("size", "Which size?", ("S", "L")), request_id="q-2"))
            assert first.answers == (Answer("color", ("Red",)),)
            assert second.answers == (Answer("size", ("L",)),)

        self.run([pick("Red"), pick("L")], body)

    def test_a_withdrawn_question_ends_at_once_and_the_next_one_is_answered(self) -> None:
        """Cancelling closes what is shown; a late answer to it must not answer the next question."""

        async def body(provider: QuestionProvider) -> None:
            asking = asyncio.ensure_future(provider.ask(a_question_request()))
            for _ in range(3):
                await asyncio.sleep(0)
            asking.cancel()
            done, _ = await asyncio.wait({asking}, timeout=5)
            assert asking in done
            assert asking.cancelled()
            reply = await provider.ask(a_question_request(a_question("size", "Which size?", ("S", "L")), request_id="q-2"))
            assert reply.answers == (Answer("size", ("S",)),)

        self.run([None, pick("S")], body)
