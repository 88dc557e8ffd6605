"""What interfaces show of a session: named folds, pushed when their value changes and readable at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import Fold
from plan_mode_nb.log.session import Session

Push = Callable[[str, Any], None]
"""Called with the projection's name and its new value, on the thread that appended."""


class Projections:
    """Folds by unique name. A projection has no state of its own: a reconnecting reader and a pushed one see the same value."""

    def __init__(self) -> None:
        self._folds: Registry[Fold[Any, Any]] = Registry("projection")

    def register(self, name: str, fold: Fold[Any, Any]) -> Undo:
        """Add a projection; returns the undo."""
        return self._folds.register(name, fold)

    def read(self, session: Session) -> dict[str, Any]:
        """All values now, by name."""
        return {name: session.fold(fold) for name in self._folds.names() if (fold := self._folds.get(name)) is not None}

    def watch(self, session: Session, push: Push) -> Undo:
        """Push each value that an append changes; returns the undo. The first push is the first change: read what there is before."""
        last = self.read(session)

        def changed(batch: Sequence[Event]) -> None:
            for name, value in self.read(session).items():
                if name not in last or last[name] != value:
                    last[name] = value
                    push(name, value)

        return session.subscribe(changed)
