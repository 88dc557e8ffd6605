"""A recording that a person can answer otherwise: the demo's model.

A recorded conversation says which answer came after which tool result. When the person decides otherwise than the recording did (approves
the first plan, say), the next answer is the nearest one that followed a result of that kind. The words of the answers stay the recorded
ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from plan_mode_nb.agent.model import Chunk, Request
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import Message
from plan_mode_nb.models.recording import RecordedModel

After = tuple[str, bool] | None
"""What an answer follows: a tool's result (name, whether an error), or None for a person's message."""


class FollowingModel:
    """Plays a recording in order, and finds its place again after a result that the recording did not have there."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._recorded = RecordedModel(events)
        self._after = _followed(events)

    @property
    def config(self) -> Mapping[str, Any]:
        """As recorded."""
        return self._recorded.config

    async def context_window(self) -> int | None:
        """As recorded."""
        return await self._recorded.context_window()

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """The recorded answer that fits best.

        Raises:
            ModelError: as recorded; or the recording has no answer left.
        """
        self._recorded.skip_to(self._place(_last(request.messages)))
        async for chunk in self._recorded.stream(request):
            yield chunk

    def _place(self, after: After) -> int:
        here = self._recorded.place
        if after is None or here >= len(self._after) or self._after[here] == after:
            return here
        ahead = [place for place in range(here, len(self._after)) if self._after[place] == after]
        behind = [place for place in range(here) if self._after[place] == after]
        return ahead[0] if ahead else behind[-1] if behind else here


def _followed(events: Sequence[Event]) -> list[After]:
    """What each completed answer followed, in order. A failed request has none: after it the order alone counts."""
    names: dict[str, str] = {}
    after: After = None
    followed: list[After] = []
    for event in events:
        data = event.data
        match event.type:
            case "turn/start":
                after = None
            case "tool/call":
                names[data["callId"]] = data["name"]
            case "tool/result":
                block = data["message"]["content"][0]
                after = (names.get(block["toolCallId"], ""), bool(block.get("isError")))
            case "assistant/message":
                followed.append(after)
    return followed


def _last(messages: Sequence[Message]) -> After:
    """What the request's answer follows. A person's or plugin's words beside a result do not hide it."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message["role"] == "assistant":
            return None
        if message["source"]["kind"] == "tool":
            block = message["content"][0]
            return (_name(messages, place, block["toolCallId"]), bool(block.get("isError")))
    return None


def _name(messages: Sequence[Message], place: int, call_id: str) -> str:
    for earlier in range(place - 1, -1, -1):
        for block in messages[earlier]["content"]:
            if block.get("type") == "tool-call" and block["id"] == call_id:
                return str(block["name"])
    return ""
