"""Closing a log whose last turn was cut off: exactly deepseek-harness's crash repair, so that both continue the same way.

Calls without a result get an error result first (a provider refuses a dangling call), in the assistant's order; then the open step ends,
then the turn, as interrupted. Nothing that was streamed becomes a message, and a question that was open stays unresolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from plan_mode_nb.log.events import Draft, Event
from plan_mode_nb.log.growing import Events
from plan_mode_nb.log.invariants import TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN
from plan_mode_nb.log.vocabulary import draft, surface

_TURN, _TURN_START = '{"type":"turn/', '{"type":"turn/start"'
OUTCOME_UNKNOWN = (
    "The tool call was interrupted after it was recorded, but no result was durably recorded. Its outcome is unknown. Decide whether to "
    "retry from the tool semantics: retry only if the operation is read-only or idempotent; if it may have side effects, first verify "
    "external state or ask the user. Do not retry blindly."
)
_NOT_STARTED = "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed."


class _Tail(Struct):
    """The open turn and step, and each call that has no result: the step that asked for it and the seq of its ``tool/call`` if any."""

    turn: int | None = None
    step: int | None = None
    calls: dict[str, tuple[int, int | None]] = field(default_factory=dict)


def closers(events: Sequence[Event], answers: Mapping[str, str] = MappingProxyType({})) -> list[Draft]:
    """What closes the log's open turn, in order; empty when none is open. ``answers``: a text for a call's result in place of the usual.

    All of them carry the time of the last event: ``session.owe(closers(session.events), time=session.events[-1].time)``. A
    :class:`~plan_mode_nb.log.session.Session` does this by itself before its first new event.
    """
    tail = _tail(events[_last_turn(events) :])
    if tail.turn is None:
        return []
    drafts = []
    for seq, (call, (step, call_seq)) in enumerate(tail.calls.items(), start=len(events)):
        drafts.append(_result(call, tail.turn, step, call_seq, seq, answers.get(call)))
    if tail.step is not None:
        drafts.append(draft("step/end", {"turn": tail.turn, "step": tail.step}))
    drafts.append(draft("turn/end", {"turn": tail.turn, "reason": {"kind": "interrupted"}}))
    return drafts


def is_open(lines: Sequence[str]) -> bool:
    """Whether the last turn of a log's lines has not ended, told without decoding them."""
    last = next((line for line in reversed(lines) if line.startswith(_TURN)), "")
    return last.startswith(_TURN_START)


def _last_turn(events: Sequence[Event]) -> int:
    """Where the last turn starts: what came before cannot be open."""
    type_of = events.type if isinstance(events, Events) else lambda seq: events[seq].type
    return next((seq for seq in range(len(events) - 1, -1, -1) if type_of(seq) == "turn/start"), len(events))


def _tail(events: Iterable[Event]) -> _Tail:
    tail = _Tail()
    for event in events:
        data = event.data
        match event.type:
            case "turn/start":
                tail = _Tail(turn=data["turn"])
            case "turn/end":
                tail = _Tail()
            case "step/start":
                tail.step = data["step"]
            case "step/end":
                tail.step, tail.calls = None, {}
            case "assistant/message":
                asked = [block["id"] for block in data["message"]["content"] if block["type"] == "tool-call"]
                tail.calls.update(dict.fromkeys(asked, (data["step"], None)))
            case "tool/call" if data["callId"] in tail.calls:
                tail.calls[data["callId"]] = (tail.calls[data["callId"]][0], event.seq)
            case "tool/result":
                tail.calls.pop(data["message"]["source"]["callId"], None)
    return tail


def _result(call: str, turn: int, step: int, call_seq: int | None, seq: int, answer: str | None) -> Draft:
    started = call_seq is not None
    is_answered = started and answer is not None
    block = {
        "type": "tool-result",
        "toolCallId": call,
        "isError": not is_answered,
        "content": [{"type": "text", "text": answer or (OUTCOME_UNKNOWN if started else _NOT_STARTED)}],
    }
    message = {
        "id": f"interrupted-tool-result-{call}-{seq}",
        "role": "user",
        "source": {"kind": "tool", "callId": call},
        "content": [block],
    }
    error: dict[str, Any] = (
        {"name": "ToolOutcomeUnknownError", "code": TOOL_OUTCOME_UNKNOWN}
        if started
        else {"name": "ToolNotStartedError", "code": TOOL_NOT_STARTED}
    )
    data = {"turn": turn, "step": step, "message": message, **({} if is_answered else {"error": error})}
    return surface("tool/result", data, sources=None if call_seq is None else [call_seq])
