"""What recording again does not repeat: what a person did beside the cells, at a moment that another conversation does not have.

A replay feeds these at their place in the log. Recorded again, the model says other things, so their place is gone; answers have one,
because they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import text_of

SAID = 60


def unrepeated(events: Sequence[Event], start: int = 0) -> Iterator[str]:
    """One phrase each, in order. ``start``: where the session's own events begin, behind the seed of a fork."""
    turn: int | None = None
    for seq in range(start, len(events)):
        event, data = events[seq], events[seq].data
        place = "between turns" if turn is None else f"in turn {turn}"
        match event.type:
            case "turn/start":
                turn = data["turn"]
            case "turn/end":
                if data["reason"]["kind"] == "aborted" and data["reason"].get("reason", {}).get("kind") == "user":
                    yield f"turn {data['turn']} was stopped"
                turn = None
            case "command/run" if not _has_cell(events, seq):
                yield f"%{data['name']} {data.get('args', '')}".strip() + f" {place}"
            case "agent/inbox/spliced" if turn is not None and data["target"] == "next-step":
                for message in data["inserted"]:
                    if message.get("source") == {"kind": "user"}:
                        yield f"{_short(message)} {place}"


def _has_cell(events: Sequence[Event], seq: int) -> bool:
    """Whether a cell gave the command that runs at ``seq``."""
    following = events[seq + 1] if seq + 1 < len(events) else None
    return following is not None and following.type == "notebook/cell" and following.data.get("command") == events[seq].data["commandId"]


def _short(message: dict[str, Any]) -> str:
    text = " ".join(text_of(message.get("content", [])).split())
    return f"“{text if len(text) <= SAID else f'{text[: SAID - 1]}…'}”"
