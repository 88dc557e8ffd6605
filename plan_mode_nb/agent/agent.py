"""What plugins see of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from plan_mode_nb.agent.inbox import Inbox
from plan_mode_nb.agent.model import Models
from plan_mode_nb.log.session import Session

T = TypeVar("T")


class Agent(Protocol):
    """One conversation that can be driven. Its state is its session's; nothing here mirrors the log."""

    @property
    def name(self) -> str:
        """The name in this notebook (``main``, or what ``--as`` gave)."""

    @property
    def session(self) -> Session:
        """The log."""

    @property
    def inbox(self) -> Inbox:
        """What waits to be said."""

    @property
    def parent(self) -> Agent | None:
        """The agent that owns this one; None for a root."""

    @property
    def is_live(self) -> bool:
        """Whether it can still be driven (not disposed)."""

    @property
    def models(self) -> Models:
        """The models that its steps may have."""

    async def maintain(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await ``work()`` while no turn can begin.

        Raises:
            HostError: a turn runs already, or the agent was disposed.
        """


def live_owner(agent: Agent) -> Agent | None:
    """The live agent that owns this one, or None for a live root (or an orphan, which acts for itself)."""
    parent = agent.parent
    return parent if parent is not None and parent.is_live else None


def root_of(agent: Agent) -> Agent:
    """The agent that a person speaks to: the owner of its owner, and so on; a root is its own."""
    while agent.parent is not None:
        agent = agent.parent
    return agent
