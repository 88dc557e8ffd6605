"""The pre-step chain: everybody may add to a proposed step or reject it, before its request is derived.

A listener asks the rest first and acts on their decision: ``decision = await call_next(step)`` comes before every append. About thirty
lines of our own, because no plugin library has an asynchronous waterfall with explicit places.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Undo, entered
from plan_mode_nb.log.messages import Message

Place = Literal["outermost", "default", "innermost"]
PLACES: tuple[Place, ...] = ("outermost", "default", "innermost")


@dataclass
class Step:
    """A proposed step. ``messages``: claimed from the inbox, in order. A listener may set ``model`` (a model's name) for this step.

    ``due``: results wait for the model, so the step runs even without a message. ``is_stopped``: whether the turn is being stopped; such
    a step never runs, whatever the chain decides.
    """

    agent: Agent
    turn: int
    step: int
    messages: tuple[Message, ...]
    due: bool = False
    model: str | None = None
    is_stopped: Callable[[], bool] = lambda: False

    def runs(self, entering: Sequence[Message]) -> bool:
        """Whether the step runs once the chain accepted it with these messages."""
        return (self.due or bool(entering)) and not self.is_stopped()


@dataclass(frozen=True)
class Enter:
    """Accepted, with the messages that the step begins with, in order."""

    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Reject:
    """Refused: the turn ends as ``blocked``. ``reason``: one sentence for the person."""

    reason: str


Decision = Enter | Reject
CallNext = Callable[[Step], Awaitable[Decision]]
Listener = Callable[[Step, CallNext], Awaitable[Decision]]


@dataclass
class PreStepChain:
    """Listeners by place; within a place the first registered is the outer one."""

    _listeners: dict[Place, list[tuple[Listener]]] = field(default_factory=lambda: {place: [] for place in PLACES})

    def register(self, listener: Listener, place: Place = "default") -> Undo:
        """Add a listener; returns the undo."""
        return entered(self._listeners[place], listener)

    async def propose(self, step: Step) -> Decision:
        """Ask everybody, outermost first. Nobody there: accepted as proposed."""
        ordered = [listener for place in PLACES for (listener,) in self._listeners[place]]

        async def call(index: int, proposed: Step) -> Decision:
            if index == len(ordered):
                return Enter(proposed.messages)
            return await ordered[index](proposed, lambda rest: call(index + 1, rest))

        return await call(0, step)
