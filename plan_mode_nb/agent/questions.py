"""Questions to the person: one first-in queue for plan reviews and ``ask_user_question`` alike, and the audit of who answered.

The seam only carries and records. What an answer means is decided by who asked, from labels; nothing parses decisions out of text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, get_args

import msgspec
from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.presenting import Fault, presented
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.vocabulary import draft

QuestionOutcome = Literal["answered", "dismissed", "cancelled", "unavailable"]
Answerer = Literal["person", "replay", "policy"]


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    """One choice."""

    label: str
    description: str | None = None


class Question(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """``detail`` is shown whole; ``intent`` (such as ``{"kind": "plan-review", "approve": label}``) changes presentation only."""

    id: str
    question: str
    options: tuple[Option, ...] = ()
    header: str | None = None
    detail: str | None = None
    multi_select: bool | None = None
    intent: dict[str, str] | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Labels exactly as offered, and the person's own words if any, verbatim."""

    id: str
    selected: tuple[str, ...] = ()
    custom: str | None = None


class QuestionRequest(Struct, frozen=True):
    """What a provider presents. ``session`` and ``call_id`` say whose it is."""

    request_id: str
    agent: Agent
    questions: tuple[Question, ...]
    call_id: str | None


class Reply(Struct, frozen=True):
    """How a request ended. ``reason``: one sentence where there is no answer."""

    outcome: QuestionOutcome
    answers: tuple[Answer, ...] = ()
    by: Answerer = "person"
    reason: str = ""


class QuestionProvider(Protocol):
    """Whoever can reach the person. It never decides: it presents and returns what was chosen."""

    async def ask(self, request: QuestionRequest) -> Reply:
        """Present and wait, without a time limit. Cancelled when the question is withdrawn: close what is shown."""


class NobodyToAsk:
    """The null provider: fails at once with the way out, never hangs, never approves."""

    async def ask(self, request: QuestionRequest) -> Reply:
        """Unavailable, at once."""
        return Reply("unavailable", by="policy", reason="nobody is here to answer; run this cell in a live notebook, or replay a recording")


_FAULTS: Final[dict[Fault, Reply]] = {
    "failed": Reply("unavailable", by="policy", reason="the question could not be shown; present it again"),
    "junk": Reply("unavailable", by="policy", reason="the answer could not be understood; present it again"),
    "closed": Reply("cancelled", by="policy", reason="the question was closed before it was answered; present it again"),
}


class Asked(Struct, frozen=True):
    """A reply, and the ``question/answered`` event that the asker commits together with what follows from it."""

    request_id: str
    reply: Reply
    answered: Draft


class Questions:
    """The queue. One request is with the provider at a time; the others wait in the order they came."""

    def __init__(self, new_id: Callable[[], str], redact: Callable[[str], str] = str) -> None:
        """``redact``: what takes secrets out of the person's words before they are logged."""
        self._new_id = new_id
        self._redact = redact
        self._provider: QuestionProvider = NobodyToAsk()
        self._turnstile = asyncio.Lock()

    def provide(self, provider: QuestionProvider) -> Undo:
        """Put a provider in place; the undo brings back the one before."""
        before, self._provider = self._provider, provider

        def undo() -> None:
            if self._provider is provider:
                self._provider = before

        return undo

    async def ask(
        self,
        agent: Agent,
        questions: tuple[Question, ...],
        *,
        call_id: str | None = None,
        withdrawn: asyncio.Future[Reply] | None = None,
    ) -> Asked:
        """Log the question, present it, and return how it ended. ``withdrawn``: resolves to end it from elsewhere with that reply.

        The asker must commit ``Asked.answered``. When the asking task is cancelled, it is committed here as ``cancelled`` by the person.
        """
        async with self._turnstile:
            request = QuestionRequest(self._new_id(), agent, questions, call_id)
            agent.session.append(_asked(request))
            try:
                reply = await self._present(request, withdrawn)
            except asyncio.CancelledError:
                agent.session.append(self._answered(request.request_id, Reply("cancelled")))
                raise
            return Asked(request.request_id, reply, self._answered(request.request_id, reply))

    async def _present(self, request: QuestionRequest, withdrawn: asyncio.Future[Reply] | None) -> Reply:
        provider = self._provider
        what = f"question {request.request_id}"
        reply = await presented(lambda: provider.ask(request), _is_reply, what=what, withdrawn=withdrawn)
        return reply if isinstance(reply, Reply) else _FAULTS[reply]

    def _answered(self, request_id: str, reply: Reply) -> Draft:
        data: dict[str, Any] = {"requestId": request_id, "outcome": reply.outcome, "by": reply.by}
        if reply.outcome == "answered":
            data["answers"] = [self._answer(answer) for answer in reply.answers]
        return draft("question/answered", data)

    def _answer(self, answer: Answer) -> dict[str, Any]:
        custom = {} if answer.custom is None else {"custom": self._redact(answer.custom)}
        return {"id": answer.id, "selected": list(answer.selected), **custom}


def _is_reply(value: object) -> bool:
    """Whether a provider's return value is a reply through and through: annotations do not bind a third party's provider."""
    return (
        isinstance(value, Reply)
        and value.outcome in get_args(QuestionOutcome)
        and value.by in get_args(Answerer)
        and isinstance(value.reason, str)
        and isinstance(value.answers, tuple)
        and all(_is_answer(answer) for answer in value.answers)
    )


def _is_answer(value: object) -> bool:
    return (
        isinstance(value, Answer)
        and isinstance(value.id, str)
        and isinstance(value.selected, tuple)
        and all(isinstance(label, str) for label in value.selected)
        and (value.custom is None or isinstance(value.custom, str))
    )


def _asked(request: QuestionRequest) -> Draft:
    data: dict[str, Any] = {
        "requestId": request.request_id,
        "questions": [{"options": [], **_json(question)} for question in request.questions],
    }
    return draft("question/asked", data if request.call_id is None else {**data, "callId": request.call_id})


def _json(value: Question) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return built
