"""Permission for a run that nothing confines: a tool asks before it acts, whoever is registered decides.

Tools do not know the axes and the axes do not know the tools. Nobody registered denies: a composition that forgot its limits must not run
code as if it had none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.approval import Decided
from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, ToolCall, ToolError, error_result

UNCONFINABLE: Final = "this code cannot be confined"


class UnconfinedRun(Struct, frozen=True):
    """A call that would run where nothing limits what it reads, writes and reaches.

    ``preview``: exactly what would run. ``reason``: why it would run so, as the beginning of a sentence.
    """

    agent: Agent
    call: ToolCall
    preview: str
    reason: str = UNCONFINABLE


class Allowed(Struct, frozen=True):
    """This one run may go ahead."""


class Denied(Struct, frozen=True):
    """It may not. ``message``: one sentence that tells the model what happened and what it can do."""

    message: str
    code: str


Verdict = Allowed | Denied
Check = Callable[[UnconfinedRun], Awaitable[Verdict]]


class Permissions:
    """Checks by unique name. Every one must allow; the first that denies ends it."""

    def __init__(self) -> None:
        self._checks: Registry[Check] = Registry("permission check")

    def register(self, name: str, check: Check) -> Undo:
        """Add a check; returns the undo."""
        return self._checks.register(name, check)

    async def require(self, call: ToolCall, preview: str, *, reason: str = UNCONFINABLE) -> None:
        """Return when the run may go ahead.

        Raises:
            ToolError: it may not; nothing ran.
            CallInterrupted: the turn was stopped while a check waited; nothing ran, and the call's result says so.
        """
        try:
            verdict = await self.ask(call, preview, reason=reason)
        except asyncio.CancelledError:
            message = f"the turn was stopped before {call.name} was allowed to run; it did not run"
            raise CallInterrupted(Outcome(error_result(message, name="AbortError", code="APPROVAL_CANCELLED"))) from None
        match verdict:
            case Allowed():
                return
            case Denied(message, code):
                raise ToolError(message, code=code)
            case _:
                assert_never(verdict)

    async def ask(self, call: ToolCall, preview: str, *, reason: str = UNCONFINABLE) -> Verdict:
        """Whether the run may go ahead, for a tool that has something to say either way.

        Raises:
            asyncio.CancelledError: the turn was stopped while a check waited.
        """
        if call.agent is None:
            return Denied(f"{call.name} needs a calling agent: there is no session whose limits would apply", "NO_AGENT")
        if not len(self._checks):
            return Denied(f"{call.name} did not run: nothing here decides whether unconfined code may run", "NOT_PERMITTED")
        run = UnconfinedRun(call.agent, call, preview, reason)
        for check in self._checks:
            verdict = await check(run)
            match verdict:
                case Allowed():
                    continue
                case Denied():
                    return verdict
                case _:
                    assert_never(verdict)
        return Allowed()


def verdict_of(decided: Decided, tool: str) -> Verdict:
    """What an approval means for the run it was asked for. Everything but ``allowed-once`` denies."""
    because = f" ({decided.reason})" if decided.reason else ""
    match decided.outcome:
        case "allowed-once":
            return Allowed()
        case "rejected" if decided.by == "policy":
            return Denied(f"{tool} was rejected without asking{because}; it did not run: go on without it", "APPROVAL_REJECTED")
        case "rejected":
            return Denied(
                f"the user rejected this call of {tool}{because}; it did not run: do not send it again unchanged, "
                "do without it or ask what they want instead",
                "APPROVAL_REJECTED",
            )
        case "cancelled":
            return Denied(f"the approval of {tool} was cancelled{because}; it did not run", "APPROVAL_CANCELLED")
        case "unavailable":
            return Denied(
                f"{tool} needs an approval that nobody could give{because}; it did not run: go on without it, "
                "or say in your answer what you would have run",
                "APPROVAL_UNAVAILABLE",
            )
        case _:
            assert_never(decided.outcome)
