"""Whoever presents a question or an approval may raise, answer junk or be cancelled: it ends its own request only."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from asking import ASK, Provider, answered, commit

from plan_mode_nb.agent.approval import Approvals, Decided
from plan_mode_nb.agent.questions import Answer, QuestionRequest, Reply
from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.workbench import Workbench

JUNK: dict[str, Any] = {
    "nothing": None,
    "text": "Approve",
    "true": True,
    "object": {"outcome": "answered"},
    "outcome": Reply("yes"),  # type: ignore[arg-type]
    "by": Reply("answered", by="admin"),  # type: ignore[arg-type]
    "answers none": Reply("answered", None),  # type: ignore[arg-type]
    "answers list": Reply("answered", [Answer("q", ("A",))]),  # type: ignore[arg-type]
    "answer object": Reply("answered", ({"id": "q", "selected": ["A"]},)),  # type: ignore[arg-type]
    "selected text": Reply("answered", (Answer("q", "A"),)),  # type: ignore[arg-type]
    "selected numbers": Reply("answered", (Answer("q", (1,)),)),  # type: ignore[arg-type]
    "custom number": Reply("answered", (Answer("q", ("A",), 1),)),  # type: ignore[arg-type]
    "reason": Reply("dismissed", reason=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("junk", JUNK)
def test_a_provider_that_answers_junk_is_unavailable_and_the_question_is_answered_so(junk: str, caplog: pytest.LogCaptureFixture) -> None:
    """Never read by truthiness; the fault is logged once with the request it belonged to."""

    async def provide(request: QuestionRequest) -> Any:
        return JUNK[junk]

    async def main() -> None:
        bench = Workbench()
        bench.seams.questions.provide(Provider(provide))
        reply = await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,)))
        assert (reply.outcome, reply.by, reply.reason) == ("unavailable", "policy", "the answer could not be understood; present it again")
        assert bench.events("question/answered")[0].data == {"requestId": "id-1", "outcome": "unavailable", "by": "policy"}

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert len(caplog.records) == 1
    assert caplog.records[0].message.startswith("presenting question id-1 gave ")


def _raises(request: QuestionRequest) -> Any:
    raise RuntimeError("no display")


async def _fails(request: QuestionRequest) -> Any:
    await asyncio.sleep(0)
    raise RuntimeError("no display")


@pytest.mark.parametrize("provide", [_raises, _fails, lambda request: 7], ids=["at once", "later", "not awaitable"])
def test_a_provider_that_fails_is_unavailable_and_the_next_question_is_asked(provide: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A fault ends its own question only; it is logged once."""

    async def fine(request: QuestionRequest) -> Reply:
        return answered("A")

    async def main() -> None:
        bench = Workbench()
        undo = bench.seams.questions.provide(Provider(provide))
        reply = await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,)))
        assert (reply.outcome, reply.reason) == ("unavailable", "the question could not be shown; present it again")
        undo()
        bench.seams.questions.provide(Provider(fine))
        assert await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,))) == answered("A")

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert [record.message for record in caplog.records] == ["presenting question id-1 failed"]


def test_a_provider_that_is_cancelled_by_itself_closes_its_question_and_stops_nobody() -> None:
    """A widget that went away is not the person pressing Stop."""

    async def provide(request: QuestionRequest) -> Any:
        raise asyncio.CancelledError

    async def main() -> None:
        bench = Workbench()
        bench.seams.questions.provide(Provider(provide))
        reply = await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,)))
        assert (reply.outcome, reply.by) == ("cancelled", "policy")
        assert reply.reason == "the question was closed before it was answered; present it again"

    asyncio.run(main())


async def _junk(request: Any) -> Any:
    return True


async def _closed(request: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize("provide", [_raises, _fails, _junk, _closed], ids=["raises", "fails", "junk", "closed"])
def test_an_approval_provider_that_fails_denies_and_both_sides_are_logged(provide: Any) -> None:
    """Everything but allowed-once denies; nobody is taken for having pressed Stop."""

    async def main() -> None:
        bench = in_a_turn()
        bench.seams.approvals.provide(Provider(provide))
        decided = await bench.seams.approvals.decide(bench.agent, "python", "x = 1", reason="unconfined", call_id="c")
        assert (decided.outcome, decided.by) == ("unavailable", "policy")
        asked, given = bench.events("approval/asked", "approval/decided")
        assert asked.data == {"id": "id-1", "toolName": "python", "reason": "unconfined", "callId": "c"}
        assert given.data == {"id": "id-1", "outcome": "unavailable", "by": "policy"}

    asyncio.run(main())


def test_a_stopped_approval_is_logged_as_cancelled() -> None:
    """The turn that is stopped while it waits closes the card and the record."""

    async def main() -> None:
        shown = asyncio.Event()

        async def provide(request: Any) -> Decided:
            shown.set()
            await asyncio.Event().wait()
            raise AssertionError

        bench, approvals = in_a_turn(), Approvals(lambda: "a")
        approvals.provide(Provider(provide))
        deciding = asyncio.ensure_future(approvals.decide(bench.agent, "python", "x", reason="r"))
        await asyncio.wait_for(shown.wait(), 60)
        deciding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await deciding
        assert bench.events("approval/decided")[0].data == {"id": "a", "outcome": "cancelled", "by": "person"}

    asyncio.run(main())


def test_an_approval_is_asked_for_inside_a_turn_only() -> None:
    """It belongs to a call; between turns the log refuses it, and nobody is asked."""

    async def main() -> None:
        bench, asked = Workbench(), []
        bench.seams.approvals.provide(Provider(lambda request: asked.append(request)))
        with pytest.raises(InvariantError, match="outside any turn"):
            await bench.seams.approvals.decide(bench.agent, "python", "x = 1", reason="unconfined")
        assert (asked, len(bench.session)) == ([], 0)

    asyncio.run(main())


def in_a_turn() -> Workbench:
    """An agent with an open turn."""
    bench = Workbench()
    bench.session.append(draft("turn/start", {"turn": 1}))
    return bench
