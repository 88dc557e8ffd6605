"""Child agents: where a tool that hands a task over meets the host that keeps their logs, whoever watches them, and a replay.

A child is an agent like any other, with a session of its own. It acts under the limits of its root (``Axis.in_force``) and lives for one
turn, inside the call that made it: stopped with its parent, gone when the call has its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo, entered
from plan_mode_nb.log.events import Draft, SessionId
from plan_mode_nb.log.session import Session

Kind = Literal["spawn", "fork"]
CHILD: Final = "child"
"""The key of a result's ``meta`` that says which session its call ran in (see :func:`child_of`)."""


class ChildAgent(Agent, Protocol):
    """A child as its call drives it."""

    @property
    def is_running(self) -> bool:
        """Whether its turn runs now."""

    async def run_turn(self) -> object:
        """Run one turn for what waits in its inbox. How it ended is in its log.

        Raises:
            asyncio.CancelledError: it was stopped; its log is closed.
        """


class Birth(Struct, frozen=True):
    """A child that is about to begin. ``parent`` made it in its call ``call_id``; ``label``: its task in a few words."""

    child: ChildAgent
    parent: Agent
    call_id: str
    kind: Kind
    label: str


class Nursery(Protocol):
    """Who can make agents here: a host. It keeps a child's log where the parent's is kept."""

    def session_id(self, parent: Agent) -> SessionId:
        """An id for a child's session."""

    def open(self, parent: Agent, session: Session, name: str) -> ChildAgent:
        """Drive a child's session; everything that it appends is kept from now on.

        Raises:
            StoreError: its log cannot be kept.
        """

    def close(self, child: ChildAgent) -> None:
        """Its turn is over: let it go. The log stays."""


class Guide(Protocol):
    """Who leads children along a recording."""

    def session_id(self, parent: Agent, call_id: str) -> SessionId | None:
        """The id that the call's child had; None where nobody leads this parent."""

    def begin(self, birth: Birth) -> bool:
        """The child's log stands as its parent left it; nothing was appended by the child yet. Whether its turn was played already."""

    def end(self, birth: Birth) -> None:
        """Its turn is over."""


Limits = Callable[[Agent, Session], list[Draft]]
"""(parent, the child's session) -> what the child's log must say of the limits that it takes over."""
Watcher = Callable[[Birth], None]


class Delegation:
    """One composition's way to children. ``nursery``: None where no host makes agents; ``guide``: None where nobody leads them."""

    def __init__(self) -> None:
        self.nursery: Nursery | None = None
        self.guide: Guide | None = None
        self._limits: Registry[Limits] = Registry("limit")
        self._watchers: list[tuple[Watcher]] = []

    def provide(self, nursery: Nursery) -> Undo:
        """Put a nursery in place; the undo brings back the one before."""
        before, self.nursery = self.nursery, nursery

        def undo() -> None:
            if self.nursery is nursery:
                self.nursery = before

        return undo

    def lead(self, guide: Guide) -> Undo:
        """Put a guide in place; the undo brings back the one before."""
        before, self.guide = self.guide, guide

        def undo() -> None:
            if self.guide is guide:
                self.guide = before

        return undo

    def limit(self, name: str, limits: Limits) -> Undo:
        """Add what children take over; returns the undo."""
        return self._limits.register(name, limits)

    def watch(self, watcher: Watcher) -> Undo:
        """Be told of every child before its first event, on the agent thread; returns the undo."""
        return entered(self._watchers, watcher)

    def announce(self, birth: Birth) -> None:
        """Tell the watchers."""
        for (watcher,) in tuple(self._watchers):
            watcher(birth)

    def take_over(self, birth: Birth) -> None:
        """Write into the child's log what it takes over of its parent's limits."""
        session = birth.child.session
        session.append(*(each for limits in self._limits for each in limits(birth.parent, session)))


def child_of(meta: Any) -> SessionId | None:
    """The session of the child that a result's ``meta`` names; None where its call made none."""
    child = meta.get(CHILD) if isinstance(meta, dict) else None
    session = child.get("session") if isinstance(child, dict) else None
    return SessionId(session) if isinstance(session, str) else None
