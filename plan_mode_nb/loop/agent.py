"""An agent that can be driven: a session, the seams, a model, and at most one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.inbox import Inbox
from plan_mode_nb.agent.model import Models
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import HostError
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.turn import LoopConfig, TurnEnd, run_turn

T = TypeVar("T")
CancelCause = dict[str, Any]
"""dsh's: ``{"kind": "user" | "parent" | "disposed"}`` or ``{"kind": "hook", "reason"}``."""


class LoopAgent:
    """Satisfies the Agent protocol. Everything runs on the loop that drives it; a host reaches it by a thread-safe call."""

    def __init__(
        self,
        name: str,
        session: Session,
        seams: Seams,
        models: Models,
        config: LoopConfig,
        *,
        parent: Agent | None = None,
        reopened: bool = False,
    ) -> None:
        """Drive ``session``. A log that was interrupted is closed with its first new event, so that looking does not change it.

        ``reopened``: the log was read back by a new process; the first new event is then preceded by ``session/end-seed``.
        """
        self.name = name
        self.session = session
        self.seams = seams
        self.models = models
        self.config = config
        self.parent = parent
        self.inbox = Inbox(session, seams.redactions.message)
        self.cancel_cause = self._usual_cause
        self.resumed = len(session) > 0
        # What was loaded is read from its lines whenever it is asked for; only what is kept as values needs a proof.
        self.proven = len(session.events.loaded)
        self._running: asyncio.Task[Any] | None = None
        self._cancels = 0
        self._live = True
        self._owe(reopened)

    def _owe(self, reopened: bool) -> None:
        events = self.session.events
        owed = closers(events) if self.session.place.turn is not None else []
        if reopened and events and (owed or events[-1].type != "session/end-seed"):
            owed = [*owed, draft("session/end-seed", {}), *self.seams.reopening.owed(self.session)]
        if owed:
            self.session.owe(owed, time=events[-1].time)

    @property
    def is_live(self) -> bool:
        """Whether it can still be driven."""
        return self._live

    @property
    def is_running(self) -> bool:
        """Whether a turn runs now."""
        return self._running is not None

    @property
    def _usual_cause(self) -> CancelCause:
        """Who stops a turn by cancelling its task: the person, or for a child its parent, whose task it runs in."""
        return {"kind": "user" if self.parent is None else "parent"}

    async def run_turn(self, cell: dict[str, Any] | None = None) -> TurnEnd:
        """Run one turn for what waits in the inbox. ``cell``: ``{source, cell?}`` of the notebook cell it stands in.

        What still waits when it was stopped, or failed, is taken out of the inbox unsent: it was meant for this turn.

        Raises:
            HostError: a turn runs already, or the agent was disposed.
            asyncio.CancelledError: it was stopped; the log is closed.
        """
        self._begin()
        try:
            end = await run_turn(self, cell)
            if end.reason["kind"] not in ("completed", "max-tokens"):
                self.inbox.clear()
            return end
        except asyncio.CancelledError:
            self.inbox.clear()
            raise
        finally:
            self._running = None

    async def maintain(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await ``work()``, which is no turn: none can begin meanwhile, and :meth:`cancel` stops it. What waits to be said goes on waiting.

        Raises:
            HostError: a turn runs already, or the agent was disposed.
        """
        self._begin()
        try:
            return await work()
        finally:
            self._running = None

    def _begin(self) -> None:
        if not self._live:
            raise HostError(f"the agent {self.name!r} is gone; run %load_ext plan_mode_nb again")
        if self._running is not None:
            raise HostError(f"the agent {self.name!r} is already in a turn; wait for its cell to end, or steer it from the controls card")
        self._running = task = asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self.cancel_cause = self._usual_cause

    def is_stopped(self) -> bool:
        """Whether the running turn is being stopped, by whoever cancelled its task. True until the turn has ended.

        Code that catches the cancellation cannot hide it; a task that was cancelled before the turn does not count.
        """
        return self._running is not None and self._running.cancelling() > self._cancels

    def cancel(self, cause: CancelCause) -> bool:
        """Stop the running turn, if one runs; call on the agent's loop. Returns whether there was one.

        The first cause is the one logged; a later call cancels again, for a tool that caught the first.
        """
        if self._running is None:
            return False
        if not self.is_stopped():
            self.cancel_cause = cause
        self._running.cancel()
        return True

    def dispose(self) -> None:
        """Let go: a running turn is stopped as ``disposed``, and none can start."""
        self._live = False
        self.cancel({"kind": "disposed"})
