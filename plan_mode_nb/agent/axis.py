"""An axis: one policy of a session, independent of plan mode and of every other axis. Its state is the fold of its own event type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent, root_of
from plan_mode_nb.agent.commands import Command, CommandCall, CommandResult
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.policies import LastValueFold
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

V = TypeVar("V", bound=str)


class Axis(Struct, Generic[V], frozen=True):
    """``command``: the name of its command; ``title``: its name in sentences; ``type`` and ``key``: its event and the value's key in it.

    ``meanings``: every value of the closed set, in the order shown, with one line that says what it means. ``default`` holds before the
    first event; ``strictest`` stands in for a value that this version does not know, so that a newer log never loosens anything.
    """

    command: str
    title: str
    type: str
    key: str
    fold: LastValueFold
    meanings: Mapping[V, str]
    default: V
    strictest: V

    def value(self, session: Session) -> V:
        """The value that a session's log says."""
        logged = session.fold(self.fold)
        if logged is None:
            return self.default
        return self._known(logged) or self.strictest

    def in_force(self, agent: Agent) -> V:
        """The value for what an agent does: its root's. A child acts under the limits of the agent that the person speaks to."""
        return self.value(root_of(agent).session)

    def delegated(self, parent: Agent, session: Session) -> list[Draft]:
        """What a child's log must say so that it reads as the value in force for its parent; with deepseek-harness's ``source``."""
        value = self.in_force(parent)
        return [] if self.value(session) == value else [draft(self.type, {self.key: value, "source": "delegation"})]

    def set(self, session: Session, value: V) -> None:
        """Log a value, unless it is the last one logged. It is in force at once, also within a turn.

        Raises:
            LogError, StoreError: the log refused or could not keep it; nothing changed.
        """
        if session.fold(self.fold) != value:
            session.append(draft(self.type, {self.key: value}))

    def line(self, value: V) -> str:
        """One line: the axis, its value, and what that means."""
        return f"{self.title}: {value}. {self.meanings[value]}"

    def install(self, seams: Seams, *registrations: Callable[[], Undo]) -> Undo:
        """Make these registrations, have children take the value over, and register the command where the composition has commands.

        Raises:
            ValueError: a name is taken, so the axis is installed already; nothing stays registered.
        """
        undos: list[Undo] = []
        undo = undo_all(undos)
        try:
            for register in registrations:
                undos.append(register())
            undos.append(seams.delegation.limit(self.command, self.delegated))
            if seams.commands is not None:
                undos.append(seams.commands.register(self.make_command()))
        except ValueError:
            undo()
            raise
        return undo

    def make_command(self) -> Command:
        """The command: without an argument it says what is in force, with one it sets it. Case is ignored."""
        values = list(self.meanings)
        hint = f"[{'|'.join(values)}]"
        lines = [f"  %{self.command} {value}\n      {self.meanings[value]}" for value in values]

        def handle(call: CommandCall) -> CommandResult:
            word = call.args.strip().lower()
            if word:
                value = self._known(word)
                if value is None:
                    return CommandResult(
                        "error", f"{self.title} {word!r} does not exist: type %{self.command} with one of {', '.join(values)}."
                    )
                self.set(call.agent.session, value)
            return CommandResult("success", self.line(self.value(call.agent.session)))

        return Command(
            self.command,
            f"Show or set the {self.title.lower()}",
            handle,
            hint=hint,
            help=f"{self.title}, {self.default} unless set. Without an argument: what is in force.\n\n" + "\n".join(lines) + "\n",
        )

    def _known(self, word: str) -> V | None:
        return next((value for value in self.meanings if value == word), None)
