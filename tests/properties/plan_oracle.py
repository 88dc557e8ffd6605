"""What a log says of plan mode, read by other code than the folds: an oracle for the properties."""

from __future__ import annotations

from collections.abc import Sequence

from plan_mode_nb.log.events import Event

NOTICES = {"The user switched this session to plan mode.": True, "The user switched this session back to the default mode.": False}


def is_plan_notice(event: Event) -> bool:
    """Whether an event is a message of plan mode's."""
    return event.type == "user/message" and event.data["source"].get("plugin") == "plan-mode"


def told_by(events: Sequence[Event]) -> bool | None:
    """An oracle of its own for what the model was last told; on the way: each notice says what is so, and what was not known."""
    told: bool | None = None
    active = False
    exits: set[str] = set()
    for event in events:
        data = event.data
        match event.type:
            case "plan/mode":
                assert data["active"] is not active, "a switch to what is in force already"
                active = data["active"]
            case "request/header":
                told = active
            case "tool/call" if data["name"] == "exit_plan_mode":
                exits.add(data["callId"])
            case "tool/result" if data["message"]["source"]["callId"] in exits and not data["message"]["content"][0]["isError"]:
                told = False
            case "step/end":
                exits.clear()
            case "user/message" if is_plan_notice(event):
                said = NOTICES[data["content"][0]["text"]]
                assert said is active
                assert told is not None
                assert told is not said
                told = said
    return told


def since_boundary(events: Sequence[Event]) -> list[str]:
    """The types of the events after the last boundary of a turn or step that is not the last event's own ``turn/end``."""
    boundaries = ("turn/start", "step/start", "step/end")
    last = max((event.seq for event in events if event.type in boundaries), default=-1)
    return [event.type for event in events[last + 1 :]]
