"""Small logs by hand: a session whose clock counts, and one draft per kind of event, in the shapes that the log keeps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from plan_mode_nb.log.events import Draft, Header, SessionId
from plan_mode_nb.log.messages import Block, assistant_message, text_block, tool_result_message, user_message
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.log.vocabulary import draft, surface

FIRST_TIME = 1_764_510_000_000


def new_session(id: str = "s", *, lines: Sequence[str] = (), sink: Sink | None = None, header: Header | None = None) -> Session:
    """A session whose clock gives 1764510000000 and one millisecond more each time."""
    ticks = itertools.count(FIRST_TIME)
    own = Header(id=SessionId(id), created_at=FIRST_TIME) if header is None else header
    return Session(own, clock=lambda: next(ticks), lines=lines, sink=sink)


def turn_start(turn: int) -> Draft:
    """A turn begins."""
    return draft("turn/start", {"turn": turn})


def turn_end(turn: int, kind: str = "completed") -> Draft:
    """A turn ends; ``kind`` of its reason (aborted: by its user)."""
    reason = {"kind": kind, "reason": {"kind": "user"}} if kind == "aborted" else {"kind": kind}
    return draft("turn/end", {"turn": turn, "reason": reason})


def step_start(turn: int, step: int) -> Draft:
    """A step begins."""
    return draft("step/start", {"turn": turn, "step": step})


def step_end(turn: int, step: int) -> Draft:
    """A step ends."""
    return draft("step/end", {"turn": turn, "step": step})


def user(text: str = "hello", *, id: str = "u", source: dict[str, Any] | None = None) -> Draft:
    """A message on the user's side."""
    return surface("user/message", user_message(text, id=id, source=source or {"kind": "user"}))


def notice(text: str = "The user switched this session to plan mode.", *, id: str = "n") -> Draft:
    """Plan mode's notice."""
    return user(text, id=id, source={"kind": "plugin", "plugin": "plan-mode", "form": "notice", "summary": text})


def assistant(turn: int, step: int, *blocks: Block | str, id: str = "a", usage: dict[str, int] | None = None) -> Draft:
    """What the model answered: texts and blocks."""
    content = [text_block(block) if isinstance(block, str) else block for block in blocks]
    data: dict[str, Any] = {"turn": turn, "step": step, "message": assistant_message(content, id=id, provider="p", model="m")}
    return surface("assistant/message", data if usage is None else {**data, "usage": usage}, sources=[])


def call_block(call_id: str, name: str = "tool", arguments: Any = None) -> Block:
    """A tool call inside an assistant message."""
    return {"type": "tool-call", "id": call_id, "name": name, "arguments": json.dumps(arguments or {})}


def tool_call(turn: int, step: int, call_id: str, name: str = "tool", arguments: Any = None) -> Draft:
    """A call that started."""
    return draft("tool/call", {"turn": turn, "step": step, "callId": call_id, "name": name, "arguments": json.dumps(arguments or {})})


def tool_result(turn: int, step: int, call_id: str, text: str = "done", *, is_error: bool = False, id: str | None = None) -> Draft:
    """The result of a call."""
    message = tool_result_message(call_id, [text_block(text)], id=id or f"r-{call_id}", is_error=is_error)
    data: dict[str, Any] = {"turn": turn, "step": step, "message": message}
    return surface("tool/result", {**data, "error": {"name": "Error", "code": "TOOL"}} if is_error else data)


def request_header(reason: str = "initial", **header: Any) -> Draft:
    """The header of a request; further keys (``system``, ``tools``) join it."""
    return draft("request/header", {"header": {"config": {"provider": "p", "model": "m"}, **header}, "reason": reason})


def plan_mode(active: bool) -> Draft:
    """Plan mode is in force, or is not."""
    return draft("plan/mode", {"active": active})


def plan_selected(active: bool, *, narrate: bool = True) -> Draft:
    """Plan mode is selected, or leaving it is."""
    return draft("plan/selected", {"active": active, "narrate": narrate})


def command_run(command_id: str, args: str = "", *, name: str = "plan") -> Draft:
    """A command starts."""
    return draft("command/run", {"commandId": command_id, "name": name, "args": args, "source": {"kind": "user"}})


def command_done(command_id: str, kind: str = "success") -> Draft:
    """A command ended."""
    return draft("command/done", {"commandId": command_id, "kind": kind, "text": ""})


def review_asked(request_id: str, plan: str, *, call_id: str | None = None) -> Draft:
    """A plan is put before a person."""
    question: dict[str, Any] = {
        "id": "plan-review",
        "question": "Approve this plan and leave plan mode?",
        "detail": plan,
        "options": [{"label": "Approve"}, {"label": "Keep planning"}],
        "intent": {"kind": "plan-review", "approve": "Approve"},
    }
    data: dict[str, Any] = {"requestId": request_id, "questions": [question]}
    return draft("question/asked", data if call_id is None else {**data, "callId": call_id})


def question_answered(request_id: str, outcome: str = "answered", *, by: str = "person") -> Draft:
    """A question is settled."""
    return draft("question/answered", {"requestId": request_id, "outcome": outcome, "by": by})


def usage_chunk(turn: int, step: int, input_tokens: int, output_tokens: int) -> Draft:
    """An early report of tokens."""
    usage = {"inputTokens": input_tokens, "outputTokens": output_tokens}
    return draft("assistant/chunk", {"turn": turn, "step": step, "chunk": {"type": "usage", "usage": usage}})


def spliced(target: str, start: int, *inserted: str, removed: int = 0) -> Draft:
    """The inbox changed: messages (by id) put in, and some taken out."""
    messages = [user_message(each, id=each) for each in inserted]
    return draft("agent/inbox/spliced", {"target": target, "start": start, "removedCount": removed, "inserted": messages})
