"""The MCP servers of a replayed turn: none is started. Their tools are offered as the recording has them; they came from outside, too."""

from __future__ import annotations

from collections.abc import Callable

from plan_mode_nb.agent.mcp import PLUGIN, PREFIX, Recorded
from plan_mode_nb.agent.prestep import Step
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import text_of
from plan_mode_nb.log.session import Session
from plan_mode_nb.replay.course import Course


def recorded_servers(of: Callable[[Session], Course | None]) -> Callable[[Step], Recorded | None]:
    """What was recorded for the turn that begins with a step; None for a session without a course."""

    def recorded(step: Step) -> Recorded | None:
        course = of(step.agent.session)
        return None if course is None else _at(course)

    return recorded


def _at(course: Course) -> Recorded:
    """Read ahead to the turn's first request: its header is the next one, or the one in force."""
    notices: list[str] = []
    header: Event | None = None
    for event in course.recorded[course.place :]:
        if event.type == "user/message" and event.data.get("source", {}).get("plugin") == PLUGIN:
            notices.append(text_of(event.data["content"]))
        elif event.type == "request/header":
            header = event
            break
        elif event.type in ("assistant/message", "assistant/chunk", "step/end", "turn/end"):
            break
    if header is None:
        header = next((event for event in reversed(course.recorded[: course.place]) if event.type == "request/header"), None)
    tools = [] if header is None else header.data["header"].get("tools", [])
    return Recorded(tuple(tool for tool in tools if str(tool.get("name", "")).startswith(PREFIX)), tuple(notices))
