"""The children of this kernel's agents: their sessions are kept and carried beside their parents', under no name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.delegation import ChildAgent
from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.seams import random_id
from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.exceptions import LogError, ModelError
from plan_mode_nb.hosts.kernel.composition import Composition
from plan_mode_nb.log.closing import is_open
from plan_mode_nb.log.events import Clock, SessionId
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.render.lineage import descendants

_logger = logging.getLogger(__name__)
_NO_RECORDING = "a recording answers only for the agent that it was made of, not for a child; choose a live model with PlanAgent.model"


class Brood:
    """Satisfies Nursery. ``sessions``: of the children that were born here, by id. Changed on the agent thread only."""

    def __init__(
        self,
        composition: Composition,
        make_sink: Callable[[str, Session], Sink | None],
        parents: Callable[[], Iterable[Session]],
        clock: Clock,
    ) -> None:
        """``parents``: the sessions that are kept; a child of another one (a copy that a replay leads) is kept nowhere either."""
        self._composition = composition
        self._make_sink = make_sink
        self._parents = parents
        self._clock = clock
        self.sessions: dict[str, Session] = {}

    # -- Nursery

    def session_id(self, parent: Agent) -> SessionId:
        """The parent's, and eight more digits: so files that are named by sessions lie side by side, and say whose child it is."""
        return SessionId(f"{parent.session.id}.{random_id()[:8]}")

    def open(self, parent: Agent, session: Session, name: str) -> ChildAgent:
        """Drive a child.

        Raises:
            StoreError: its journal cannot be made.
        """
        if any(each is parent.session for each in (*self._parents(), *self.sessions.values())):
            self._keep(name, session)
        composition = self._composition
        return LoopAgent(name, session, composition.seams, self._model, composition.loop_config, parent=parent)

    def close(self, child: ChildAgent) -> None:
        """Let it go; its session is carried on."""
        if isinstance(child, LoopAgent):
            child.dispose()

    # -- for the agents

    def of(self, session: Session) -> list[Session]:
        """The children of a session and theirs, oldest first."""
        lineage = {session.id}
        found = []
        for child in self.sessions.values():
            if child.header.parent_session in lineage:
                lineage.add(child.id)
                found.append(child)
        return found

    def release(self, session: Session) -> dict[str, StoredSession]:
        """Its agent goes on with another session: its children are let go with it, and returned as what the notebook holds."""
        return {child.id: StoredSession(child.header, self.sessions.pop(child.id).lines) for child in self.of(session)}

    def drop(self, sessions: Collection[str]) -> None:
        """These were removed from the notebook for good."""
        for id in sessions:
            self.sessions.pop(id, None)

    def close_with(self, session: Session, stored: Mapping[str, StoredSession]) -> None:
        """Children of a reopened session whose logs a killed process left open close with that session's first new event."""
        left = [each for each in descendants(session.id, stored.values()) if each.header.id not in self.sessions and is_open(each.lines)]
        if not left:
            return

        def close(batch: object) -> None:
            undo()
            for each in left:
                self._close(each)

        undo = session.subscribe(close)

    # -- inside

    def _close(self, stored: StoredSession) -> None:
        try:
            session = Session(stored.header, clock=self._clock, lines=stored.lines)
        except LogError as error:
            _logger.warning("the child's session %s was left as it is: %s", stored.header.id, error)
            return
        self._keep("", session)
        LoopAgent("", session, self._composition.seams, self._model, self._composition.loop_config).dispose()
        session.settle()

    def _keep(self, name: str, session: Session) -> None:
        session.sink = self._make_sink(name, session)
        self.sessions[session.id] = session

    def _model(self, name: str | None) -> Model:
        """As for any agent.

        Raises:
            ModelError: a recording is set, whose answers belong to the parent.
            ConfigError: the name or a setting cannot work.
        """
        if (name or self._composition.settings.agent.model).startswith("recording:"):
            raise ModelError(_NO_RECORDING, code="CONFIG")
        return self._composition.model(name)
