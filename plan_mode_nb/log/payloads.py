"""The payload rules that folds rely on. A type without a row here carries whatever its owner wrote.

Deliberately no more than readers need: deepseek-harness's own logs must pass, older shapes after their upgrade.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plan_mode_nb.exceptions import InvariantError, quoted
from plan_mode_nb.log.codec import SAFE_INTEGER
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
            raise _Wrong(f"`{key}` must be true or false, not {quoted(data.get(key))}")


def _integer(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        value = data.get(key)
        if type(value) is not int or not -SAFE_INTEGER <= value <= SAFE_INTEGER:  # a bool is none
            raise _Wrong(f"`{key}` must be a safe integer")


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
    for block in blocks:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _Wrong("`content` must be a list of blocks, each an object with a `type`")
    return blocks


def _step(data: dict[str, Any]) -> None:
    turn, step = data.get("turn"), data.get("step")
    if not (type(turn) is int and type(step) is int and 0 <= turn < SAFE_INTEGER and 0 <= step < SAFE_INTEGER):  # without a loop
        _integer(data, "turn", "step")


def _turn_end(data: dict[str, Any]) -> None:
    _integer(data, "turn")
    _text(_object(data, "reason"), "kind")


def _filled(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        value = data.get(key)
        if not value or not isinstance(value, str):
            raise _Wrong(f"`{key}` must be a string that is not empty")


def _message(message: dict[str, Any], role: str) -> list[Any]:
    """deepseek-harness's identified message, which it would refuse to load otherwise; returns the blocks."""
    _filled(message, "id")
    if message.get("role") != role:
        raise _Wrong(f"the message's `role` must be {role!r}, not {quoted(message.get('role'))}")
    _filled(_object(message, "source"), "kind")
    return _blocks(message)


def _count(data: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if data.get(key) is not None:
            _integer(data, key)


def _usage(usage: dict[str, Any]) -> None:
    _integer(usage, "inputTokens", "outputTokens")
    _count(usage, "cacheReadTokens", "cacheWriteTokens")


def _user_message(data: dict[str, Any]) -> None:
    _message(data, "user")


def _assistant_message(data: dict[str, Any]) -> None:
    _step(data)
    message = _object(data, "message")
    blocks = _message(message, "assistant")
    if message["source"]["kind"] != "model":
        raise _Wrong("the message's `source` must be a model")
    _filled(message["source"], "provider", "model")
    if data.get("usage") is not None:
        _usage(_object(data, "usage"))
    for block in blocks:
        if block["type"] == "tool-call":
            _text(block, "id", "name", "arguments")
        elif block["type"] in ("text", "reasoning"):
            _text(block, "text")


def _chunk(data: dict[str, Any]) -> None:
    _step(data)
    chunk = _object(data, "chunk")
    _text(chunk, "type")
    if chunk["type"] == "usage":
        _usage(_object(chunk, "usage"))


def _tool_call(data: dict[str, Any]) -> None:
    _step(data)
    _text(data, "callId", "name", "arguments")


def _tool_result(data: dict[str, Any]) -> None:
    _step(data)
    message = _object(data, "message")
    blocks = _message(message, "user")
    if message["source"]["kind"] != "tool":
        raise _Wrong("the message's `source` must be a tool")
    _filled(message["source"], "callId")
    if len(blocks) != 1 or blocks[0]["type"] != "tool-result" or not isinstance(blocks[0].get("content"), list):
        raise _Wrong("`message.content` must be one tool-result block with its own `content` list")
    if blocks[0].get("toolCallId") != message["source"]["callId"]:
        raise _Wrong("`toolCallId` must be the `callId` of the message's source")


def _inside_start(data: dict[str, Any]) -> None:
    _text(data, "subCallId", "name")


def _inside(data: dict[str, Any]) -> None:
    _inside_start(data)
    if "content" in data:
        _blocks(data)


def _request_header(data: dict[str, Any]) -> None:
    header = _object(data, "header")
    config = _object(header, "config")
    _filled(config, "provider", "model")
    if config.get("reasoningEffort") is not None:
        _filled(config, "reasoningEffort")
    if data.get("reason") == "fallback":
        raise _Wrong("the `reason` fallback is of an old format that is no longer read")
    defaults = header.get("adapterDefaults", {})
    if not isinstance(defaults, dict) or any(
        key not in ("reasoningEffort", "maxTokens") or marker is not True or config.get(key) is None for key, marker in defaults.items()
    ):
        raise _Wrong("`adapterDefaults` may mark reasoningEffort and maxTokens of `config`, each with true")


def _request_context(data: dict[str, Any]) -> None:
    _filled(data, "provider", "model")
    _count(data, "contextWindow")


def _compaction(data: dict[str, Any]) -> None:
    _count(data, "turn")
    if data.get("usage") is not None:
        _usage(_object(data, "usage"))


def _spliced(data: dict[str, Any]) -> None:
    if data.get("target") not in ("next-turn", "next-step"):
        raise _Wrong("`target` must be next-turn or next-step")
    _integer(data, "start")
    _count(data, "removedCount")
    if not all(isinstance(message, dict) for message in _list(data, "inserted")):
        raise _Wrong("`inserted` must be a list of messages")


def _todos(data: dict[str, Any]) -> None:
    for todo in _list(data, "todos"):
        if not isinstance(todo, dict):
            raise _Wrong("each of `todos` must be an object")
        _text(todo, "content", "status")


def _asked(data: dict[str, Any]) -> None:
    _text(data, "requestId")
    if data.get("callId") is not None:
        _text(data, "callId")
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
    "tool/code-dispatch-start": _inside_start,
    "tool/code-dispatch": _inside,
    "request/header": _request_header,
    "request/context": _request_context,
    "todo/write": _todos,
    "plan/mode": lambda data: _boolean(data, "active"),
    "plan/selected": lambda data: _boolean(data, "active", "narrate"),
    "agent/inbox/spliced": _spliced,
    "compaction/start": _compaction,
    "compaction/summary": _compaction,
    "compaction/end": _compaction,
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
