"""``ask_user_question``: what the person is asked, what the model is told, and that an answer is consent to nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plan_mode_nb.agent.questions import Answer, QuestionRequest, Reply
from plan_mode_nb.features import ask_user
from plan_mode_nb.folds.plan import PLAN, review_of
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.questions import ScriptedAnswers, dismiss, pick
from plan_mode_nb.testing.workbench import Workbench

COLOUR = {
    "id": "colour",
    "question": "Which colour?",
    "header": "Look",
    "options": [{"label": "Red"}, {"label": "Blue", "description": "calm"}],
}
PARTS = {"id": "parts", "question": "Which parts?", "options": [{"label": "Head"}, {"label": "Tail"}], "multi_select": True}
FREE = {"id": "name", "question": "What is it called?"}


def ask(*questions: dict[str, Any], answers: ScriptedAnswers | None, parent: Any = None) -> Workbench:
    """One turn in which the model asks."""
    bench = Workbench(
        call("ask_user_question", {"questions": list(questions)}),
        say("done"),
        install=[ask_user.install, lambda seams: seams.questions.provide(answers) if answers is not None else lambda: None],
        parent=parent,
    )
    asyncio.run(bench.ask("go"))
    return bench


def told(bench: Workbench) -> tuple[str, str | None]:
    (event,) = bench.events("tool/result")
    return event.data["message"]["content"][0]["content"][0]["text"], event.data.get("error", {}).get("code")


def answered(*answers: Answer) -> ScriptedAnswers:
    return ScriptedAnswers(Reply("answered", answers))


def test_a_batch_is_asked_at_once_and_each_answer_is_told_under_its_question() -> None:
    """Single, several, and the person's own words, verbatim."""
    answers = answered(Answer("colour", ("Blue",)), Answer("parts", ("Head", "Tail")), Answer("name", (), '  the "big" one\n'))
    bench = ask(COLOUR, PARTS, FREE, answers=answers)
    assert told(bench) == (
        "colour: Which colour?\nChosen: Blue\n\nparts: Which parts?\nChosen: Head, Tail\n\n"
        'name: What is it called?\nIn their own words:   the "big" one\n',
        None,
    )
    (request,) = answers.requests
    colour, parts, name = request.questions
    assert (colour.header, [option.label for option in colour.options], colour.multi_select) == ("Look", ["Red", "Blue"], None)
    assert parts.multi_select is True
    assert name.options == ()
    assert request.call_id == bench.events("tool/call")[0].data["callId"]


def test_words_beside_a_choice_are_told_too() -> None:
    """Both count."""
    bench = ask(COLOUR, answers=ScriptedAnswers(pick("Red", custom="but dark")))
    assert told(bench)[0] == "colour: Which colour?\nChosen: Red\nIn their own words: but dark"


def test_a_question_that_got_no_answer_says_so() -> None:
    """Nothing is made up for it; an answer to something that was not asked is not told."""
    bench = ask(COLOUR, PARTS, answers=answered(Answer("colour", ("Red",)), Answer("other", ("Yes",))))
    assert told(bench)[0] == "colour: Which colour?\nChosen: Red\n\nparts: Which parts?\nNo answer."


def test_the_answer_and_its_result_are_one_append() -> None:
    """Killed before it, the question is unresolved; killed after it, the model knows."""
    bench = ask(COLOUR, answers=ScriptedAnswers(pick("Red")))
    (written,) = [write for write in bench.sink.writes if any('"tool/result"' in line for line in write)]
    assert ['"question/answered"' in written[0], '"tool/result"' in written[1]] == [True, True]
    assert bench.events("question/answered")[0].data["by"] == "person"


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        (ScriptedAnswers(dismiss()), "QUESTION_DISMISSED", "put the question aside"),
        (ScriptedAnswers(Reply("cancelled")), "QUESTION_CANCELLED", "closed before it was answered"),
        (None, "QUESTION_UNAVAILABLE", "nobody is here to answer"),
        (ScriptedAnswers(), "QUESTION_UNAVAILABLE", "reached nobody"),
        (ScriptedAnswers(lambda request: "Yes"), "QUESTION_UNAVAILABLE", "could not be understood"),  # type: ignore[arg-type, return-value]
    ],
)
def test_without_an_answer_one_sentence_says_how_to_go_on(answers: ScriptedAnswers | None, code: str, said: str) -> None:
    """It is an error to the model, never a choice."""
    text, found = told(ask(COLOUR, answers=answers))
    assert found == code
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [COLOUR, {**FREE, "id": "colour"}],
        [{**FREE, "id": " "}],
        [{**FREE, "question": "\n"}],
        [{**COLOUR, "options": [{"label": "A"}, {"label": " A "}]}],
        [{**COLOUR, "options": [{"label": " "}]}],
        [{**COLOUR, "options": [{"label": str(number)} for number in range(13)]}],
        [{**FREE, "id": str(number)} for number in range(9)],
        [{**FREE, "intent": {"kind": "plan-review", "approve": "Yes"}}],
        [{**FREE, "detail": "# Plan"}],
    ],
)
def test_questions_that_cannot_be_put_are_sent_back(questions: list[dict[str, Any]]) -> None:
    """Nobody is asked. A question cannot dress up as a plan review either."""
    answers = ScriptedAnswers(pick("Red"))
    text, code = told(ask(*questions, answers=answers))
    assert code == "BAD_ARGUMENTS"
    assert text.startswith("Error: ")
    assert answers.requests == []


def test_an_answer_never_approves_a_plan() -> None:
    """Not with the words of a review, nor under its id: no fold takes it for one."""
    question = {"id": "plan-review", "question": "Approve?", "options": [{"label": "Approve"}, {"label": "Keep planning"}]}
    bench = Workbench(
        call("ask_user_question", {"questions": [question]}),
        say("done"),
        install=[
            lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
            ask_user.install,
            lambda seams: seams.questions.provide(ScriptedAnswers(pick("Approve"))),
        ],
    )
    bench.session.append(draft("plan/mode", {"active": True}))
    asyncio.run(bench.ask("go"))
    state = bench.session.fold(PLAN)
    assert (state.active, state.pending) == (True, None)
    assert review_of(bench.events("question/asked")[0].data) is None


def test_a_child_asks_in_the_same_queue() -> None:
    """The question is in its own log, and whoever shows it knows whose it is."""
    text, code = told(ask(COLOUR, answers=ScriptedAnswers(pick("Red")), parent=Workbench().agent))
    assert code is None
    assert "Chosen: Red" in text


def test_stopped_while_it_waits_the_question_is_closed_by_the_person() -> None:
    """The log says so, and the turn ends as stopped."""

    async def stopped() -> Workbench:
        asked = asyncio.Event()

        async def wait(request: QuestionRequest) -> Reply:
            asked.set()
            await asyncio.Event().wait()
            return dismiss()

        bench = Workbench(
            call("ask_user_question", {"questions": [COLOUR]}),
            install=[ask_user.install, lambda seams: seams.questions.provide(ScriptedAnswers(wait))],
        )
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(asked.wait(), 30)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 30)
        return bench

    bench = asyncio.run(stopped())
    assert bench.events("question/answered")[0].data["outcome"] == "cancelled"
    assert bench.events("turn/end")[0].data["reason"]["kind"] == "aborted"


def test_a_call_is_shown_by_its_first_question() -> None:
    """On one line."""
    shown = ask_user.present_call('{"questions": [{"id": "a", "question": "One\\n line?"}, {"id": "b", "question": "Two?"}]}')
    assert shown is not None
    assert (shown.title, shown.body) == ("One line?", "One\n line?\nTwo?")
    for arguments in ("{", "{}", '{"questions": []}', '{"questions": 3}'):
        assert ask_user.present_call(arguments) is None
