"""The todo list: the last ``todo/write`` of the current turn; each ``turn/start`` clears it (deepseek-harness's projection)."""

from __future__ import annotations

from typing import Any, Final

from plan_mode_nb.log.events import Event

Todos = list[dict[str, Any]] | None
"""``[{content, status: "pending" | "in_progress" | "completed"}]``, or None when the turn has written none."""


class TodosFold:
    """Events -> the todo list."""

    types: Final = frozenset({"todo/write", "turn/start"})

    def start(self) -> Todos:
        """No list."""
        return None

    def step(self, state: Todos, event: Event) -> Todos:
        """The last write wins; a new turn starts without a list."""
        return event.data["todos"] if event.type == "todo/write" else None

    def value(self, state: Todos) -> Todos:
        """The list, in the order written."""
        return state


TODOS: Final = TodosFold()
