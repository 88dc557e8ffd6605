"""One turn: from one claimed prompt to quiescence. However it ends, its log is closed and says why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.prestep import Enter, Reject, Step
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import ModelError, PlanModeError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.loop.request import Check, derive, log_header, prove
from plan_mode_nb.loop.step import StepContext, StepEnd, run_step

if TYPE_CHECKING:
    from plan_mode_nb.loop.agent import LoopAgent

_logger = logging.getLogger(__name__)
Models = Callable[[str | None], Model]
"""A model's name -> the model; None -> the one that the deployment chose. Raises ModelError or ConfigError with a sentence."""


@dataclass(frozen=True)
class LoopConfig:
    """Frozen: replaced between turns, never within one. ``max_steps``: requests a turn may make before it ends in error."""

    max_steps: int = 50
    record_chunks: bool = False
    check: Check = "new"


@dataclass(frozen=True)
class TurnEnd:
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
    except asyncio.CancelledError:
        reason = {"kind": "aborted", "reason": agent.cancel_cause}
        raise
    except ModelError as error:
        reason, sentence = _failed(str(error), error.code)
    except PlanModeError as error:
        reason, sentence = _failed(str(error), "REFUSED")
    except Exception as error:
        _logger.exception("turn %d of session %s failed", turn, session.id)
        reason, sentence = _failed(f"{type(error).__name__}: {error}", "UNKNOWN")
    finally:
        steps = _close(agent, turn, reason)
    return TurnEnd(turn, steps, reason, sentence)


def _failed(message: str, code: str) -> tuple[dict[str, Any], str]:
    return {"kind": "error", "error": {"message": message, "code": code}}, message


def _close(agent: LoopAgent, turn: int, reason: dict[str, Any]) -> int:
    """Append what closes the turn; returns how many steps it had."""
    place = agent.session.place
    drafts = [draft("turn/end", {"turn": turn, "reason": reason})]
    if place.step is not None:
        drafts.insert(0, draft("step/end", {"turn": turn, "step": place.step}))
    agent.session.append(*drafts)
    return place.next_step - 1 if place.step is None else place.step


async def _steps(agent: LoopAgent, turn: int, config: LoopConfig) -> tuple[dict[str, Any], str]:
    """Steps until nobody has anything to say; returns the turn's reason and sentence."""
    ended: StepEnd = "continue"
    number = 0
    while ended == "continue" or agent.inbox.next_step:
        if number >= config.max_steps:
            return _failed(
                f"the turn reached its limit of {config.max_steps} steps; say what to do next, or raise PlanAgent.max_steps", "MAX_STEPS"
            )
        number += 1
        messages, claimed = agent.inbox.claim(first=number == 1)
        agent.session.append(*claimed)
        proposed = Step(agent, turn, number, tuple(messages))
        decision = await agent.seams.pre_step.propose(proposed)
        match decision:
            case Reject(reason):
                return {"kind": "blocked"}, reason
            case Enter(messages=()) if number == 1:
                return {"kind": "completed"}, "there was nothing to say to the model"
            case Enter(entering):
                result = await _enter(agent, turn, number, [surface("user/message", message) for message in entering], proposed.model)
        # max-tokens is sticky: a later step that completes does not make the turn complete (dsh's rule).
        ended = "max-tokens" if ended == "max-tokens" and result == "completed" else result
    return {"kind": ended}, "the answer was cut off at the model's token limit" if ended == "max-tokens" else ""


async def _enter(agent: LoopAgent, turn: int, number: int, messages: list[Draft], model_name: str | None) -> StepEnd:
    session, seams = agent.session, agent.seams
    since = agent.proven
    session.append(draft("step/start", {"turn": turn, "step": number}), *messages)
    model = agent.models(model_name)
    log_header(session, seams, model, PromptContext(agent), resumed=agent.resumed)
    agent.resumed = False
    request = derive(session, seams)
    prove(request, session, since, agent.config.check)
    agent.proven = len(session)
    ended = await run_step(StepContext(agent, seams, turn, number, agent.config.record_chunks), model, request)
    session.append(draft("step/end", {"turn": turn, "step": number}))
    return ended


__all__ = ["LoopConfig", "Models", "Seams", "TurnEnd", "run_turn"]
