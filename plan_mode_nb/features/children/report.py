"""What became of a child's turn, read from its log: its last words, and one sentence where it failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import text_of
from plan_mode_nb.log.session import Session


class Report(Struct, frozen=True):
    """``words``: of its last message that has any, "" without. ``failure``: a sentence, "" for a turn that completed."""

    words: str
    steps: int
    calls: int
    failure: str


def report_of(session: Session) -> Report:
    """The report of a child's own turn; what it was forked with is not its own."""
    seed = session.header.seed_length
    own = session.events[0 if seed is UNSET else seed :]
    first = next((place for place, event in enumerate(own) if event.type == "turn/start"), len(own))
    turn = own[first:]
    reason = next((event.data["reason"] for event in turn if event.type == "turn/end"), None)
    count: dict[str, int] = {}
    for event in turn:
        count[event.type] = count.get(event.type, 0) + 1
    return Report(_last_words(turn), count.get("step/start", 0), count.get("tool/call", 0), _failure(reason))


def _last_words(turn: Iterable[Event]) -> str:
    """deepseek-harness's rule: the last message that says anything, however the turn ended."""
    said = [text_of(event.data["message"]["content"]).strip() for event in turn if event.type == "assistant/message"]
    return next((words for words in reversed(said) if words), "")


def _failure(reason: dict[str, Any] | None) -> str:
    match None if reason is None else reason["kind"]:
        case "completed":
            return ""
        case "aborted":
            return "the child agent was stopped before it had a result"
        case "max-tokens":
            return "the child agent's answer was cut off at the model's token limit"
        case "blocked":
            return "the child agent's task was not let through to its model"
        case "error":
            message = (reason or {}).get("error", {}).get("message") or "no reason was given"
            return f"the child agent failed: {message}"
    return "the child agent did not come to an end"
