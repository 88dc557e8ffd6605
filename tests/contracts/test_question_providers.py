"""Every question provider passes the same rules: the scripted person, and the recorded one where a recording can hold the case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plan_mode_nb.agent.questions import QuestionProvider, QuestionRequest, Reply
from plan_mode_nb.testing.questions import QuestionProviderContract, ScriptedAnswers, a_question_request, dismiss, pick

Act = Callable[[QuestionRequest], Reply] | Reply | None


async def _never(request: QuestionRequest) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


class TestScriptedAnswers(QuestionProviderContract):
    @contextmanager
    def person(self, *acts: Act) -> Iterator[QuestionProvider]:
        yield ScriptedAnswers(*[_never if act is None else act for act in acts])

    def test_with_no_answer_left_it_is_unavailable(self) -> None:
        reply = asyncio.run(ScriptedAnswers().ask(a_question_request()))
        assert (reply.outcome, reply.by) == ("unavailable", "policy")
        assert reply.reason

    def test_what_was_presented_and_what_was_withdrawn_is_kept(self) -> None:
        async def body() -> None:
            person = ScriptedAnswers(_never, dismiss())
            first, second = a_question_request(request_id="q-1"), a_question_request(request_id="q-2")
            asking = asyncio.ensure_future(person.ask(first))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
            await person.ask(second)
            assert person.requests == [first, second]
            assert person.withdrawn == [first]

        asyncio.run(body())

    def test_more_answers_can_be_added(self) -> None:
        person = ScriptedAnswers()
        person.add(pick("Red"))
        assert asyncio.run(person.ask(a_question_request())).answers[0].selected == ("Red",)
