"""Compactions of a recording: a conversation is compacted where it was, and what it was then asked to summarize is compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from plan_mode_nb.agent.compaction import Question, Span
from plan_mode_nb.folds.history import NODES
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.recording import RecordedAnswer, recorded_answers

_BOUNDS: Final = ("compaction/end", "turn/start", "turn/end", "session/end-seed")


class Recorded(Protocol):
    """A course, as far as this module reads it."""

    @property
    def recorded(self) -> Sequence[Event]:
        """The recording."""

    @property
    def next(self) -> Event | None:
        """The recorded event that comes next."""


def asks_for_summary(recorded: Sequence[Event], place: int) -> bool:
    """Whether a request that is made behind the first ``place`` events asks for a summary: a compaction is open there."""
    for seq in range(place - 1, -1, -1):
        if recorded[seq].type == "compaction/start":
            return True
        if recorded[seq].type in _BOUNDS:
            return False
    return False


def answers_of_command(recorded: Sequence[Event], run: int) -> list[RecordedAnswer]:
    """What a model answered to the command whose ``command/run`` is event ``run``."""
    id = recorded[run].data["commandId"]
    done = next((e.seq for e in recorded[run:] if e.type == "command/done" and e.data["commandId"] == id), run)
    return recorded_answers(recorded[run : done + 1])


def due_as_recorded(of: Callable[[Session], Recorded | None]) -> Callable[..., Awaitable[Span | None]]:
    """A listener for the chain of what is due, to be registered outermost. ``of``: the course that a session follows, None for none."""

    async def decide(question: Question, call_next: Callable[[Question], Awaitable[Span | None]]) -> Span | None:
        course = of(question.agent.session)
        if course is None:
            return await call_next(question)
        start = course.next
        if start is None or start.type != "compaction/start":
            return None
        return _span(question.agent.session, course.recorded, start.seq)

    return decide


def _span(session: Session, recorded: Sequence[Event], start: int) -> Span | None:
    """What the compaction replaced; of one that failed nothing is recorded, and nothing of what it asked for counts."""
    for event in recorded[start:]:
        if event.type == "compaction/summary":
            return Span(event.data["shadowedRange"]["start"], event.data["shadowedRange"]["end"])
        if event.type == "compaction/end":
            break
    nodes = session.fold(NODES)
    return Span(nodes[0], nodes[0]) if nodes else None
