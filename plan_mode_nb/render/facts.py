"""Reading events for people: the few questions that cards, turn view and timeline all ask of an event's data.

Logs of other programs are read too, so a missing or odd value is answered with an empty one, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from plan_mode_nb.agent.dispatch import INTERRUPTED
from plan_mode_nb.log.closing import OUTCOME_UNKNOWN
from plan_mode_nb.render.cards import ApprovalState, QuestionState, ReviewState


class EventLike(Protocol):
    """What rendering reads of an event (``log.events.Event`` is one)."""

    @property
    def type(self) -> str:
        """Its name in the vocabulary."""

    @property
    def seq(self) -> int:
        """Its place in the log, from 0."""

    @property
    def time(self) -> int:
        """Unix milliseconds."""

    @property
    def data(self) -> Any:
        """Its payload."""


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def blocks(message: object) -> Sequence[Mapping[str, Any]]:
    """A message's content blocks, in order."""
    return items(mapping(message).get("content"))


def result_of(data: object) -> tuple[str, Sequence[Mapping[str, Any]], bool]:
    """A ``tool/result``: call id, content blocks, whether it is an error."""
    inner = blocks(mapping(data).get("message"))
    block = inner[0] if inner else {}
    return str(block.get("toolCallId", "")), items(block.get("content")), bool(block.get("isError"))


def own_figures(data: object) -> Sequence[Mapping[str, Any]]:
    """The image blocks of a result that are displayed from the log, because no code of the notebook's kernel displayed them.

    Of a ``tool/result``, or of the end of a call that another call made.
    """
    if mapping(mapping(data).get("meta")).get("figures") != "shown":
        return ()
    content = blocks(data) if "subCallId" in mapping(data) else result_of(data)[1]
    return [block for block in content if block.get("type") == "image"]


def inside_of(data: object) -> tuple[str, str, bool]:
    """Either side of a call that another call made: its id, its name, and whether this is the failed end of it."""
    said = mapping(data)
    return str(said.get("subCallId", "")), str(said.get("name", "")), bool(said.get("isError"))


def inside_arguments(data: object) -> str:
    """The arguments of such a call, as a model's own would stand in the log."""
    return json.dumps(mapping(data).get("arguments"), ensure_ascii=False)


def reviewed_plan(asked: object) -> str | None:
    """The plan of a ``question/asked`` that presents itself as a plan review, else None."""
    questions = items(mapping(asked).get("questions"))
    if len(questions) != 1:
        return None
    intent, detail = questions[0].get("intent"), questions[0].get("detail")
    kind = intent.get("kind") if isinstance(intent, Mapping) else intent
    return detail if kind == "plan-review" and isinstance(detail, str) else None


def custom_text(answered: object) -> str | None:
    """The words of an answer, verbatim; several answers' words on lines of their own."""
    words = [answer["custom"] for answer in items(mapping(answered).get("answers")) if isinstance(answer.get("custom"), str)]
    return "\n".join(words) if words else None


def plan_outcome(answered: object, result: Sequence[Mapping[str, Any]] | None, result_is_error: bool) -> ReviewState:
    """What became of a review. ``result``: the blocks of the exit tool's result, None while there is none.

    Only that result, which commits with the answer, says approved: words on a card never run ahead of the log. It also tells a person
    who left plan mode from one who stopped the turn: the answer is ``cancelled`` by the person both times.
    """
    if result is not None and not result_is_error:
        return "approved"
    said = mapping(answered)
    match said.get("outcome"):
        case "answered":
            return "waiting" if result is None else "keep planning"
        case "dismissed":
            return "dismissed"
        case "unavailable":
            return "unavailable"
        case "cancelled":
            is_left = said.get("by") == "person" and result is not None and not _is_interruption(result)
            return "left" if is_left else "interrupted"
        case _:
            return "waiting" if result is None else "interrupted"


def _is_interruption(result: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call has this result because its turn was stopped, or broke off before it had one."""
    texts = [block.get("text") for block in result]
    return texts in ([block["text"] for block in INTERRUPTED.content], [OUTCOME_UNKNOWN])


def question_outcome(answered: object) -> QuestionState:
    """``question/answered`` in a card's words; what is not answered yet waits."""
    match mapping(answered).get("outcome"):
        case "answered":
            return "answered"
        case "dismissed":
            return "dismissed"
        case "unavailable":
            return "unavailable"
        case None:
            return "waiting"
        case _:
            return "interrupted"


def approval_outcome(decided: object) -> ApprovalState:
    """``approval/decided`` in a card's words. An outcome this build does not know allowed nothing."""
    match mapping(decided).get("outcome"):
        case "allowed-once" | "allowed":
            return "allowed"
        case "rejected":
            return "rejected"
        case "unavailable":
            return "unavailable"
        case None:
            return "waiting"
        case _:
            return "interrupted"


def tokens(usage: object) -> tuple[int, int, int]:
    """Tokens in (cached ones included), out, and cached."""
    counts = mapping(usage)
    cached = _count(counts, "cacheReadTokens")
    return _count(counts, "inputTokens") + cached + _count(counts, "cacheWriteTokens"), _count(counts, "outputTokens"), cached


def _count(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
