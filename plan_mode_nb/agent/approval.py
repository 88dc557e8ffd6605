"""Approval of one call before it runs. The seam asks and records; a policy (an axis of its own) decides whether asking is allowed.

Everything but ``allowed-once`` denies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.questions import Answerer
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.log.vocabulary import draft

_logger = logging.getLogger(__name__)
ApprovalOutcome = Literal["allowed-once", "rejected", "cancelled", "unavailable"]


@dataclass(frozen=True)
class ApprovalRequest:
    """``preview``: exactly what would run. ``reason``: why it needs a person, one sentence."""

    id: str
    agent: Agent
    tool: str
    preview: str
    reason: str
    call_id: str | None


@dataclass(frozen=True)
class Decided:
    """How a request ended and who decided it."""

    outcome: ApprovalOutcome
    by: Answerer = "person"


class ApprovalProvider(Protocol):
    """Whoever can show the request to the person."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Present and wait. Cancelled when the turn is: close what is shown."""


class NobodyToApprove:
    """The null provider: denies at once."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Unavailable, at once."""
        return Decided("unavailable", by="policy")


class Approvals:
    """One request at a time, in the order they came; each is an ``approval/asked`` and an ``approval/decided`` inside its turn."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._provider: ApprovalProvider = NobodyToApprove()
        self._turnstile = asyncio.Lock()

    def provide(self, provider: ApprovalProvider) -> Undo:
        """Put a provider in place; the undo brings back the one before."""
        before, self._provider = self._provider, provider

        def undo() -> None:
            if self._provider is provider:
                self._provider = before

        return undo

    async def decide(self, agent: Agent, tool: str, preview: str, *, reason: str, call_id: str | None = None) -> Decided:
        """Ask for one call, log both sides, and return the decision. A provider that fails denies."""
        async with self._turnstile:
            request = ApprovalRequest(self._new_id(), agent, tool, preview, reason, call_id)
            asked = {"id": request.id, "toolName": tool, "reason": reason}
            agent.session.append(draft("approval/asked", asked if call_id is None else {**asked, "callId": call_id}))
            decided = Decided("cancelled")
            try:
                decided = await self._provider.decide(request)
            except Exception:
                _logger.exception("the approval provider failed on request %s", request.id)
                decided = Decided("unavailable", by="policy")
            finally:
                agent.session.append(draft("approval/decided", {"id": request.id, "outcome": decided.outcome, "by": decided.by}))
            return decided
