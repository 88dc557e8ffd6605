"""The payload rules that folds rely on. A type without a row here carries whatever its owner wrote.

Deliberately no more than readers need: deepseek-harness's own logs must pass, older shapes after their upgrade.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log.events import Event

OUTCOMES = ("answered", "dismissed", "cancelled", "unavailable")
ANSWERERS = ("person", "replay", "policy")


class _Wrong(Exception):
    """What is wrong, without the event's name."""


def check_payload(event: Event) -> None:
    """Check an event's data as far as folds read it.

    Raises:
        InvariantError: naming the event, the key and what it must be.
    """
    rule = _RULES.get(event.type)
    if rule is None:
        return
    try:
        if not isinstance(event.data, dict):
            raise _Wrong("data must be an object")
        rule(event.data)
    except _Wrong as wrong:
        raise InvariantError(f"event {event.seq}: {event.type}: {wrong}", seq=event.seq) from None


def _boolean(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(data.get(key), bool):
            raise _Wrong(f"`{key}` must be true or false, not {data.get(key)!r}")


def _integer(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        value = data.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _Wrong(f"`{key}` must be an integer")


def _text(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(data.get(key), str):
            raise _Wrong(f"`{key}` must be a string")


def _object(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict):
        raise _Wrong(f"`{key}` must be an object")
    return value


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise _Wrong(f"`{key}` must be a list")
    return value


def _blocks(message: dict[str, Any]) -> list[Any]:
    blocks = _list(message, "content")
    if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks):
        raise _Wrong("`content` must be a list of blocks, each an object with a `type`")
    return blocks


def _step(data: dict[str, Any]) -> None:
    _integer(data, "turn", "step")


def _turn_end(data: dict[str, Any]) -> None:
    _integer(data, "turn")
    _text(_object(data, "reason"), "kind")


def _user_message(data: dict[str, Any]) -> None:
    _blocks(data)


def _assistant_message(data: dict[str, Any]) -> None:
    _step(data)
    for block in _blocks(_object(data, "message")):
        if block["type"] == "tool-call":
            _text(block, "id", "name", "arguments")
        elif block["type"] in ("text", "reasoning"):
            _text(block, "text")


def _chunk(data: dict[str, Any]) -> None:
    _step(data)
    _text(_object(data, "chunk"), "type")


def _tool_call(data: dict[str, Any]) -> None:
    _step(data)
    _text(data, "callId", "name", "arguments")


def _tool_result(data: dict[str, Any]) -> None:
    _step(data)
    message = _object(data, "message")
    _text(_object(message, "source"), "callId")
    blocks = _blocks(message)
    if len(blocks) != 1 or blocks[0]["type"] != "tool-result":
        raise _Wrong("`message.content` must be one tool-result block")


def _request_header(data: dict[str, Any]) -> None:
    config = _object(_object(data, "header"), "config")
    _text(config, "provider", "model")
    if data.get("reason") not in ("initial", "resume", "change"):
        raise _Wrong("`reason` must be initial, resume or change")


def _todos(data: dict[str, Any]) -> None:
    for todo in _list(data, "todos"):
        if not isinstance(todo, dict):
            raise _Wrong("each of `todos` must be an object")
        _text(todo, "content", "status")


def _asked(data: dict[str, Any]) -> None:
    _text(data, "requestId")
    for question in _list(data, "questions"):
        if not isinstance(question, dict):
            raise _Wrong("each of `questions` must be an object")
        _text(question, "id", "question")


def _answered(data: dict[str, Any]) -> None:
    _text(data, "requestId")
    if data.get("outcome") not in OUTCOMES:
        raise _Wrong(f"`outcome` must be one of {', '.join(OUTCOMES)}")
    if data.get("by") not in ANSWERERS:
        raise _Wrong(f"`by` must be one of {', '.join(ANSWERERS)}")


_RULES: dict[str, Callable[[dict[str, Any]], None]] = {
    "turn/start": lambda data: _integer(data, "turn"),
    "turn/end": _turn_end,
    "step/start": _step,
    "step/end": _step,
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "assistant/chunk": _chunk,
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "request/header": _request_header,
    "todo/write": _todos,
    "plan/mode": lambda data: _boolean(data, "active"),
    "plan/selected": lambda data: _boolean(data, "active", "narrate"),
    "question/asked": _asked,
    "question/answered": _answered,
    "notebook/cell": lambda data: _text(data, "source"),
    "command/run": lambda data: _text(data, "commandId", "name"),
    "command/done": lambda data: _text(data, "commandId", "kind"),
    "sandbox/mode": lambda data: _text(data, "mode"),
    "approval/policy": lambda data: _text(data, "policy"),
    "approval/asked": lambda data: _text(data, "id", "toolName"),
    "approval/decided": lambda data: _text(data, "id", "outcome"),
}
