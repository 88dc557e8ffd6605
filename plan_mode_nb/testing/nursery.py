"""Children of real parts, in memory: a session kept by a sink of its own, and the real loop with the models that a test gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.delegation import ChildAgent
from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.testing.workbench import CHECKED, MemorySink


class MemoryNursery:
    """Satisfies Nursery. ``children`` and ``models``: those there were, in the order of their birth."""

    def __init__(self, seams: Seams, models: Iterable[Model], config: LoopConfig = CHECKED) -> None:
        """``models``: one for each child that will be, in that order."""
        self._seams = seams
        self._models = iter(models)
        self.models: list[Model] = []
        self._config = config
        self._numbers = itertools.count(1)
        self.children: list[LoopAgent] = []
        self.sinks: list[MemorySink] = []

    def session_id(self, parent: Agent) -> SessionId:
        """``parent.1``, ``parent.2``, …"""
        return SessionId(f"{parent.session.id}.{next(self._numbers)}")

    def open(self, parent: Agent, session: Session, name: str) -> ChildAgent:
        """The next child."""
        model = next(self._models)
        self.models.append(model)
        self.sinks.append(MemorySink())
        session.sink = self.sinks[-1]
        child = LoopAgent(name, session, self._seams, lambda name: model, self._config, parent=parent)
        self.children.append(child)
        return child

    def close(self, child: ChildAgent) -> None:
        """Dispose of it."""
        if isinstance(child, LoopAgent):
            child.dispose()
