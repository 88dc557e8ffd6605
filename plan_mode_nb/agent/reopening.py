"""What is owed to a log that another process wrote, before this one goes on with it.

The drafts are written with, and before, the first new event: looking at a log changes no file.
"""

from __future__ import annotations

from collections.abc import Callable

from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.session import Session

Owes = Callable[[Session], list[Draft]]


class Reopening:
    """Functions by unique name, asked in order of registration when a session is opened again."""

    def __init__(self) -> None:
        self._owes: Registry[Owes] = Registry("reopening rule")

    def register(self, name: str, owes: Owes) -> Undo:
        """Add a rule; returns the undo."""
        return self._owes.register(name, owes)

    def owed(self, session: Session) -> list[Draft]:
        """What all rules want written, in order."""
        return [each for owes in self._owes for each in owes(session)]
