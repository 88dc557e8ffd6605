"""One turn: from one claimed prompt to quiescence. However it ends, its log is closed and says why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from plan_mode_nb.agent.model import window_of
from plan_mode_nb.agent.prestep import Enter, Reject, Step
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import CallInterrupted
from plan_mode_nb.exceptions import ModelError, PlanModeError, StoreError
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.loop.request import Check, derive, log_context, log_header, prove
from plan_mode_nb.loop.step import StepContext, StepEnd, run_step

if TYPE_CHECKING:
    from plan_mode_nb.loop.agent import LoopAgent

_logger = logging.getLogger(__name__)


class LoopConfig(Struct, frozen=True):
    """Frozen: replaced between turns, never within one. ``max_steps``: requests a turn may make before it ends in error."""

    max_steps: int = 50
    record_chunks: bool = False
    check: Check = "new"


class TurnEnd(Struct, frozen=True):
    """How a turn ended: its number, its steps, dsh's reason object, and one sentence for the person where it did not complete."""

    turn: int
    steps: int
    reason: dict[str, Any]
    sentence: str = ""


async def run_turn(agent: LoopAgent, cell: dict[str, Any] | None) -> TurnEnd:
    """Run one turn. ``cell``: the notebook cell it stands in (``{source, cell?}``), logged directly after ``turn/start``.

    Raises:
        asyncio.CancelledError: it was stopped; the log is closed as ``aborted``.
        StoreError: the log itself could not be written.
    """
    session, config = agent.session, agent.config
    turn = session.place.next_turn
    opening: list[Draft] = [draft("turn/start", {"turn": turn})]
    if cell is not None:
        opening.append(draft("notebook/cell", {"turn": turn, **cell}))
    session.append(*opening)
    reason: dict[str, Any] = {"kind": "interrupted"}
    sentence = ""
    try:
        reason, sentence = await _steps(agent, turn, config)
    except asyncio.CancelledError as stop:
        if agent.is_stopped() or isinstance(stop, CallInterrupted):
            reason = {"kind": "aborted", "reason": agent.cancel_cause}
            raise
        _logger.exception("turn %d of session %s was cancelled from inside", turn, session.id)
        reason, sentence = _failed("the turn was cancelled from inside, though nobody stopped it; run the cell again", "UNKNOWN")
    except ModelError as error:
        reason, sentence = _failed(str(error), error.code)
    except PlanModeError as error:
        reason, sentence = _failed(str(error), "REFUSED")
    except Exception as error:
        _logger.exception("turn %d of session %s failed", turn, session.id)
        reason, sentence = _failed(f"{type(error).__name__}: {error}", "UNKNOWN")
    finally:
        steps = _close(agent, turn, reason)
    redactions = agent.seams.redactions
    return TurnEnd(turn, steps, redactions.json(reason), redactions.text(sentence))


def _failed(message: str, code: str) -> tuple[dict[str, Any], str]:
    return {"kind": "error", "error": {"message": message, "code": code}}, message


def _close(agent: LoopAgent, turn: int, reason: dict[str, Any]) -> int:
    """Append what closes the turn, results of calls that have none included; returns how many steps it had.

    Raises:
        StoreError: the log cannot be written. What closes the turn is then owed, so that the next event finds it closed.
    """
    session, place = agent.session, agent.session.place
    closing = closers(session.events)
    try:
        session.append(*closing[:-1], draft("turn/end", {"turn": turn, "reason": agent.seams.redactions.json(reason)}))
    except StoreError:
        session.owe(closing, time=session.events[-1].time)
        raise
    return place.next_step - 1 if place.step is None else place.step


async def _steps(agent: LoopAgent, turn: int, config: LoopConfig) -> tuple[dict[str, Any], str]:
    """Steps until nobody has anything to say; returns the turn's reason and sentence."""
    ended: StepEnd = "continue"
    number, cut_off = 0, False
    while ended == "continue" or agent.inbox.next_step:
        if number >= config.max_steps:
            return _failed(
                f"the turn reached its limit of {config.max_steps} steps; say what to do next, or raise PlanAgent.max_steps", "MAX_STEPS"
            )
        number += 1
        messages, claimed = agent.inbox.claim(first=number == 1)
        agent.session.append(*claimed)
        due = number > 1 and ended == "continue"
        proposed = Step(agent, turn, number, tuple(messages), due, is_stopped=agent.is_stopped)
        decision = await agent.seams.pre_step.propose(proposed)
        if agent.is_stopped():
            raise asyncio.CancelledError
        match decision:
            case Reject(reason):
                return {"kind": "blocked"}, reason
            case Enter(entering) if not proposed.runs(entering):
                break
            case Enter(entering):
                ended = await _enter(agent, config, proposed, entering)
        # max-tokens is sticky: a later step that completes does not make the turn complete (dsh's rule).
        cut_off = cut_off or ended == "max-tokens"
    if cut_off:
        return {"kind": "max-tokens"}, "the answer was cut off at the model's token limit"
    return {"kind": "completed"}, "there was nothing to say to the model" if agent.session.place.next_step == 1 else ""


async def _enter(agent: LoopAgent, config: LoopConfig, step: Step, entering: Sequence[Message]) -> StepEnd:
    session, seams, turn, number = agent.session, agent.seams, step.turn, step.step
    since = agent.proven
    messages = [surface("user/message", seams.redactions.message(message)) for message in entering]
    session.append(draft("step/start", {"turn": turn, "step": number}), *messages)
    model = agent.models(step.model)
    window = await window_of(model)
    prompt = PromptContext(agent)
    log_header(session, seams, model, prompt, resumed=agent.resumed)
    agent.resumed = False
    log_context(session, model, window)
    request = derive(session, seams, prompt)
    prove(request, session, since, config.check)
    agent.proven = len(session)
    context = StepContext(agent, seams, turn, number, config.record_chunks, agent.is_stopped)
    ended = await run_step(context, model, request)
    session.append(draft("step/end", {"turn": turn, "step": number}))
    return ended


__all__ = ["LoopConfig", "Seams", "TurnEnd", "run_turn"]
