"""The tool calls of one answer: prepare, execute, finalize, one after the other in the order the model gave them.

One at a time, because the notebook has one namespace and one person; so a result is committed when it completes, an approval before
whatever the same answer asked for after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.dispatch import NOT_DISPATCHED, ended
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, ToolCall, ToolResult, error_result
from plan_mode_nb.exceptions import LogError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import Block, tool_result_message
from plan_mode_nb.log.vocabulary import draft, surface

_logger = logging.getLogger(__name__)


async def run_calls(
    agent: Agent, seams: Seams, turn: int, step: int, blocks: Sequence[Block], is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Run every tool-call block; each ends as one ``tool/result``, whatever happens. ``is_stopped``: whether the turn is being stopped.

    Raises:
        asyncio.CancelledError: the turn was stopped; the running call has its truthful result, the rest say that they never ran.
    """
    stop: asyncio.CancelledError | None = None
    for block in blocks:
        call = ToolCall(block["name"], block["arguments"], block["id"], turn, step, agent)
        seq = _append_call(agent, call)
        outcome = Outcome(NOT_DISPATCHED)
        if stop is None:
            outcome, stop = await ended(seams.tools, call, is_stopped)
        _append_result(agent, seams, call, seq, outcome)
    if stop is not None:
        raise stop


def _append_call(agent: Agent, call: ToolCall) -> int:
    data = {"turn": call.turn, "step": call.step, "callId": call.call_id, "name": call.name, "arguments": call.arguments}
    return agent.session.append(draft("tool/call", data))[0].seq


def _append_result(agent: Agent, seams: Seams, call: ToolCall, seq: int, outcome: Outcome) -> None:
    """The result and the events that come with it: one append. A result that cannot be logged becomes an error that can."""
    try:
        agent.session.append(*outcome.events, _result(seams, call, seq, outcome.result))
    except LogError as error:
        _logger.exception("the result of %s (call %s) cannot be logged", call.name, call.call_id)
        failed = error_result(f"the result of {call.name} could not be kept: {error}", name=type(error).__name__, code="TOOL_CRASHED")
        agent.session.append(_result(seams, call, seq, failed))


def _result(seams: Seams, call: ToolCall, seq: int, result: ToolResult) -> Draft:
    content = seams.redactions.blocks(result.content)
    message = tool_result_message(call.call_id, content, id=seams.new_id(), is_error=result.is_error)
    data = {"turn": call.turn, "step": call.step, "message": message}
    if result.error is not None:
        data["error"] = result.error
    if result.meta is not None:
        data["meta"] = seams.redactions.json(result.meta)
    return surface("tool/result", data, sources=[seq])
