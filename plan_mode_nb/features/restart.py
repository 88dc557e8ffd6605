"""Telling the model, once, that the kernel is another one: restored history does not mean restored variables (log.md, Reading it back).

A reopened log marks the restart by ``session/end-seed``. A fork has one too, at the end of its seed, and keeps its kernel. A session that
was never in a notebook, such as one of deepseek-harness, made no variables that could be gone.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct

from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import notice_source, user_message
from plan_mode_nb.log.session import Session

PLUGIN: Final = "restart"
NOTICE: Final = "The notebook's kernel was restarted since the last turn: variables and imports that earlier turns made may be gone."


class _Restarts(Struct):
    """``in_notebook``: a cell opened a turn or ran a command; ``asked``: the model was asked since; ``marks``: restarts since then;
    ``told``: how many of them it was told of; ``forked``: a fork's own mark was seen."""

    in_notebook: bool = False
    asked: bool = False
    marks: int = 0
    told: int = 0
    forked: bool = False


class RestartFold:
    """Events -> whether a restart waits to be told. ``seed_length``: a fork's; behind its seed, and behind what closes the turn of it,
    its own mark stands; None for no fork."""

    types: Final = frozenset({"session/end-seed", "request/header", "user/message", "notebook/cell"})

    def __init__(self, seed_length: int | None) -> None:
        self._seed_length = seed_length

    def start(self) -> _Restarts:
        """Nothing happened."""
        return _Restarts()

    def step(self, state: _Restarts, event: Event) -> _Restarts:
        """The state after one more event."""
        match event.type:
            case "notebook/cell":
                state.in_notebook = True
            case "request/header":
                state.asked = state.asked or state.in_notebook
            case "session/end-seed" if self._is_own(state, event.seq):
                state.forked = True
            case "session/end-seed":
                state.forked = state.forked or event.seq + 1 == self._seed_length  # a seed that ends in one gets no other
                state.marks += state.asked
            case "user/message" if event.data.get("source", {}).get("plugin") == PLUGIN:
                state.told = state.marks
        return state

    def _is_own(self, state: _Restarts, seq: int) -> bool:
        return not state.forked and self._seed_length is not None and seq >= self._seed_length

    def value(self, state: _Restarts) -> bool:
        """Whether the model has to be told."""
        return state.marks > state.told


def install(seams: Seams) -> Undo:
    """Add the pre-step that tells; returns the undo."""
    folds: dict[str, RestartFold] = {}

    def fold_of(session: Session) -> RestartFold:
        seed = session.header.seed_length
        return folds.setdefault(session.id, RestartFold(None if seed is UNSET else seed))

    async def pre_step(step: Step, call_next: CallNext) -> Decision:
        decision = await call_next(step)
        match decision:
            case Reject():
                return decision
            case Enter(messages):
                session = step.agent.session
                if not session.fold(fold_of(session)) or not step.runs(messages):
                    return decision
                notice = user_message(NOTICE, id=seams.new_id(), source=notice_source(PLUGIN, NOTICE))
                return Enter((notice, *messages))

    return seams.pre_step.register(pre_step)
