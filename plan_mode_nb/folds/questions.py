"""Every question that was put before a person and what became of it: the audit, and what replay reads."""

from __future__ import annotations

import re
from typing import Any, Final, TypedDict

from msgspec import Struct, field
from msgspec.structs import replace

from plan_mode_nb.folds.plan import review_of
from plan_mode_nb.folds.view import View
from plan_mode_nb.log.events import Event

TITLE_LENGTH: Final = 120
_HEADING = re.compile(r"\ufeff?\s*#[ \t]+(?P<title>.*?)(?:[ \t]+#+)?[ \t]*(?:[\r\n]|$)")


class Asked(Struct, frozen=True):
    """One ``question/asked``. ``answer``: the data of its ``question/answered``, None while there is none."""

    seq: int
    request_id: str
    call_id: str | None
    questions: list[dict[str, Any]]
    answer: dict[str, Any] | None = None


class Questions(Struct, frozen=True):
    """``settled``: answered, or over without an answer (``answer`` None: the process died; unresolved for good), in the order settled.

    ``open``: those that somebody could still answer, in the order asked.
    """

    settled: View[Asked]
    open: tuple[Asked, ...] = ()


class OpenReview(TypedDict):
    """A plan that waits for its review."""

    requestId: str
    callId: str | None
    title: str


class _Questions(Struct):
    settled: list[Asked] = field(default_factory=list)
    open: dict[str, Asked] = field(default_factory=dict)
    turn_seq: int | None = None


class _QuestionsFold:
    types: Final = frozenset({"question/asked", "question/answered", "tool/result", "turn/start", "turn/end"})

    def start(self) -> _Questions:
        """None asked."""
        return _Questions()

    def step(self, state: _Questions, event: Event) -> _Questions:
        """The state after one more event."""
        data = event.data
        match event.type:
            case "question/asked":
                state.open[data["requestId"]] = Asked(event.seq, data["requestId"], data.get("callId"), data["questions"])
            case "question/answered" if data["requestId"] in state.open:
                state.settled.append(replace(state.open.pop(data["requestId"]), answer=data))
            case "tool/result" if state.open:
                call = data["message"]["source"]["callId"]
                _close(state, [each for each in state.open.values() if each.call_id == call])
            case "turn/start":
                state.turn_seq = event.seq
            case "turn/end" if state.turn_seq is not None:
                _close(state, [each for each in state.open.values() if each.seq > state.turn_seq])
                state.turn_seq = None
        return state


def _close(state: _Questions, over: list[Asked]) -> None:
    for asked in over:
        state.settled.append(state.open.pop(asked.request_id))


class QuestionsFold(_QuestionsFold):
    """Events -> :class:`Questions`. A question is over when it is answered, its call has a result, or the turn it was asked in ends."""

    def value(self, state: _Questions) -> Questions:
        """The questions now."""
        return Questions(View(state.settled), tuple(state.open.values()))


class OpenReviewsFold(_QuestionsFold):
    """Events -> the plan reviews that still wait."""

    def value(self, state: _Questions) -> list[OpenReview]:
        """The reviews, in the order asked."""
        waiting = [(asked, review_of({"questions": asked.questions})) for asked in state.open.values()]
        return [
            OpenReview(requestId=asked.request_id, callId=asked.call_id, title=plan_title(review["detail"]))
            for asked, review in waiting
            if review is not None
        ]


def plan_title(plan: str, limit: int = TITLE_LENGTH) -> str:
    """The text of an accepted plan's heading, closing hashes removed, at most ``limit`` code points. Empty for what is no such plan."""
    heading = _HEADING.match(plan)
    title = heading["title"].strip() if heading else ""
    return title if len(title) <= limit else title[: limit - 1] + "…"


QUESTIONS: Final = QuestionsFold()
OPEN_REVIEWS: Final = OpenReviewsFold()
