"""One replay of one notebook: every session of it led along its recording, part by part, as its cells run.

The host says which cell asks and runs the turn; this says which recorded part comes next, and stands in for model, person and tools.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct

from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.log.events import Event, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig, TurnEnd
from plan_mode_nb.replay.children import LedChildren
from plan_mode_nb.replay.compacting import due_as_recorded
from plan_mode_nb.replay.compare import Comparison
from plan_mode_nb.replay.course import Course, Reopen, Stop, cancel
from plan_mode_nb.replay.matching import Matching, NotebookCell, Place, RecordedSession
from plan_mode_nb.replay.played import Otherwise, PlayedModel, PlayedPeople, PlayedTools, fed_before_step
from plan_mode_nb.replay.servers import recorded_servers


class Rules(Struct, frozen=True):
    """``folder``: where the notebook runs now. ``sanitize``: as in nbval's sanitize file.

    ``accepts_drift``: guidance and tool descriptions may differ. ``runs_all``: every tool runs again.
    ``approves``: recorded approvals count (False: the person is asked).
    ``feeds``: which commands from outside cells are fed, by name. ``plays``: which events may be taken over as recorded, by type.
    """

    folder: str = ""
    sanitize: Sequence[tuple[str, str]] = ()
    accepts_drift: bool = False
    runs_all: bool = False
    approves: bool = True
    feeds: Callable[[str], bool] = lambda command: True
    plays: Callable[[str], bool] = lambda type: True


class Replay:
    """Leads the conversations of a notebook along its recording, wherever its agents are. Belongs to one run of the notebook."""

    def __init__(
        self,
        matching: Matching,
        rules: Rules = Rules(),
        stop: Stop = cancel,
        places: Sequence[tuple[NotebookCell | None, Place]] | None = None,
    ) -> None:
        """``stop``: how a turn is stopped.

        ``places``: the recorded parts in the order in which cells do them, each with its cell where that is known; default: as matched.
        """
        self.matching, self.rules, self.stop = matching, rules, stop
        self.notes: list[str] = []
        """What was taken from the recording instead of being compared, one sentence each."""
        self._places: list[tuple[NotebookCell | None, Place]] = list(matching.places if places is None else places)
        self._next = 0
        self._courses: dict[int, Course] = {}
        self._bound: dict[str, Course] = {}
        self._born: set[str] = set()
        self._cell: NotebookCell | None = None
        self.children = LedChildren(self)

    # -- Courses

    def of(self, session: Session) -> Course | None:
        """The course that a session follows."""
        return self._courses.get(id(session))

    def had_child(self, course: Course, result: Event) -> bool:
        """Whether a recorded call, whose result this is, ran in a session of its own."""
        return self.children.recorded_for(course, result) is not None

    @property
    def courses(self) -> dict[str, Course]:
        """Recorded session id -> the course along it, for those that were reached."""
        return dict(self._bound)

    # -- installing

    def install(self, seams: Seams) -> Undo:
        """Stand between calls and tools, and before each step. The person is stood in for by :meth:`people`."""
        undos = [
            seams.tools.intercept(PlayedTools(self, seams, self._note)),
            seams.pre_step.register(fed_before_step(self), "innermost"),
            seams.delegation.lead(self.children),
            seams.servers.follow(recorded_servers(self.of)),
            seams.compaction.due.register(due_as_recorded(self.of), "outermost"),
        ]
        return undo_all(undos)

    def people(self, otherwise: Otherwise) -> PlayedPeople:
        """The recorded person. ``otherwise``: who answers for sessions that are not replayed."""
        return PlayedPeople(self, otherwise, approves=self.rules.approves)

    def born(self, name: str) -> SessionId | None:
        """The id for a new session of an agent: the recorded one's, so that a cell that names it finds it. None where nothing is recorded.

        Agent ``main`` had every session that no other name has, oldest first.
        """
        others = {id: each for each, id in self.matching.agents.items() if each != "main"}
        for id in self.matching.sessions:
            if id not in self._born and others.get(id, "main") == name:
                self._born.add(id)
                return SessionId(id)
        return None

    # -- one part

    @property
    def cell(self) -> NotebookCell | None:
        """The cell whose part runs, or ran last."""
        return self._cell

    def config(self, agent: LoopAgent, config: LoopConfig) -> LoopConfig:
        """A loop's configuration for the part that runs."""
        course = self.of(agent.session)
        return config if course is None else course.config(config)

    @property
    def is_over(self) -> bool:
        """Whether every recorded part has run."""
        return self._next >= len(self._places)

    @property
    def turns_left(self) -> int:
        """Recorded turns that have not run yet."""
        return sum(place.part.kind == "turn" for _, place in self._places[self._next :])

    @property
    def upcoming(self) -> tuple[NotebookCell | None, Place] | None:
        """The part that comes next, and its cell."""
        return None if self.is_over else self._places[self._next]

    async def lead(self, agent: LoopAgent, source: str, kind: Literal["command", "turn"], reopen: Reopen) -> LoopAgent:
        """A cell with this source (sha256) asks: make the next recorded part ready. Returns the agent that runs it.

        Raises:
            ReplayError: another part comes next, or what stands before it differs.
        """
        cell, place = self._expected(source, kind)
        course = self._course(agent, place)
        self._next, self._cell = self._next + 1, cell
        course.runs_all = self.rules.runs_all
        course.is_volatile = cell is not None and cell.is_volatile
        led = await self._named(lambda: course.lead(agent, place.part, reopen))
        self._courses[id(led.session)] = course
        led.models = lambda name: PlayedModel(course)
        return led

    def play(self, agent: LoopAgent) -> TurnEnd | None:
        """Play the part's turn event for event, where nothing says how its end would come about; None where it has to run."""
        course = self.of(agent.session)
        if course is None or course.part is None or not course.is_played:
            return None
        course.play()
        reason = course.part.reason or {"kind": "interrupted"}
        sentence = str(reason.get("error", {}).get("message", ""))
        # Where the process ended, no cell of it showed an error.
        return TurnEnd(course.part.turn or 0, 0, reason if reason["kind"] == "error" else {"kind": "completed"}, sentence)

    def arrive(self, agent: LoopAgent) -> None:
        """The part is over.

        Raises:
            ReplayError: it was not as recorded.
        """
        course = self.of(agent.session)
        if course is not None:
            try:
                course.arrive()
            except ReplayError as error:
                raise self._at_cell(error) from None

    def close(self) -> None:
        """Follow nothing any more."""
        for course in self._bound.values():
            course.close()
        self.children.close()
        self._courses.clear()

    # -- for the children

    def follow(self, recorded: RecordedSession, session: Session, stop: Stop, expected: Collection[int] = ()) -> Course:
        """A course along a recorded session. ``stop``: how its turn is stopped; ``expected``: where the parts begin that cells will do."""
        cwd, is_child = recorded.stored.header.cwd, recorded.stored.header.origin is not UNSET
        course = self._courses[id(session)] = Course(
            recorded.events,
            session,
            Comparison("" if cwd is UNSET else cwd, self.rules.folder, self.rules.sanitize),
            expected=expected,
            accepts_drift=self.rules.accepts_drift,
            feeds=self.rules.feeds,
            # A child's log grants nothing: it acts under the limits of its root.
            plays=(lambda type: True) if is_child else self.rules.plays,
            stop=stop,
        )
        return course

    # -- inside

    def _note(self, sentence: str) -> None:
        self.notes.append(sentence if self._cell is None else f"{self._cell}: {sentence}")

    async def _named(self, work: Callable[[], Any]) -> LoopAgent:
        try:
            led: LoopAgent = await work()
        except ReplayError as error:
            raise self._at_cell(error) from None
        return led

    def _at_cell(self, error: ReplayError) -> ReplayError:
        if self._cell is None:
            return error
        return ReplayError(f"{self._cell}: {error}", position=f"{self._cell}: {error.position}")

    def _expected(self, source: str, kind: Literal["command", "turn"]) -> tuple[NotebookCell | None, Place]:
        upcoming = self.upcoming
        if upcoming is None:
            raise ReplayError("the recording is over, but this cell asks for more; run the notebook again with plan-mode-nb record")
        cell, place = upcoming
        if place.part.source != source or place.part.kind != kind:
            named = f"{place} comes next in the recording" if cell is None else f"{cell} comes next in the recording, with {place}"
            raise ReplayError(f"{named}; this cell asks for something else")
        return cell, place

    def _course(self, agent: LoopAgent, place: Place) -> Course:
        """The course of a session: bound at its first part, to the recorded session that the part belongs to."""
        course = self.of(agent.session)
        if course is not None:
            if self._bound.get(place.session) is not course:
                raise ReplayError(f"{place} was recorded in session {place.session}, but this cell speaks to another")
            return course
        expected = [each.part.start for _, each in self._places if each.session == place.session]
        course = self.follow(self.matching.sessions[place.session], agent.session, lambda led, cause: self.stop(led, cause), expected)
        course.sections = lambda: agent.seams.sections.texts(PromptContext(course.agent))
        self._bound[place.session] = course
        return course
