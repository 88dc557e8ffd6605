"""The front end of plain IPython: a turn is text that streams, people answer prompts, and the log is a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from plan_mode_nb.document.document import Document
from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.front_end import People
from plan_mode_nb.hosts.terminal.display import TextDisplay
from plan_mode_nb.hosts.terminal.growing import to_terminal
from plan_mode_nb.hosts.terminal.keyboard import Keyboard
from plan_mode_nb.hosts.terminal.log_files import LogFiles
from plan_mode_nb.hosts.terminal.people import TerminalPeople
from plan_mode_nb.hosts.terminal.prompts import Prompts
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent


@final
class TerminalFrontEnd:
    """Satisfies FrontEnd. ``log_file()``: the setting ``PlanAgent.log_file``."""

    def __init__(self, log_file: Callable[[], str]) -> None:
        self._keyboard = Keyboard(to_terminal)
        self._people = TerminalPeople(self._keyboard, Prompts(self._keyboard, to_terminal))
        self._files = LogFiles(log_file)

    @property
    def people(self) -> People:
        """Whoever sits at the terminal."""
        return self._people

    def display(self, agent: LoopAgent) -> TextDisplay:
        """Text as it comes; prompts come between it."""
        return TextDisplay(agent, self._people, to_terminal)

    def compacting(self, agent: LoopAgent) -> TextDisplay:
        """A line as in a turn."""
        return self.display(agent)

    def turn_is_over(self) -> None:
        """No turn to prompt in."""
        self._people.turn = None

    def found(self) -> Document:
        """The sessions in the log file and its siblings."""
        return self._files.found()

    def sink(self, name: str, session: Session) -> Sink | None:
        """The agent's file."""
        return self._files.sink(name, session)

    @property
    def notebook(self) -> None:
        """A terminal has none."""
        return None

    def moved(self, before: str, now: str) -> None:
        """No page can say so here.

        Raises:
            HostError: always.
        """
        raise HostError(f"a terminal has no notebook that was renamed from {before} to {now}")

    def kept_in(self, session: Session) -> str:
        """That file."""
        return self._files.where(session)

    def close(self) -> None:
        """Let files and terminal go."""
        self._files.close()
        self._keyboard.close()
