"""Tools: registered once, offered in every request, run one after the other in the order the model asked for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import Block, text_block

_logger = logging.getLogger(__name__)


class ToolError(PlanModeError):
    """A tool's own, expected failure. The message goes to the model and says what to send or do instead."""

    def __init__(self, message: str, *, code: str = "TOOL_ERROR") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ToolCall:
    """One call. ``arguments`` is the raw JSON text as the model produced it; ``agent`` is None where nobody calls (a test, a script)."""

    name: str
    arguments: str
    call_id: str
    turn: int
    step: int
    agent: Agent | None


@dataclass(frozen=True)
class ToolResult:
    """What the model gets. ``value``: the structured result, for code that calls tools; ``meta``: the tool's private presentation data."""

    content: tuple[Block, ...]
    is_error: bool = False
    value: Any = None
    error: dict[str, str] | None = None
    meta: Any = None


@dataclass(frozen=True)
class Outcome:
    """A result and the events that must be true together with it: one append, one journal write, events first."""

    result: ToolResult
    events: tuple[Draft, ...] = ()


class CallInterrupted(asyncio.CancelledError):
    """Raised in place of a cancellation by a tool that knows what it had done: ``outcome`` is then the call's result."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass(frozen=True)
class Presentation:
    """How a call or result wants to be shown. ``kind`` says what ``body`` is; presentation never changes what happened."""

    title: str
    body: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Tool:
    """``run`` never raises: see :meth:`ToolRegistry.run`. ``rebuilds``: a replay runs it again, because later cells need what it made."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[ToolCall], Awaitable[Outcome]]
    rebuilds: bool = False
    present_call: Callable[[str], Presentation | None] = field(default=lambda arguments: None)

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


class ToolRegistry:
    """Tools by unique name. The schemas depend on what is registered and on nothing else, so their bytes are equal in every state."""

    def __init__(self) -> None:
        self._tools: Registry[Tool] = Registry("tool")

    def register(self, tool: Tool) -> Undo:
        """Add a tool; returns the undo."""
        return self._tools.register(tool.name, tool)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def schemas(self) -> list[dict[str, Any]]:
        """All schemas, in order of registration."""
        return [tool.schema for tool in self._tools]

    async def run(self, call: ToolCall) -> Outcome:
        """Run one call. Every failure becomes a result; an unexpected one is also logged, once, with the call it belonged to."""
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
