"""The kernel host: joins one IPython shell with the agents, their log and its carriers. It parses nothing and decides nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.document.document import EncodedImages
from plan_mode_nb.exceptions import CommandError, HostError, TurnError
from plan_mode_nb.folds.inbox import Inbox
from plan_mode_nb.folds.plan import PLAN, PlanState
from plan_mode_nb.hosts.front_end import FrontEnd, TurnDisplay
from plan_mode_nb.hosts.kernel import config, own_loop, thread, unsent
from plan_mode_nb.hosts.kernel.agents import Agents
from plan_mode_nb.hosts.kernel.carrier import Carrier
from plan_mode_nb.hosts.kernel.cell import CurrentCell
from plan_mode_nb.hosts.kernel.composition import Composition
from plan_mode_nb.hosts.kernel.led import Led, LedPeople, NotLed
from plan_mode_nb.hosts.kernel.redacted import redacted
from plan_mode_nb.hosts.kernel.refusals import one_line, refuse_here
from plan_mode_nb.hosts.kernel.restore import Restore
from plan_mode_nb.hosts.kernel.settling import Settling
from plan_mode_nb.hosts.kernel.shell import KernelShell
from plan_mode_nb.hosts.kernel.turn import CellTurn, active_turn
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.messages import Block, Message, user_message
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import TurnEnd

T = TypeVar("T")


class KernelHost:
    """One per loaded extension. Everything is called on the main thread but where a method says otherwise."""

    def __init__(self, shell: Any, front_end: Callable[[KernelHost], FrontEnd], led: Callable[[KernelHost], Led] = NotLed) -> None:
        """Read the settings, install the composition, and say hello to open pages. Nothing is run and nothing restored yet.

        ``front_end(host)`` and ``led(host)`` are called while this host is being made: they may keep it, not use it.

        Raises:
            ConfigError: a setting cannot work; nothing of the host stays.
        """
        self.shell = shell
        self.settings = config.load(shell)
        self.front_end = front_end(self)
        self.led = led(self)
        self.python = KernelShell(shell)
        self.composition = Composition(self.settings, self.python, LedPeople(self), lambda seconds: self.led.wait(seconds))
        self.agents = Agents(self.composition, self._sink, self._session_id)
        self.cell = CurrentCell(shell)
        self._after: deque[Callable[[], None]] = deque()
        self._unwatch: dict[str, Callable[[], None]] = {}
        self._settling = Settling(shell)
        self._display: TurnDisplay | None = None
        self._at_the_end: Callable[[], None] = lambda: None
        shell.configurables.extend([self.settings.agent, self.settings.plan_mode])
        self.carrier = Carrier(shell, self) if getattr(shell, "kernel", None) is not None and self.led.carries else None
        self.restore = Restore(self)

    def close(self) -> None:
        """Undo everything; the log stays where it is. A turn that runs goes on to its end without the plugins, and is then let go of."""
        if self.carrier is not None:
            self.carrier.close()
            self.carrier = None
        self.cell.close()
        for configurable in (self.settings.agent, self.settings.plan_mode):
            if configurable in self.shell.configurables:
                self.shell.configurables.remove(configurable)
        for undo in self._unwatch.values():
            undo()
        self._on_agent(self.composition.close)
        self._at_the_end = self._let_go
        if active_turn(self.shell) is None:
            self._at_the_end()

    # -- what magics, chip and cards call

    def command(
        self, name: str, call_text: str, *, images: Sequence[Block] = (), agent: str = "main", literal: bool = False
    ) -> CommandResult:
        """Run a command for an agent; where it left something to say, run the turn and wait for it.

        Raises:
            PlanModeError: it cannot run here, or the turn did not complete; one line.
        """
        if call_text.strip() or images:
            self._refuse_turn()
        result: CommandResult = self.led.perform(
            agent, lambda target: self._command(target, name, CommandCall(target, call_text, tuple(images), literal))
        )
        return result

    def message(self, blocks: Sequence[Block], *, agent: str = "main") -> None:
        """A follow-up prompt: one turn, plan state untouched. Without blocks, the turn is for what waits since before.

        Raises:
            PlanModeError: it cannot run here, or the turn did not complete; one line.
        """
        self._refuse_turn()
        message = user_message(list(blocks), id=self.composition.seams.new_id()) if blocks else None
        self.led.perform(agent, lambda target: self._message(target, message))

    def select(self, active: bool) -> None:
        """A chip, a card or the palette selected plan mode, or left it: the same command as the magic. Safe in a turn's pump."""
        commands = self.composition.seams.commands
        if commands is None or not self.agents.is_open:
            return
        call = CommandCall(self.agents.get("main"), "" if active else "off")
        self._on_agent(lambda: commands.run("plan", call))

    def on_agent(self, work: Callable[[], T]) -> T:
        """Run ``work`` on the agent thread and show what it changed."""
        result: T = self._on_agent(work)
        return result

    def agent(self, name: str = "main") -> LoopAgent:
        """An agent, after the log was found again."""
        return self._agent(name)

    def watch(self, agent: LoopAgent) -> None:
        """Show an agent's plan state, and push it to the pages, when it changes."""
        projections, session = self.composition.seams.projections, agent.session
        if projections is None or session.id in self._unwatch:
            return

        def push(name: str, value: Any) -> None:
            if name == "plan":
                self._later(lambda: self._push_plan(session, value))

        self._unwatch[session.id] = projections.watch(session, push)

    def plan_state(self, session: Session) -> PlanState:
        """A session's plan state, read on the agent thread."""
        state: PlanState = self._on_agent(lambda: session.fold(PLAN))
        return state

    def push_plans(self) -> None:
        """Tell the pages again what plan mode is in each session."""
        if self.carrier is not None:
            for session in (agent.session for agent in self.agents.by_name.values() if len(agent.session)):
                self.carrier.push_plan(session, self.plan_state(session))

    # -- what the carrier asks for

    def sessions_to_carry(self) -> Mapping[str, Session]:
        """Live sessions that hold anything."""
        return {id: session for id, session in self.agents.sessions.items() if len(session)}

    def agent_sessions(self) -> Mapping[str, str]:
        """Agent name -> session id."""
        return self.agents.names

    def agent_choices(self) -> Mapping[str, int]:
        """Agent name -> how often it was sent to another session."""
        return self.agents.chosen

    def images(self) -> Mapping[str, str]:
        """Attachments, as base64 by sha256."""
        return EncodedImages(self.composition.seams.attachments)

    def on_select(self, active: bool) -> None:
        """From a page. Before the log was found again it waits for that."""
        self.restore.then(lambda: self.select(active))

    def on_renamed(self, before: str, now: str) -> None:
        """The notebook has another path."""
        self.front_end.moved(before, now)

    def on_page(self) -> None:
        """A page said something that was waited for."""
        self.restore.on_page()
        self._settling.acked()

    # -- inside

    def _session_id(self, name: str) -> SessionId:
        return self.led.session_id(name)

    def _sink(self, name: str, session: Session) -> Sink | None:
        return self.led.sink(name, session)

    def _command(self, agent: LoopAgent, name: str, call: CommandCall) -> CommandResult:
        commands = self.composition.seams.commands
        if commands is None:
            raise one_line(CommandError(f"%{name} is not available: this composition has no commands"))
        target = self.led.ready(agent, "command")
        before = unsent.waiting(self, target.session)
        result: CommandResult = self._on_agent(lambda: commands.run(name, replace(call, agent=target), cell=self.cell.reference))
        self.led.done(target)
        if result.kind == "error":
            raise one_line(CommandError(result.text))
        if result.turn:
            self._turn(self.led.ready(target, "turn"), before)
        return result

    def _message(self, agent: LoopAgent, message: Message | None) -> None:
        if message is None:
            unsent.refuse_nothing(self, agent)
        target = self.led.ready(agent, "turn")
        if message is None:
            unsent.tell_sent(self, target)
            self._turn(target, Inbox())
            return
        before = unsent.waiting(self, target.session)
        self._on_agent(lambda: target.inbox.followup(message))
        self._turn(target, before)

    def _let_go(self) -> None:
        self._on_agent(self.agents.dispose)
        self._on_agent(self.composition.aclose)
        thread.drop(self.shell)
        own_loop.drop(self.shell)
        self.led.close()
        self.front_end.close()

    def _refuse_turn(self) -> None:
        refuse_here(self.shell, busy=active_turn(self.shell) is not None)
        header = getattr(self.shell, "parent_header", None) or {}
        if header.get("header", {}).get("msg_type", "execute_request") != "execute_request":
            raise one_line(HostError("A turn needs a cell to show itself in; run it in a cell, not in a widget's callback."))

    def _agent(self, name: str) -> LoopAgent:
        self.restore.before_use()
        agent: LoopAgent = self._on_agent(lambda: self.agents.get(name))
        self.watch(agent)
        for problem in self.agents.problems:
            print(f"plan_mode_nb: {problem}")
        self.agents.problems.clear()
        return agent

    def _push_plan(self, session: Session, state: PlanState) -> None:
        if self.carrier is not None:
            self.carrier.push_plan(session, state)
        if self._display is not None:
            self._display.show_plan(state)

    def _on_agent(self, work: Callable[[], Any]) -> Any:
        try:
            return thread.get(self.shell).run(work)
        finally:
            while self._after:
                self._after.popleft()()
            if self.carrier is not None and active_turn(self.shell) is None:
                self.carrier.kick()

    def _later(self, work: Callable[[], None]) -> None:
        """Have the main thread do something soon. Any thread."""
        turn = active_turn(self.shell)
        if turn is None or not turn.post(work):
            self._after.append(work)

    def _turn(self, agent: LoopAgent, before: Inbox) -> None:
        self.composition.refresh()
        unsent.before_turn(self, agent, before)
        canceled = len(unsent.waiting(self, agent.session).canceled)
        agent.config = self.led.config(agent, self.composition.loop_config)
        display = self._display = self.led.display(agent)
        self.python.watch = redacted(display.on_recording, self.composition.seams.redactions)
        turn: CellTurn[TurnEnd] = CellTurn(self.shell, thread.get(self.shell), lambda running: self._body(running, agent), display)
        try:
            end = turn.run()
        finally:
            self._display = None
            self.front_end.turn_is_over()
            self.python.watch = lambda call_id, recording: None
            while self._after:
                self._after.popleft()()
            try:
                unsent.after_turn(self, agent, canceled)
            finally:
                self.led.done(agent)
                self._at_the_end()
        if end.reason["kind"] not in ("completed", "max-tokens"):
            raise one_line(TurnError(end.sentence))

    async def _body(self, turn: CellTurn[TurnEnd], agent: LoopAgent) -> TurnEnd:
        """On the agent thread: the turn, then the page takes the log, whatever came of the turn."""
        carry = agent.session.subscribe(lambda batch: self._carry(turn, [event.type for event in batch]))
        try:
            return await self.led.run_turn(agent, self.cell.reference)
        finally:
            carry()
            await self._settling.settle(turn, self.carrier)

    def _carry(self, turn: CellTurn[TurnEnd], types: list[str]) -> None:
        if self.carrier is not None and "step/end" in types:
            turn.post(self.carrier.kick)
