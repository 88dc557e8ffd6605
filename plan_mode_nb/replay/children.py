"""Children in a replay: each led along its own recorded session, which its parent's recorded result names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn, Protocol

from plan_mode_nb.agent.agent import Agent, root_of
from plan_mode_nb.agent.delegation import Birth, child_of
from plan_mode_nb.agent.dispatch import INSIDE
from plan_mode_nb.agent.model import Chunk, Request
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.folds.descriptor import DESCRIPTOR
from plan_mode_nb.log.events import Event, SessionId
from plan_mode_nb.log.fold import fold_values
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.models.recording import RECORDING
from plan_mode_nb.replay.compare import Difference
from plan_mode_nb.replay.course import Course, Stop
from plan_mode_nb.replay.matching import Matching, RecordedSession
from plan_mode_nb.replay.played import PlayedModel


class Leading(Protocol):
    """The replay whose children these are."""

    @property
    def matching(self) -> Matching:
        """What was recorded."""

    def of(self, session: Session) -> Course | None:
        """The course that a session follows."""

    @property
    def stop(self) -> Stop:
        """How the turn of an agent that a person speaks to is stopped."""

    def follow(self, recorded: RecordedSession, session: Session, stop: Stop) -> Course:
        """A course for one more session. ``stop``: how its turn is stopped where the recorded one was."""


class LedChildren:
    """Satisfies Guide. ``courses``: recorded session id -> the course along it, for the children that there were."""

    def __init__(self, replay: Leading) -> None:
        self._replay = replay
        self.courses: dict[str, Course] = {}

    def session_id(self, parent: Agent, call_id: str) -> SessionId | None:
        """The recorded child's."""
        course = self._replay.of(parent.session)
        result = None if course is None else course.result_of(call_id)
        return None if course is None or result is None else self.recorded_for(course, result)

    def recorded_for(self, course: Course, result: Event) -> SessionId | None:
        """The session of the child that a recorded call had. The result of a call inside a call does not name it: there it is the next
        one that no result names, if its task is the call's."""
        if result.type != INSIDE:
            return child_of(result.data.get("meta"))
        named = {child_of(each.data.get("meta")) for each in course.recorded if each.type == "tool/result"}
        unnamed = [each for id, each in self._replay.matching.children.items() if id not in named and id not in self.courses and each.parts]
        ours = [each for each in unnamed if each.stored.header.parent_session == course.session.id]
        following = min(ours, key=lambda each: each.stored.header.created_at, default=None)
        return following.stored.header.id if following is not None and _is_for(following, result) else None

    def begin(self, birth: Birth) -> bool:
        """Lead the child along its session; play its turn where nothing says how its end would come about."""
        parent = self._replay.of(birth.parent.session)
        if parent is None or not isinstance(birth.child, LoopAgent):
            return False
        child = birth.child
        recorded = self._replay.matching.children.get(child.session.id)
        if recorded is None or not recorded.parts:
            parent.note(Difference(parent.place, f"session {child.session.id} of {_named(birth)}", "nothing: it is not there", "a turn"))
            child.models = lambda name: _NoModel()
            return False
        course = self._replay.follow(recorded, child.session, lambda led, cause: self._stop(led))
        course.sections = lambda: child.seams.sections.texts(PromptContext(child))
        course.runs_all, course.is_volatile = parent.runs_all, parent.is_volatile
        course.take_up(child, recorded.parts[0])
        # Its parent went on with what it had made, however it ended.
        course.is_rebuilt = parent.is_rebuilt
        self.courses[child.session.id] = course
        child.models = lambda name: PlayedModel(course)
        child.config = course.config(child.config)
        if course.is_played and course.difference is None:
            course.play()
            return True
        return False

    def end(self, birth: Birth) -> None:
        """Compare to the end of its session. What differs in a child differs in its parent's call."""
        parent, course = self._replay.of(birth.parent.session), self._replay.of(birth.child.session)
        if parent is None or course is None:
            return
        try:
            course.arrive()
        except ReplayError:
            assert course.difference is not None
            parent.adopt(course.difference, _named(birth))

    def close(self) -> None:
        """Follow nothing any more."""
        for course in self.courses.values():
            course.close()

    def _stop(self, child: LoopAgent) -> None:
        """A child was stopped with the agent that the person speaks to, in whose task it runs."""
        root = root_of(child)
        if isinstance(root, LoopAgent):
            course = self._replay.of(root.session)
            cause = None if course is None else course.cause
            self._replay.stop(root, cause or {"kind": "user"})


def _is_for(child: RecordedSession, result: Event) -> bool:
    """Whether a child's label is what the call of this result said its task is, in full or cut."""
    (made,) = fold_values((DESCRIPTOR,), child.events)
    given = result.data.get("arguments")
    said = (given.get("description") or given.get("task")) if isinstance(given, dict) else None
    return made is not None and isinstance(said, str) and " ".join(said.split()).startswith(made.label.removesuffix("…"))


class _NoModel:
    """Nobody is asked in a replay: a child that was not recorded has no answers."""

    config: Mapping[str, Any] = RECORDING

    async def context_window(self) -> int | None:
        """Unknown."""
        return None

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """None.

        Raises:
            ReplayError: always.
        """
        _refuse()
        yield


def _refuse() -> NoReturn:
    raise ReplayError("the recording has no session for this child agent; record this notebook again")


def _named(birth: Birth) -> str:
    return f"the child agent “{birth.label}”"
