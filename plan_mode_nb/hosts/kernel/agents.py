"""The agents of one notebook, their sessions and their journals."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from plan_mode_nb.agent.seams import random_id
from plan_mode_nb.document.document import Document, StoredSession, decoded_images
from plan_mode_nb.exceptions import CommandError, LogError
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.header import HEADER, HEADER_SEQ
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.plan import PLAN, TOLD
from plan_mode_nb.hosts.kernel.children import Brood
from plan_mode_nb.hosts.kernel.composition import Composition
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.fold import Fold
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.render.lineage import is_child

MakeSink = Callable[[str, Session], Sink | None]
"""Where the new lines of an agent's session are kept; None: in memory only."""
NewId = Callable[[str], SessionId]
"""The id for a new session of an agent."""

READ_FIRST: Final[Sequence[Fold[Any, Any]]] = (HISTORY, HEADER, HEADER_SEQ, CONTEXT, PLAN, TOLD)
"""What the first step of a session asks for: folded while its lines are read, so that a long one is decoded once."""


def unix_milliseconds() -> int:
    """The log's clock."""
    return time.time_ns() // 1_000_000


def _childs(id: str) -> str:
    return f"session {id} is a child's, which ended with its task"


class Agents:
    """``by_name``: the agents that were opened; ``sessions``: every live session by id; ``images``: those that the notebook had, by sha256.

    Changed on the agent thread only.
    """

    def __init__(self, composition: Composition, make_sink: MakeSink, new_id: NewId = lambda name: SessionId(random_id())) -> None:
        self._composition = composition
        self._make_sink = make_sink
        self._new_id = new_id
        self._stored: Mapping[str, StoredSession] = {}
        self._names: dict[str, str] = {}
        self._chosen: dict[str, int] = {}
        self.by_name: dict[str, LoopAgent] = {}
        self.children = Brood(composition, make_sink, lambda: [agent.session for agent in self.by_name.values()], unix_milliseconds)
        self._orphan = composition.seams.delegation.provide(self.children)
        self.problems: list[str] = []
        self.restored: dict[str, int] = {}
        self.images: Mapping[str, bytes] = {}
        self.is_open = False

    def open(self, document: Document) -> None:
        """Take what was found. A log that does not validate is reported, left untouched, and a new session starts beside it."""
        self.is_open = True
        self.problems.extend(document.problems)
        self._stored = document.sessions
        self._names = dict(document.agents)
        self._chosen = dict(document.chosen)
        self.images = decoded_images(document.attachments)
        self._composition.seams.attachments.update(self.images)
        self.get("main")

    def get(self, name: str) -> LoopAgent:
        """The agent of that name: live, restored, or new."""
        if name not in self.by_name:
            session = self._restore(name) or self._new_session(name)
            self._take(name, session, reopened=session.id in self.restored)
        return self.by_name[name]

    def start_new(self, name: str) -> LoopAgent:
        """A new session for an agent; the old one stays in the notebook."""
        self._release(name)
        return self._take(name, self._new_session(name), reopened=False)

    def fork(self, name: str, length: int) -> LoopAgent:
        """Go on from the first ``length`` events of an agent's session, in a new session."""
        child = self.get(name).session.fork(length, id=self._new_id(name))
        self._release(name)
        return self._take(name, child, reopened=False)

    def use(self, name: str, id: str) -> LoopAgent:
        """Go back to another session of this notebook.

        Raises:
            CommandError: there is none of that id, or its log does not validate.
        """
        stored = self._stored.get(id)
        if stored is None:
            raise CommandError(f"this notebook has no session {id!r}; it has {', '.join(self._stored) or 'no other'}")
        session = self._load(stored)
        if session is None:
            raise CommandError(self.problems[-1])
        self._release(name)
        return self._take(name, session, reopened=True)

    def reopen(self, name: str) -> LoopAgent:
        """Go on with an agent's session as another process would: what was interrupted is closed, and the restart is marked."""
        session = self.by_name[name].session
        self.by_name.pop(name).dispose()
        return self._take(name, session, reopened=True)

    def take_in(self, name: str, stored: StoredSession) -> LoopAgent:
        """Add a session from elsewhere to this notebook and go on with it.

        Raises:
            CommandError: it is a child's, the notebook has a session of that id already, or its log does not validate.
        """
        if is_child(stored.header):
            raise CommandError(f"{_childs(stored.header.id)}; plan-mode-nb import puts it into a notebook beside the others")
        if stored.header.id in self.stored_ids:
            raise CommandError(f"this notebook has session {stored.header.id} already; %session use {stored.header.id} goes on with it")
        self._stored = {**self._stored, stored.header.id: stored}
        return self.use(name, stored.header.id)

    @property
    def sessions(self) -> dict[str, Session]:
        """Live sessions by id, those of children after those of agents that have a name."""
        named: dict[str, Session] = {agent.session.id: agent.session for agent in self.by_name.values()}
        return named | self.children.sessions

    @property
    def names(self) -> dict[str, str]:
        """Agent name -> session id, for the document's index."""
        return {name: agent.session.id for name, agent in self.by_name.items()}

    @property
    def chosen(self) -> dict[str, int]:
        """How often each of these names was sent to another session than the one before; missing is 0."""
        return {name: self._chosen[name] for name in self.by_name if self._chosen.get(name)}

    def choices(self, name: str) -> int:
        """How often this name was sent to another session."""
        return self._chosen.get(name, 0)

    def strip(self, sessions: Collection[str]) -> list[LoopAgent]:
        """These sessions were removed from the notebook for good: their agents begin new ones, which are returned."""
        self._stored = {id: stored for id, stored in self._stored.items() if id not in sessions}
        self.children.drop(sessions)
        renewed = [self.start_new(name) for name, agent in list(self.by_name.items()) if agent.session.id in sessions]
        self._stored = {id: stored for id, stored in self._stored.items() if id not in sessions}
        return renewed

    @property
    def stored_ids(self) -> list[str]:
        """Every session that the notebook is known to hold, live ones included."""
        return list(dict.fromkeys([*self._stored, *self.sessions]))

    def stored(self, id: str) -> StoredSession | None:
        """A session of this notebook as it is now, live or not."""
        live = self.sessions.get(id)
        return self._stored.get(id) if live is None else StoredSession(live.header, live.lines)

    @property
    def all_stored(self) -> list[StoredSession]:
        """All of them."""
        return [found for id in self.stored_ids if (found := self.stored(id)) is not None]

    def document(self) -> Document:
        """What was found and what was let go since, as it was; live sessions are not in it unless they were found."""
        return Document(agents=dict(self._names), sessions=dict(self._stored))

    def dispose(self) -> None:
        """Let go of all."""
        for name in list(self.by_name):
            self._release(name)
        self._orphan()

    def _restore(self, name: str) -> Session | None:
        stored = self._stored.get(self._names.get(name, ""))
        return None if stored is None else self._load(stored)

    def _load(self, stored: StoredSession) -> Session | None:
        if is_child(stored.header):
            self.problems.append(f"{_childs(stored.header.id)} and is left as it is; a new session starts beside it")
            return None
        try:
            session = Session(stored.header, clock=unix_milliseconds, lines=stored.lines, folds=READ_FIRST)
        except LogError as error:
            self.problems.append(f"session {stored.header.id} was refused and left as it is: {error}; a new session starts beside it")
            return None
        self.restored[session.id] = len(session)
        return session

    def _new_session(self, name: str) -> Session:
        header = Header(id=self._new_id(name), created_at=unix_milliseconds(), cwd=os.getcwd())
        return Session(header, clock=unix_milliseconds)

    def _take(self, name: str, session: Session, *, reopened: bool) -> LoopAgent:
        composition = self._composition
        if self._names.get(name, session.id) != session.id:
            self._chosen[name] = self._chosen.get(name, 0) + 1
        self._names[name] = session.id
        session.sink = self._make_sink(name, session)
        agent = LoopAgent(name, session, composition.seams, composition.model, composition.loop_config, reopened=reopened)
        self.by_name[name] = agent
        if reopened:
            self.children.close_with(session, self._stored)
        return agent

    def _release(self, name: str) -> None:
        agent = self.by_name.pop(name, None)
        if agent is not None:
            own = StoredSession(agent.session.header, agent.session.lines)
            self._stored = {**self._stored, agent.session.id: own, **self.children.release(agent.session)}
            agent.dispose()
