"""``ask_user_question``: one or more questions to the person, through the queue and the cards that plan reviews use too.

An answer is told to the model as what was picked and said, verbatim. It is never consent to anything but what it says.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

import msgspec

from plan_mode_nb.agent.questions import Answer, Option, Question, Reply
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, Presentation, Tool, ToolCall, ToolError, error_result, text_result

ASK: Final = "ask_user_question"
MAX_QUESTIONS: Final = 8
MAX_OPTIONS: Final = 12
_TITLE_LIMIT: Final = 80


class OfferedOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One choice as the model sends it."""

    label: Annotated[str, msgspec.Meta(description="The choice in a few words. Put the one you recommend first.")]
    description: Annotated[str | None, msgspec.Meta(description="One sentence: what choosing it means.")] = None


class AskedQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question as the model sends it."""

    id: Annotated[str, msgspec.Meta(description="A name for this question; its answer carries it.")]
    question: Annotated[str, msgspec.Meta(description="The question, whole and plain.")]
    header: Annotated[str | None, msgspec.Meta(description="One or two words above it.")] = None
    options: Annotated[list[OfferedOption] | None, msgspec.Meta(description="What can be chosen; left out for a free answer.")] = None
    multi_select: Annotated[bool, msgspec.Meta(description="Whether several may be chosen.")] = False


def ask_tool(seams: Seams) -> Tool:
    """The tool for a registry."""

    async def ask(
        call: ToolCall,
        questions: Annotated[list[AskedQuestion], msgspec.Meta(description="All that you want to know now, at once.")],
    ) -> Outcome:
        """Ask the user when you need a decision, a preference or a fact that only they have; wait for the answer.

        They can always answer in their own words instead of a choice. Do not ask what you can find out, and do not ask for the approval
        of a plan here.
        """
        if call.agent is None:
            raise ToolError(f"{ASK} needs a calling agent: there is nobody to ask for", code="NO_AGENT")
        put = _checked(questions)
        asked = await seams.questions.ask(call.agent, put, call_id=call.call_id)
        return _outcome(put, asked.reply, asked.answered)

    return tool_from(ask, name=ASK, replay="derived", present_call=present_call)


def _outcome(put: tuple[Question, ...], reply: Reply, answered: Any) -> Outcome:
    match reply.outcome:
        case "answered":
            given = {answer.id: answer for answer in reply.answers}
            text = "\n\n".join(_said(question, given.get(question.id)) for question in put)
            return Outcome(text_result(text, value={"answers": [_value(answer) for answer in reply.answers]}), (answered,))
        case "dismissed":
            message = "the user put the question aside without an answer: do not ask it again now, say what you need and stop"
        case "cancelled":
            message = "the question was closed before it was answered; ask again if you still need to know"
        case "unavailable":
            message = f"the question reached nobody ({reply.reason or 'nobody is here to answer'}): go on with what you know, and say so"
    return Outcome(error_result(message, name="NotAnswered", code=f"QUESTION_{reply.outcome.upper()}"), (answered,))


def _said(question: Question, answer: Answer | None) -> str:
    """One question and its answer, as lines."""
    lines = [f"{question.id}: {question.question}"]
    if answer is None or not (answer.selected or (answer.custom or "").strip()):
        return "\n".join([*lines, "No answer."])
    if answer.selected:
        lines.append(f"Chosen: {', '.join(answer.selected)}")
    if answer.custom is not None and answer.custom.strip():
        lines.append(f"In their own words: {answer.custom}")
    return "\n".join(lines)


def _value(answer: Answer) -> dict[str, Any]:
    custom = {} if answer.custom is None else {"custom": answer.custom}
    return {"id": answer.id, "selected": list(answer.selected), **custom}


def _checked(questions: list[AskedQuestion]) -> tuple[Question, ...]:
    """The questions as the person is asked them."""
    if not questions:
        raise ToolError("there is no question; send at least one", code="BAD_ARGUMENTS")
    if len(questions) > MAX_QUESTIONS:
        raise ToolError(f"more than {MAX_QUESTIONS} questions at once; send the most important ones", code="BAD_ARGUMENTS")
    twice = [id for id, count in Counter(each.id for each in questions).items() if count > 1]
    if twice:
        raise ToolError(f"the id {twice[0]!r} is there more than once; give each question one of its own", code="BAD_ARGUMENTS")
    return tuple(_question(number, each) for number, each in enumerate(questions, start=1))


def _question(number: int, asked: AskedQuestion) -> Question:
    if not asked.id.strip() or not asked.question.strip():
        raise ToolError(f"question {number} has no id or no text; send both", code="BAD_ARGUMENTS")
    options = tuple(Option(option.label.strip(), option.description) for option in asked.options or ())
    labels = [option.label for option in options]
    if len(labels) > MAX_OPTIONS or not all(labels) or len(set(labels)) < len(labels):
        raise ToolError(
            f"the options of question {number} need labels that are not blank and not twice, at most {MAX_OPTIONS}", code="BAD_ARGUMENTS"
        )
    header = asked.header.strip() if asked.header is not None and asked.header.strip() else None
    several = True if asked.multi_select and options else None
    return Question(asked.id, asked.question, options, header=header, multi_select=several)


def present_call(arguments: str) -> Presentation | None:
    """The call as its questions, titled by the first; None where there are none."""
    try:
        sent = msgspec.json.decode(arguments, type=dict[str, list[AskedQuestion]]).get("questions")
    except msgspec.MsgspecError:
        return None
    if not sent:
        return None
    first = " ".join(sent[0].question.split())
    title = first if len(first) <= _TITLE_LIMIT else first[: _TITLE_LIMIT - 1] + "…"
    return Presentation(title, "\n".join(each.question for each in sent))


def install(seams: Seams) -> Undo:
    """Register the tool. Returns the undo.

    Raises:
        ValueError: the name is taken.
    """
    return seams.tools.register(ask_tool(seams))
