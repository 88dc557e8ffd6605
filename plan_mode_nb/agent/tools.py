"""Tools: registered once, offered in every request, run one after the other in the order the model asked for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo, entered
from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import Block, text_block

_logger = logging.getLogger(__name__)


class ToolError(PlanModeError):
    """A tool's own, expected failure. The message goes to the model and says what to send or do instead."""

    def __init__(self, message: str, *, code: str = "TOOL_ERROR") -> None:
        super().__init__(message)
        self.code = code


class ToolCall(Struct, frozen=True):
    """One call. ``arguments`` is the raw JSON text as the model produced it; ``agent`` is None where nobody calls (a test, a script)."""

    name: str
    arguments: str
    call_id: str
    turn: int
    step: int
    agent: Agent | None


class ToolResult(Struct, frozen=True):
    """What the model gets. ``value``: the structured result, for code that calls tools; ``meta``: the tool's private presentation data."""

    content: tuple[Block, ...]
    is_error: bool = False
    value: Any = None
    error: dict[str, str] | None = None
    meta: Any = None


class Outcome(Struct, frozen=True):
    """A result and the events that must be true together with it: one append, one journal write, events first."""

    result: ToolResult
    events: tuple[Draft, ...] = ()


class CallInterrupted(asyncio.CancelledError):
    """Raised in place of a cancellation by a tool that knows what it had done: ``outcome`` is then the call's result."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


class Presentation(Struct, frozen=True):
    """How a call or result wants to be shown. ``kind`` says what ``body`` is; presentation never changes what happened."""

    title: str
    body: str = ""
    kind: str = "text"


Replayed: TypeAlias = Literal["played", "derived", "delegates", "rebuilds", "volatile"]
"""What a replay does with a tool's calls.

``played``: takes the recorded result. ``derived``: runs it again, because result and events follow from the log and the arguments alone.
``delegates``: the same where the recording has a session of its own for the call, which is replayed too; else ``played``.
``rebuilds``: runs it again, because later cells need what it made, and compares the result. ``volatile``: runs it again, and takes the
recorded result where the two differ.
"""


class Tool(Struct, frozen=True):
    """``run`` never raises: see :meth:`ToolRegistry.run`."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[ToolCall], Awaitable[Outcome]]
    replay: Replayed = "played"
    present_call: Callable[[str], Presentation | None] = field(default=lambda arguments: None)
    replay_call: Callable[[str], Replayed] | None = None
    """Raw arguments -> what a replay does with such a call, for a tool whose calls differ in it; None: all are as ``replay`` says."""

    def replayed(self, arguments: str) -> Replayed:
        """What a replay does with a call of these arguments."""
        return self.replay if self.replay_call is None else self.replay_call(arguments)

    @property
    def schema(self) -> dict[str, Any]:
        """What the request offers: ``{name, description, parameters}``."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


def text_result(text: str, **more: Any) -> ToolResult:
    """A result of plain text."""
    return ToolResult((text_block(text),), **more)


def error_result(message: str, *, name: str = "ToolError", code: str = "TOOL_ERROR") -> ToolResult:
    """A failed call as the model sees it, in dsh's form ``Error: …``."""
    return text_result(f"Error: {message}", is_error=True, error={"name": name, "code": code})


RunTool: TypeAlias = Callable[[ToolCall], Awaitable[Outcome]]
Interceptor: TypeAlias = Callable[[ToolCall, RunTool], Awaitable[Outcome]]
"""Stands between a call and its tool: gives an outcome of its own, or that of ``await run(call)``. What it raises ends the turn."""


class ToolRegistry:
    """Tools by unique name. The schemas depend on what is registered and on nothing else, so their bytes are equal in every state."""

    def __init__(self) -> None:
        self._tools: Registry[Tool] = Registry("tool")
        self._interceptors: list[tuple[Interceptor]] = []

    def register(self, tool: Tool) -> Undo:
        """Add a tool; returns the undo."""
        return self._tools.register(tool.name, tool)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def schemas(self) -> list[dict[str, Any]]:
        """All schemas, in order of registration."""
        return [tool.schema for tool in self._tools]

    def intercept(self, interceptor: Interceptor) -> Undo:
        """Put somebody between calls and tools; the first registered is the outer one. Returns the undo."""
        return entered(self._interceptors, interceptor)

    async def run(self, call: ToolCall) -> Outcome:
        """Run one call. Every failure becomes a result; an unexpected one is also logged, once, with the call it belonged to."""
        interceptors = [interceptor for (interceptor,) in self._interceptors]

        async def run(index: int, each: ToolCall) -> Outcome:
            if index == len(interceptors):
                return await self._run(each)
            return await interceptors[index](each, lambda rest: run(index + 1, rest))

        return await run(0, call)

    async def _run(self, call: ToolCall) -> Outcome:
        tool = self.get(call.name)
        if tool is None:
            names: Sequence[str] = self._tools.names()
            return Outcome(
                error_result(f"there is no tool {call.name!r}; the tools are {', '.join(names)}", name="ToolError", code="UNKNOWN_TOOL")
            )
        try:
            return await tool.run(call)
        except ToolError as error:
            return Outcome(error_result(str(error), code=error.code))
        except Exception as error:
            _logger.exception("tool %s failed on call %s", call.name, call.call_id)
            return Outcome(error_result(f"{type(error).__name__}: {error}", name=type(error).__name__, code="TOOL_CRASHED"))
