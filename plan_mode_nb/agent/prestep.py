"""The pre-step chain: everybody may add to a proposed step or reject it, before its request is derived.

A listener asks the rest first and acts on their decision: ``decision = await call_next(step)`` comes before every append.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.waterfall import PLACES, Place, Waterfall
from plan_mode_nb.log.messages import Message


class Step(Struct):
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


class Enter(Struct, frozen=True):
    """Accepted, with the messages that the step begins with, in order."""

    messages: tuple[Message, ...]


class Reject(Struct, frozen=True):
    """Refused: the turn ends as ``blocked``. ``reason``: one sentence for the person."""

    reason: str


Decision: TypeAlias = Enter | Reject
CallNext = Callable[[Step], Awaitable[Decision]]
Listener = Callable[[Step, CallNext], Awaitable[Decision]]


class PreStepChain(Waterfall[Step, Decision]):
    """Nobody there: a step is accepted as proposed."""

    def __init__(self) -> None:
        super().__init__(lambda step: Enter(step.messages))

    async def propose(self, step: Step) -> Decision:
        """Ask everybody, outermost first."""
        return await self.ask(step)


__all__ = ["PLACES", "CallNext", "Decision", "Enter", "Listener", "Place", "PreStepChain", "Reject", "Step"]
