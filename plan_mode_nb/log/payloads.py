"""The rules of payloads: most types of event have a type of payload, some a rule between keys; the rest carry what their owner wrote."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import UNSET, ValidationError, convert

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log import payload_types as types
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.faults import sentence


class _Wrong(Exception):
    """What is wrong, without the event's name."""


_ANSWER_BLOCKS: Final[dict[str, type[types.Object]]] = {"text": types.Text, "reasoning": types.Text, "tool-call": types.Call}


def _assistant_message(data: Any) -> None:
    convert(data, types.AssistantMessage)
    for block in data["message"]["content"]:
        kind = _ANSWER_BLOCKS.get(block["type"])
        if kind is not None:
            convert(block, kind)


def _chunk(data: Any) -> None:
    if convert(data, types.Chunk).chunk.type == "usage":
        convert(data["chunk"], types.UsageReport)


def _tool_result(data: Any) -> None:
    message = convert(data, types.ToolResult).message
    if len(message.content) != 1:
        raise _Wrong("`message.content` must be one tool-result block")
    if message.content[0].tool_call_id != message.source.call_id:
        raise _Wrong("`toolCallId` must be the `callId` of the message's source")


def _request_header(data: Any) -> None:
    request = convert(data, types.RequestHeader)
    if request.reason == "fallback":
        raise _Wrong("the `reason` fallback is of an old format that is no longer read")
    config, defaults = request.header.config, request.header.adapter_defaults
    if defaults is not UNSET:
        marked = ((defaults.reasoning_effort, config.reasoning_effort), (defaults.max_tokens, config.max_tokens))
        if any(marker is False or (marker is True and value is None) for marker, value in marked):
            raise _Wrong("`adapterDefaults` may mark reasoningEffort and maxTokens of `config`, each with true")


_TYPES: Final[dict[str, type[types.Object]]] = {
    "turn/start": types.Turn,
    "turn/end": types.TurnEnd,
    "step/start": types.Step,
    "step/end": types.Step,
    "user/message": types.UserMessage,
    "tool/call": types.ToolCall,
    "tool/code-dispatch-start": types.InsideStart,
    "tool/code-dispatch": types.Inside,
    "request/context": types.RequestContext,
    "todo/write": types.Todos,
    "plan/mode": types.PlanMode,
    "plan/selected": types.PlanSelected,
    "agent/inbox/spliced": types.Spliced,
    "compaction/start": types.Compaction,
    "compaction/summary": types.Compaction,
    "compaction/end": types.Compaction,
    "question/asked": types.Asked,
    "question/answered": types.Answered,
    "notebook/cell": types.Cell,
    "command/run": types.CommandRun,
    "command/done": types.CommandDone,
    "sandbox/mode": types.SandboxMode,
    "approval/policy": types.ApprovalPolicy,
    "approval/asked": types.ApprovalAsked,
    "approval/decided": types.ApprovalDecided,
}
"""Events whose type says all."""
_CHECKS: Final[dict[str, Callable[[Any], object]]] = {
    **{kind: partial(convert, type=payload) for kind, payload in _TYPES.items()},
    "assistant/message": _assistant_message,
    "assistant/chunk": _chunk,
    "tool/result": _tool_result,
    "request/header": _request_header,
}
"""How each type of event is checked; the last four have a rule between two keys, or one that depends on a value."""


def check_payload(event: Event) -> None:
    """Check an event's data as far as folds read it.

    Raises:
        InvariantError: naming the event, the key and what it must be.
    """
    check = _CHECKS.get(event.type)
    if check is None:
        return
    try:
        check(event.data)
    except (ValidationError, _Wrong) as fault:
        wrong = sentence(fault, "data") if isinstance(fault, ValidationError) else fault
        raise InvariantError(f"event {event.seq}: {event.type}: {wrong}", seq=event.seq) from None
