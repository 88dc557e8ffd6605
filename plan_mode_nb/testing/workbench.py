"""An agent made of real parts, in memory: scripted model, counted ids and clock, a sink that can be told to refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.log.events import Event, Header, SessionId
from plan_mode_nb.log.messages import Block, user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig, TurnEnd
from plan_mode_nb.models.scripted import ScriptedModel, Step

CHECKED = LoopConfig(check="full")
"""Every request is compared with the whole log, as tests and replays do."""


def counted_ids(prefix: str = "id") -> Callable[[], str]:
    """``id-1``, ``id-2``, …"""
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def counted_clock(start: int = 1_000) -> Callable[[], int]:
    """One millisecond later at every reading."""
    ticks = itertools.count(start)
    return lambda: next(ticks)


class MemorySink:
    """Keeps what it was given, a list of lines for each write.

    ``refuse(lines)`` is asked before each write; where it says yes, the write fails with a StoreError and keeps nothing.
    """

    def __init__(self, refuse: Callable[[Sequence[str]], bool] = lambda lines: False) -> None:
        self.writes: list[list[str]] = []
        self.refuse = refuse

    @property
    def lines(self) -> list[str]:
        """All lines kept, in order: what a new process would find."""
        return [line for write in self.writes for line in write]

    def write(self, lines: Sequence[str]) -> None:
        """Keep the lines.

        Raises:
            StoreError: it was told to refuse.
        """
        if self.refuse(lines):
            raise StoreError("the log cannot be written: no space is left; free some and run the cell again")
        self.writes.append(list(lines))


class Workbench:
    """One agent and everything it stands on. ``install``: the plugins of its composition, in order."""

    def __init__(
        self,
        *steps: Step,
        install: Iterable[Install] = (),
        lines: Sequence[str] = (),
        session: Session | None = None,
        seams: Seams | None = None,
        config: LoopConfig = CHECKED,
        name: str = "main",
        parent: Agent | None = None,
        ids: str = "id",
        window: int | None = None,
    ) -> None:
        """``lines``: open a log that another process left. ``ids``: the prefix of new ids, another one for each process of a test.

        ``window``: how many tokens the model says that it can read.
        """
        self.model = ScriptedModel(steps, window=window)
        self.sink = MemorySink()
        self.seams = Seams.create(counted_ids(ids)) if seams is None else seams
        header = Header(id=SessionId("session"), created_at=1)
        self.session = Session(header, clock=counted_clock(), lines=lines, sink=self.sink) if session is None else session
        self.undos: list[Undo] = [each(self.seams) for each in install]
        self.agent = LoopAgent(
            name, self.session, self.seams, lambda model: self.model, config, parent=parent, reopened=bool(lines) and session is None
        )

    async def ask(self, content: str | Sequence[Block]) -> TurnEnd:
        """Queue a prompt and run its turn."""
        self.agent.inbox.followup(user_message(content, id=self.seams.new_id()))
        return await self.agent.run_turn()

    def steer(self, text: str) -> None:
        """Queue a message for the next step."""
        self.agent.inbox.steer(user_message(text, id=self.seams.new_id()))

    def events(self, *types: str) -> list[Event]:
        """The log's events of these types; of all types when none is named."""
        return [event for event in self.session.events if not types or event.type in types]

    @property
    def types(self) -> list[str]:
        """The types of all events, in order."""
        return [event.type for event in self.session.events]
