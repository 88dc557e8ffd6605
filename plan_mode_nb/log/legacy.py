"""Older shapes within format version 0, upgraded in memory as deepseek-harness does on load; the source stays as it is.

``turn/start`` once carried a trigger, ``turn/end`` other reasons, messages had no identity, and a steer was an event type of its own. What
looks current and is malformed is left alone, so that the log's rules refuse it instead of taking damage for age.
"""

from __future__ import annotations

from typing import Any, NoReturn

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.events import Event, Replace, SessionId

Data = dict[str, Any]
_FAILURE_OPTIONAL = {"status": (int, float), "providerRetryAfterMs": (int, float), "requestId": (str,)}
_PLAIN_REASONS = ("completed", "blocked", "max-tokens", "interrupted")


class Upgrade:
    """Upgrades the events of one log, handed in from the first to the last (a rewritten result inherits its message's id)."""

    types = frozenset({"turn/start", "turn/end", "steering/message", "user/message", "assistant/message", "tool/result"})

    def __init__(self, session: SessionId) -> None:
        self._session = session
        self._ids: dict[int, object] = {}

    def __call__(self, event: Event) -> Event:
        """The event in its present shape; the same object where nothing is old.

        Raises:
            FormatError: it has an old shape, malformed.
        """
        data = event.data
        if not isinstance(data, dict):
            return self._refuse(event) if event.type == "steering/message" else event
        match event.type:
            case "turn/start" if "trigger" in data:
                return _with(event, self._start(event, data))
            case "turn/end":
                reason = self._reason(event, data)
                return event if reason is None else _with(event, {**data, "reason": reason})
            case "steering/message":
                event = self._steer(event, data)
            case "user/message" if {"content", "source"} <= data.keys() and not {"id", "role", "message"} & data.keys():
                event = _with(event, {**data, "id": self._id(event), "role": "user"})
            case "assistant/message" if "message" not in data and {"content", "provenance"} <= data.keys():
                event = _with(event, self._assistant(event, data))
            case "tool/result" if "message" not in data and {"callId", "content", "isError"} <= data.keys():
                event = _with(event, self._result(event, data))
        self._remember(event)
        return event

    def _id(self, event: Event) -> str:
        return f"legacy-message:{self._session}:{event.seq}"

    def _remember(self, event: Event) -> None:
        message = event.data if event.type == "user/message" else event.data.get("message")
        if isinstance(message, dict):
            self._ids[event.seq] = message.get("id")

    def _start(self, event: Event, data: Data) -> Data:
        trigger = data["trigger"]
        if not _is_turn(data) or data.keys() != {"turn", "trigger"} or not isinstance(trigger, dict):
            self._refuse(event)
        if not isinstance(trigger.get("kind"), str) or not trigger["kind"]:
            self._refuse(event)
        return {"turn": data["turn"]}

    def _reason(self, event: Event, data: Data) -> Data | None:
        """The upgraded reason, None where the present one stands."""
        reason = data.get("reason")
        if not _is_turn(data) or data.keys() != {"turn", "reason"} or not isinstance(reason, dict):
            self._refuse(event)
        bare = reason.keys() == {"kind"}
        match reason.get("kind"):
            case kind if kind in _PLAIN_REASONS:
                return None if bare else self._refuse(event)
            case "aborted" if "reason" not in reason:
                return {"kind": "aborted", "reason": {"kind": "legacy"}} if bare else self._refuse(event)
            case "disposed":
                return {"kind": "aborted", "reason": {"kind": "disposed"}} if bare else self._refuse(event)
            case "error" if "error" not in reason:
                return {"kind": "error", "error": _failure(reason) or self._refuse(event)}
            case kind if isinstance(kind, str):
                return None
        return self._refuse(event)

    def _steer(self, event: Event, data: Data) -> Event:
        wrapped = data.get("message")
        if isinstance(wrapped, dict) and _is_turn(data, least=None) and data.keys() == {"turn", "message"}:
            return _with(event, wrapped, type="user/message")
        if not _is_turn(data, least=None) or data.keys() != {"turn", "content", "source"}:
            self._refuse(event)
        message = {"content": data["content"], "source": data["source"], "id": self._id(event), "role": "user"}
        return _with(event, message, type="user/message")

    def _assistant(self, event: Event, data: Data) -> Data:
        source = {**(data["provenance"] if isinstance(data["provenance"], dict) else {}), "kind": "model"}
        message = {"id": self._id(event), "role": "assistant", "content": data["content"], "source": source}
        return {**{key: value for key, value in data.items() if key not in ("content", "provenance")}, "message": message}

    def _result(self, event: Event, data: Data) -> Data:
        call, replaced = data["callId"], event.surface_op
        block = {"type": "tool-result", "toolCallId": call, "content": data["content"], "isError": data["isError"]}
        message = {
            "id": self._ids.get(replaced.start) if isinstance(replaced, Replace) else self._id(event),
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call},
        }
        return {**{key: value for key, value in data.items() if key not in ("callId", "content", "isError")}, "message": message}

    def _refuse(self, event: Event) -> NoReturn:
        raise FormatError(f"event {event.seq}: {event.type} has an old shape that is damaged; open this log with the version that wrote it")


def _with(event: Event, data: Data, *, type: str | None = None) -> Event:
    return Event(type or event.type, event.seq, event.time, data, event.surface_op, event.source_event_seqs, event.ignorable)


def _is_turn(data: Data, least: int | None = 1) -> bool:
    turn = data.get("turn")
    return isinstance(turn, int) and not isinstance(turn, bool) and (least is None or turn >= least)


def _failure(reason: Data) -> Data | None:
    """The present ``error`` of an old error reason; None when it is none of the two old shapes."""
    step = reason.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        return None
    failure = reason.get("failure")
    if isinstance(failure, dict) and reason.keys() == {"kind", "step", "failure"}:
        required = all(isinstance(failure.get(key), str) for key in ("message", "code"))
        known = failure.keys() <= {"message", "code", *_FAILURE_OPTIONAL}
        return (
            failure
            if required and known and all(isinstance(failure[key], _FAILURE_OPTIONAL[key]) for key in _FAILURE_OPTIONAL if key in failure)
            else None
        )
    code = reason.get("code", "UNKNOWN")
    fits = reason.keys() - {"code"} == {"kind", "step", "message"} and isinstance(reason["message"], str) and isinstance(code, str)
    return {"message": reason["message"], "code": code} if fits else None
