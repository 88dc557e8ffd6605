"""An asynchronous waterfall: listeners in explicit places, each of which asks the rest and makes of their decision what it returns.

About thirty lines of our own, because no plugin library has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeVar

from plan_mode_nb.agent.registry import Undo, entered

Place = Literal["outermost", "default", "innermost"]
PLACES: tuple[Place, ...] = ("outermost", "default", "innermost")
Asked = TypeVar("Asked")
Decided = TypeVar("Decided")


class Waterfall(Generic[Asked, Decided]):
    """Listeners by place; within a place the first registered is the outer one."""

    def __init__(self, last: Callable[[Asked], Decided]) -> None:
        """``last``: the decision where nobody decides."""
        self.last = last
        self._listeners: dict[Place, list[tuple[Callable[[Asked, Callable[[Asked], Awaitable[Decided]]], Awaitable[Decided]]]]] = {
            place: [] for place in PLACES
        }

    def register(
        self, listener: Callable[[Asked, Callable[[Asked], Awaitable[Decided]]], Awaitable[Decided]], place: Place = "default"
    ) -> Undo:
        """Add a listener; returns the undo."""
        return entered(self._listeners[place], listener)

    async def ask(self, asked: Asked) -> Decided:
        """Ask everybody, outermost first; who is registered meanwhile is not asked."""
        ordered = [listener for place in PLACES for (listener,) in self._listeners[place]]

        async def call(index: int, handed: Asked) -> Decided:
            if index == len(ordered):
                return self.last(handed)
            return await ordered[index](handed, lambda rest: call(index + 1, rest))

        return await call(0, asked)
