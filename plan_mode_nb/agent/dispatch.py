"""A call that is under way: by the model, or by another call's program. However it ends, it has one result, and the log has both sides.

A call inside a call is logged as deepseek-harness logs those of its code mode: ``tool/code-dispatch-start`` before it runs, then
``tool/code-dispatch`` with the whole result, in one append with the events that must be true together with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, ToolCall, ToolError, ToolRegistry, ToolResult, error_result
from plan_mode_nb.exceptions import LogError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.vocabulary import draft

_logger = logging.getLogger(__name__)
INSIDE_START: Final = "tool/code-dispatch-start"
INSIDE: Final = "tool/code-dispatch"
NOT_DISPATCHED: Final = error_result("tool call aborted before dispatch", name="AbortError", code="TOOL_ABORTED_BEFORE_DISPATCH")
CANCELLED_INSIDE: Final = error_result(
    "the tool was cancelled from inside; nobody stopped the turn", name="CancelledError", code="TOOL_CRASHED"
)
INTERRUPTED: Final = error_result(
    "the call was interrupted; what it had done until then stays done", name="AbortError", code="TOOL_INTERRUPTED"
)
Ended = tuple[ToolResult, asyncio.CancelledError | None]
"""A result, and the stop of the turn that came meanwhile. Whoever has it raises it, once it has said what it did itself."""


async def ended(tools: ToolRegistry, call: ToolCall, is_stopped: Callable[[], bool]) -> tuple[Outcome, asyncio.CancelledError | None]:
    """The call's outcome, and the stop that came meanwhile: also where the tool kept it to itself. A cancellation of its own is none."""
    try:
        outcome = await tools.run(call)
    except CallInterrupted as stop:
        return stop.outcome, stop
    except asyncio.CancelledError as stop:
        return (Outcome(INTERRUPTED), stop) if is_stopped() else (Outcome(CANCELLED_INSIDE), None)
    return outcome, asyncio.CancelledError() if is_stopped() else None


def inside_id(call_id: str, number: int) -> str:
    """The id of a call's ``number``-th call of its own, counted from 1 (dsh's form)."""
    return f"{call_id}:code:{number}"


def inside_number(data: dict[str, Any]) -> int:
    """Which of its call's own calls an event of one is about; 0 for an id that nothing here made."""
    number = str(data.get("subCallId")).rpartition(":")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0


async def call_inside(seams: Seams, outer: ToolCall, number: int, name: str, arguments: Any) -> Ended:
    """Run a tool for a call that is running, under every limit that holds for the model's own calls. Secrets are taken out both ways.

    ``arguments``: a JSON value. ``number``: from 1, in the order of the calls of ``outer``.

    Raises:
        ToolError: the call cannot be made or logged; nothing ran.
    """
    agent = outer.agent
    if agent is None or outer.call_id not in agent.session.place.calls:
        raise ToolError(f"{name} was not called: its {outer.name} is over, or runs in no turn", code="CALL_IS_OVER")
    given = seams.redactions.json(arguments)
    call = replace(outer, name=name, arguments=_written(name, given), call_id=inside_id(outer.call_id, number))
    about = {"rootCallId": outer.call_id, "parentCallId": outer.call_id, "subCallId": call.call_id, "name": name, "arguments": given}
    try:
        agent.session.append(draft(INSIDE_START, about))
    except LogError as error:
        raise ToolError(f"the arguments of {name} cannot be kept: {error}; send plain JSON values", code="BAD_ARGUMENTS") from None
    outcome, stop = await ended(seams.tools, call, _is_cancelled)
    return _kept(seams, call, about, outcome), stop


def _written(name: str, arguments: Any) -> str:
    try:
        written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ToolError(f"the arguments of {name} are no JSON ({error}); send plain JSON values", code="BAD_ARGUMENTS") from None
    return written


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _kept(seams: Seams, call: ToolCall, about: dict[str, Any], outcome: Outcome) -> ToolResult:
    """Append the result and what comes with it. A result that cannot be logged becomes an error that can, without those events."""
    assert call.agent is not None
    session, result = call.agent.session, _redacted(seams, outcome.result)
    try:
        session.append(*outcome.events, _inside(about, result))
    except LogError as error:
        _logger.exception("the result of %s (call %s) cannot be logged", call.name, call.call_id)
        result = error_result(f"the result of {call.name} could not be kept: {error}", name=type(error).__name__, code="TOOL_CRASHED")
        session.append(_inside(about, result))
    return result


def _redacted(seams: Seams, result: ToolResult) -> ToolResult:
    content, json_of = tuple(seams.redactions.blocks(result.content)), seams.redactions.json
    return replace(result, content=content, value=json_of(result.value), meta=json_of(result.meta))


def _inside(about: dict[str, Any], result: ToolResult) -> Draft:
    shown = {} if result.meta is None else {"meta": result.meta}
    return draft(INSIDE, {**about, "isError": result.is_error, "content": list(result.content), **shown})
