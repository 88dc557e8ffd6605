"""Turns, their steps and how they ended."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, field

from plan_mode_nb.folds.view import View
from plan_mode_nb.log.events import Event


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One turn. ``end``: its reason object, None while open. ``start_seq``/``end_seq``: its first and last event."""

    turn: int
    steps: int
    start_seq: int
    end: dict[str, Any] | None = None
    end_seq: int | None = None

    def to_json(self) -> dict[str, Any]:
        """``{turn, steps, end}`` as ``fold --json`` prints it."""
        return {"turn": self.turn, "steps": self.steps, "end": self.end}


class Turns(Struct, frozen=True):
    """``closed``: ended turns, oldest first. ``open``: the turn that is running or was interrupted; ``step``: its open step."""

    closed: View[Turn]
    open: Turn | None = None
    step: int | None = None

    def __len__(self) -> int:
        return len(self.closed) + (self.open is not None)

    def to_json(self) -> list[dict[str, Any]]:
        """All turns, oldest first."""
        return [turn.to_json() for turn in (*self.closed, *([self.open] if self.open else []))]


class _Turns(Struct):
    closed: list[Turn] = field(default_factory=list)
    turn: int | None = None
    start_seq: int = 0
    steps: int = 0
    step: int | None = None


class TurnsFold:
    """Events -> :class:`Turns`."""

    types: Final = frozenset({"turn/start", "turn/end", "step/start", "step/end"})

    def start(self) -> _Turns:
        """No turn."""
        return _Turns()

    def step(self, state: _Turns, event: Event) -> _Turns:
        """The state after one more boundary."""
        data = event.data
        match event.type:
            case "turn/start":
                state.turn, state.start_seq, state.steps, state.step = data["turn"], event.seq, 0, None
            case "turn/end":
                state.closed.append(Turn(data["turn"], state.steps, state.start_seq, data["reason"], event.seq))
                state.turn = state.step = None
            case "step/start":
                state.steps, state.step = state.steps + 1, data["step"]
            case "step/end":
                state.step = None
        return state

    def value(self, state: _Turns) -> Turns:
        """The turns now."""
        running = None if state.turn is None else Turn(state.turn, state.steps, state.start_seq)
        return Turns(View(state.closed), running, state.step)


TURNS: Final = TurnsFold()
