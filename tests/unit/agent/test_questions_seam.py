"""Questions: one at a time, first in first out, audited, withdrawn and stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asking import ASK, Provider, answered, commit

from plan_mode_nb.agent.questions import Option, Question, QuestionRequest, Questions, Reply
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.workbench import Workbench


def test_question_and_answer_are_logged_with_all_that_was_shown_and_chosen() -> None:
    """Labels exactly as offered, words verbatim, who answered; nothing else."""

    async def provide(request: QuestionRequest) -> Reply:
        return answered("B", custom="  but slowly ")

    async def main() -> None:
        bench = Workbench()
        bench.seams.questions.provide(Provider(provide))
        question = Question(
            "q", "Which?", (Option("A", "first"), Option("B")), header="H", detail="D\n", multi_select=True, intent={"kind": "x"}
        )
        reply = await commit(bench, bench.seams.questions.ask(bench.agent, (question, Question("p", "Why?")), call_id="c"))
        assert reply == answered("B", custom="  but slowly ")
        asked, given = bench.events()
        assert asked.data == {
            "requestId": "id-1",
            "questions": [
                {
                    "id": "q",
                    "question": "Which?",
                    "options": [{"label": "A", "description": "first"}, {"label": "B"}],
                    "header": "H",
                    "detail": "D\n",
                    "multiSelect": True,
                    "intent": {"kind": "x"},
                },
                {"options": [], "id": "p", "question": "Why?"},
            ],
            "callId": "c",
        }
        assert given.data == {
            "requestId": "id-1",
            "outcome": "answered",
            "by": "person",
            "answers": [{"id": "q", "selected": ["B"], "custom": "  but slowly "}],
        }
        assert asked.is_ignorable
        assert given.is_ignorable

    asyncio.run(main())


def test_nobody_to_ask_fails_at_once_with_the_way_out() -> None:
    """Never a hang, never an approval."""

    async def main() -> None:
        bench = Workbench()
        reply = await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,)))
        assert reply.outcome == "unavailable"
        assert reply.by == "policy"
        assert reply.reason == "nobody is here to answer; run this cell in a live notebook, or replay a recording"
        bench.session.append(draft("turn/start", {"turn": 1}))
        decided = await bench.seams.approvals.decide(bench.agent, "python", "1", reason="r")
        assert (decided.outcome, decided.by) == ("unavailable", "policy")

    asyncio.run(main())


def test_questions_are_with_the_provider_one_at_a_time_first_in_first_out_across_agents() -> None:
    """The second is not even logged as asked before the first is over."""

    async def main() -> None:
        shown: list[str] = []
        answers: list[asyncio.Future[Reply]] = []

        def provide(request: QuestionRequest) -> Any:
            shown.append(request.questions[0].id)
            answers.append(asyncio.get_running_loop().create_future())
            return answers[-1]

        bench = Workbench()
        other = Workbench(seams=bench.seams, name="other")
        bench.seams.questions.provide(Provider(provide))
        asks = [
            asyncio.ensure_future(commit(each, bench.seams.questions.ask(each.agent, (Question(name, "?"),))))
            for each, name in [(bench, "1"), (other, "2"), (bench, "3")]
        ]
        for number in range(3):
            while len(shown) <= number:
                await asyncio.sleep(0)
            assert shown == ["1", "2", "3"][: number + 1]
            assert len(bench.events("question/asked")) + len(other.events("question/asked")) == number + 1
            answers[number].set_result(answered("A"))
        await asyncio.gather(*asks)
        assert bench.types == ["question/asked", "question/answered"] * 2

    asyncio.run(main())


def test_when_the_asking_is_cancelled_the_card_is_closed_and_the_answer_is_logged_as_cancelled() -> None:
    """The provider has ended before the asker goes on; the queue is free again."""

    async def main() -> None:
        shown, closed = asyncio.Event(), list[bool]()

        async def provide(request: QuestionRequest) -> Reply:
            shown.set()
            try:
                await asyncio.Event().wait()
            finally:
                closed.append(True)
            raise AssertionError

        bench = Workbench()
        undo = bench.seams.questions.provide(Provider(provide))
        asking = asyncio.ensure_future(bench.seams.questions.ask(bench.agent, (ASK,)))
        await asyncio.wait_for(shown.wait(), 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert closed == [True]
        assert bench.events("question/answered")[0].data == {"requestId": "id-1", "outcome": "cancelled", "by": "person"}
        undo()
        assert (await bench.seams.questions.ask(bench.agent, (ASK,))).reply.outcome == "unavailable"

    asyncio.run(main())


def test_a_question_cancelled_while_it_waits_in_the_queue_was_never_asked() -> None:
    """Nothing of it is in the log, and the one in front is undisturbed."""

    async def main() -> None:
        shown, reply = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def provide(request: QuestionRequest) -> Any:
            shown.set()
            return await reply

        bench = Workbench()
        bench.seams.questions.provide(Provider(provide))
        first = asyncio.ensure_future(commit(bench, bench.seams.questions.ask(bench.agent, (ASK,))))
        await asyncio.wait_for(shown.wait(), 60)
        second = asyncio.ensure_future(bench.seams.questions.ask(bench.agent, (ASK,)))
        await asyncio.sleep(0)
        second.cancel()
        reply.set_result(answered("A"))
        assert await first == answered("A")
        with pytest.raises(asyncio.CancelledError):
            await second
        assert bench.types == ["question/asked", "question/answered"]

    asyncio.run(main())


@pytest.mark.parametrize("also_answered", [False, True])
def test_a_withdrawn_question_ends_with_the_withdrawals_reply_even_if_an_answer_came_at_the_same_time(also_answered: bool) -> None:
    """What ended it from elsewhere wins; the provider is closed."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        shown, answer, withdrawn = asyncio.Event(), loop.create_future(), loop.create_future()

        async def provide(request: QuestionRequest) -> Any:
            shown.set()
            return await answer

        bench = Workbench()
        bench.seams.questions.provide(Provider(provide))
        asking = asyncio.ensure_future(commit(bench, bench.seams.questions.ask(bench.agent, (ASK,), withdrawn=withdrawn)))
        await asyncio.wait_for(shown.wait(), 60)
        if also_answered:
            answer.set_result(answered("A"))
        withdrawn.set_result(Reply("cancelled", reason="left"))
        assert await asking == Reply("cancelled", reason="left")
        assert answer.cancelled() is not also_answered
        assert bench.events("question/answered")[0].data["outcome"] == "cancelled"

    asyncio.run(main())


def test_the_undo_of_a_provider_brings_back_the_one_before_and_a_late_undo_disturbs_nobody() -> None:
    """Providers are put in place and taken out like everything else."""

    async def a(request: QuestionRequest) -> Reply:
        return answered("A")

    async def b(request: QuestionRequest) -> Reply:
        return answered("B")

    async def main() -> None:
        bench = Workbench()
        questions = bench.seams.questions
        undo_a = questions.provide(Provider(a))
        undo_b = questions.provide(Provider(b))
        assert (await questions.ask(bench.agent, (ASK,))).reply == answered("B")
        undo_b()
        assert (await questions.ask(bench.agent, (ASK,))).reply == answered("A")
        undo_b()
        undo_a()
        assert (await questions.ask(bench.agent, (ASK,))).reply.outcome == "unavailable"

    asyncio.run(main())


def test_secrets_are_taken_out_of_the_persons_words_before_they_are_logged() -> None:
    """The asker still gets them as written; what follows is logged through the same redaction."""

    async def provide(request: QuestionRequest) -> Reply:
        return answered(custom="use hunter22")

    async def main() -> None:
        bench = Workbench()
        bench.seams.redactions.register("secret", lambda text: text.replace("hunter22", "[redacted:PW]"))
        bench.seams.questions.provide(Provider(provide))
        await commit(bench, bench.seams.questions.ask(bench.agent, (ASK,)))
        assert bench.events("question/answered")[0].data["answers"] == [{"id": "q", "selected": [], "custom": "use [redacted:PW]"}]

    asyncio.run(main())


def test_a_question_seam_works_without_redaction() -> None:
    """Alone, outside a composition, words are logged as written."""

    async def provide(request: QuestionRequest) -> Reply:
        return answered(custom=" x ")

    async def main() -> None:
        bench, questions = Workbench(), Questions(lambda: "r")
        questions.provide(Provider(provide))
        await commit(bench, questions.ask(bench.agent, (ASK,)))
        assert bench.events("question/answered")[0].data["answers"][0]["custom"] == " x "

    asyncio.run(main())
