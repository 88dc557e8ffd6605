"""Who leads the turns of a host: nobody, so that cells do as they say, or a recording (``hosts/kernel/strict.py``, ``replaying.py``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.commands import CommandResult
from plan_mode_nb.agent.questions import QuestionRequest, Reply
from plan_mode_nb.agent.seams import random_id
from plan_mode_nb.hosts.front_end import People, TurnDisplay
from plan_mode_nb.hosts.kernel.before import asked_before
from plan_mode_nb.hosts.kernel.turn import active_turn
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig, TurnEnd

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost
    from plan_mode_nb.replay.replay import Replay

Kind = Literal["command", "turn"]


class Led(Protocol):
    """One per host at a time."""

    @property
    def people(self) -> People:
        """Who answers."""

    @property
    def carries(self) -> bool:
        """Whether the log goes to pages and clients."""

    @property
    def is_replaying(self) -> bool:
        """Whether ``%session replay on`` holds."""

    @property
    def turns_left(self) -> int:
        """Recorded turns that will run again."""

    def session_id(self, name: str) -> SessionId:
        """The id of a new session of an agent. On the agent thread."""

    def sink(self, name: str, session: Session) -> Sink | None:
        """Where a session's new lines go before they count. On the agent thread."""

    def display(self, agent: LoopAgent) -> TurnDisplay:
        """What shows the next turn."""

    def perform(self, name: str, act: Callable[[LoopAgent], Any]) -> Any:
        """Do what a cell asks of the agent of that name; main thread."""

    def ready(self, agent: LoopAgent, kind: Kind) -> LoopAgent:
        """A command or turn comes next; returns the agent that has it. Main thread.

        Raises:
            ReplayError: something else comes next in the recording.
        """

    def config(self, agent: LoopAgent, config: LoopConfig) -> LoopConfig:
        """The loop's configuration for the turn that comes next."""

    async def run_turn(self, agent: LoopAgent, cell: dict[str, str]) -> TurnEnd:
        """The turn itself, on the agent thread."""

    async def run_command(self, run: Callable[[], Awaitable[CommandResult]], agent: LoopAgent) -> CommandResult:
        """A command of an agent that asks a model, on the agent thread."""

    def done(self, agent: LoopAgent) -> None:
        """It is over, however it ended. Main thread.

        Raises:
            ReplayError: it was not as recorded.
        """

    async def wait(self, seconds: float) -> None:
        """How a failed request waits before it is made again."""

    def close(self) -> None:
        """The extension is unloaded."""


class NotLed:
    """Cells do as they say."""

    carries = True
    is_replaying = False

    def __init__(self, host: KernelHost) -> None:
        self._host = host

    @property
    def turns_left(self) -> int:
        """None."""
        return 0

    @property
    def people(self) -> People:
        """The front end's."""
        return self._host.front_end.people

    def session_id(self, name: str) -> SessionId:
        """A random one."""
        return SessionId(random_id())

    def sink(self, name: str, session: Session) -> Sink | None:
        """The front end's."""
        return self._host.front_end.sink(name, session)

    def display(self, agent: LoopAgent) -> TurnDisplay:
        """The front end's."""
        return self._host.front_end.display(agent)

    def perform(self, name: str, act: Callable[[LoopAgent], Any]) -> Any:
        """At once, by the agent of that name."""
        return act(self._host.agent(name))

    def ready(self, agent: LoopAgent, kind: Kind) -> LoopAgent:
        """Always. A cell that asked before the last restart says so first."""
        tell_asked_before(self._host, agent, kind)
        return agent

    def config(self, agent: LoopAgent, config: LoopConfig) -> LoopConfig:
        """As it is."""
        return config

    async def run_turn(self, agent: LoopAgent, cell: dict[str, str]) -> TurnEnd:
        """The agent's."""
        return await agent.run_turn(cell)

    async def run_command(self, run: Callable[[], Awaitable[CommandResult]], agent: LoopAgent) -> CommandResult:
        """As it is."""
        return await run()

    def done(self, agent: LoopAgent) -> None:
        """Nothing to compare."""

    async def wait(self, seconds: float) -> None:
        """That long."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing to let go."""


class AlongARecording:
    """How a turn runs in both replays."""

    replay: Replay

    def config(self, agent: LoopAgent, config: LoopConfig) -> LoopConfig:
        """As the recording has it."""
        return self.replay.config(agent, config)

    async def run_turn(self, agent: LoopAgent, cell: dict[str, str]) -> TurnEnd:
        """The turn; one that a killed process left is played."""
        played = self.replay.play(agent)
        return await agent.run_turn(cell) if played is None else played

    async def run_command(self, run: Callable[[], Awaitable[CommandResult]], agent: LoopAgent) -> CommandResult:
        """The command; one that a killed process left is played."""
        return await run() if self.replay.play(agent) is None else CommandResult("success", "")


def button(shell: Any) -> Callable[[LoopAgent, dict[str, Any]], None]:
    """How a replay stops a turn: where a person did, as the kernel's stop button does, so that the cell ends in the same error."""

    def stop(agent: LoopAgent, cause: dict[str, Any]) -> None:
        turn = active_turn(shell)
        if turn is not None and cause.get("kind") == "user":
            turn.request_stop()
        else:
            agent.cancel(cause)

    return stop


def tell_asked_before(host: KernelHost, agent: LoopAgent, kind: Kind) -> None:
    """Print that this cell asked before, where it did; the same live and replayed."""
    said = host.on_agent(lambda: asked_before(agent.session, host.cell.reference["source"])) if kind == "turn" else ""
    if said:
        print(said)


class LedPeople:
    """Satisfies People: whoever answers at the moment of asking."""

    def __init__(self, host: KernelHost) -> None:
        self._host = host

    async def ask(self, request: QuestionRequest) -> Reply:
        """Their reply."""
        return await self._host.led.people.ask(request)

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Their decision."""
        return await self._host.led.people.decide(request)
