"""``%session compact``: the command in its cell. It asks a model, so the cell waits in a pump as for a turn, and can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.features.compaction import COMMAND
from plan_mode_nb.hosts.arrivals import Arrivals
from plan_mode_nb.hosts.front_end import RunningTurn, TurnEnd
from plan_mode_nb.hosts.kernel import thread
from plan_mode_nb.hosts.kernel.refusals import one_line, refuse_here
from plan_mode_nb.hosts.kernel.slots import OutputSlot
from plan_mode_nb.hosts.kernel.turn import CellTurn, active_turn
from plan_mode_nb.log.events import Event
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.render.turn_view import SUMMARY, TurnView

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost


def compact(host: KernelHost, words: str) -> str:
    """Compact the main agent's conversation. ``words``: what the summary shall heed. Returns what is left to print.

    Raises:
        PlanModeError: it cannot run here, or nothing came of it; one line.
    """
    refuse_here(host.shell, busy=active_turn(host.shell) is not None)
    said: object = host.led.perform("main", lambda agent: _compact(host, agent, words))
    return said if isinstance(said, str) else ""


def _compact(host: KernelHost, agent: LoopAgent, words: str) -> str:
    commands = host.composition.seams.commands
    if commands is None or commands.get(COMMAND) is None:
        raise CommandError("%session compact is not available: this composition cannot compact")
    host.composition.refresh()
    target = host.led.ready(agent, "command")
    run, cell, before = commands.run, host.cell.reference, len(target.session)

    async def body(turn: CellTurn[CommandResult]) -> CommandResult:
        return await host.led.run_command(lambda: run(COMMAND, CommandCall(target, words), cell=cell), target)

    turn: CellTurn[CommandResult] = CellTurn(host.shell, thread.get(host.shell), body, host.front_end.compacting(target))
    try:
        result = turn.run()
    finally:
        host.front_end.turn_is_over()
        host.on_agent(lambda: None)
        host.led.done(target)
    if result.kind == "error":
        raise one_line(CommandError(result.text))
    is_shown = any(event.type == "compaction/summary" for event in target.session.events[before:])
    return "" if is_shown else result.text


@final
class CompactionDisplay:
    """Satisfies CellView: one output, which says that it goes on and then what came of it. Everything is called on the main thread."""

    def __init__(self, agent: LoopAgent, *, only_final: bool) -> None:
        """``only_final``: show nothing before it is final (nbval follows no updates of a display)."""
        self._view = TurnView()
        self._arrivals = Arrivals(agent, self._mark_dirty)
        self._outputs: dict[str, OutputSlot] = {}
        self._only_final = only_final
        self._turn: RunningTurn | None = None

    def open(self, turn: RunningTurn) -> None:
        """Listen."""
        self._turn = turn
        self._arrivals.open()

    def flush(self) -> None:
        """Show what arrived."""
        for arrived in self._arrivals.take():
            if isinstance(arrived, Event):
                self._view.feed(arrived)
        if not self._only_final:
            self._show()

    def close(self, reason: TurnEnd) -> None:
        """What came of it."""
        self._arrivals.close()
        self.flush()
        self._show()

    def _show(self) -> None:
        for slot in self._view.slots:
            if slot.key != SUMMARY:
                self._outputs.setdefault(slot.key, OutputSlot()).show(slot.bundle)

    def _mark_dirty(self) -> None:
        if self._turn is not None:
            self._turn.mark_dirty()
