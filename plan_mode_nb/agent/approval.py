"""Approval of one call before it runs. The seam asks and records; policies (an axis of their own) may decide before anybody is asked.

Everything but ``allowed-once`` denies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol, get_args

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.presenting import presented
from plan_mode_nb.agent.questions import Answerer
from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.log.vocabulary import draft

ApprovalOutcome = Literal["allowed-once", "rejected", "cancelled", "unavailable"]


class ApprovalRequest(Struct, frozen=True):
    """``preview``: exactly what would run. ``reason``: why it needs a person, one sentence."""

    id: str
    agent: Agent
    tool: str
    preview: str
    reason: str
    call_id: str | None


class Decided(Struct, frozen=True):
    """How a request ended and who decided it. ``reason``: one sentence for the model where a denial needs one."""

    outcome: ApprovalOutcome
    by: Answerer = "person"
    reason: str = ""


Policy = Callable[[ApprovalRequest], Decided | None]
"""Decides a request before anybody is asked, or leaves it open (None)."""


class ApprovalProvider(Protocol):
    """Whoever can show the request to the person."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Present and wait. Cancelled when the turn is: close what is shown."""


class NobodyToApprove:
    """The null provider: denies at once."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Unavailable, at once."""
        return Decided("unavailable", by="policy", reason="nobody is here to approve it")


class Approvals:
    """One request at a time, in the order they came; each is an ``approval/asked`` and an ``approval/decided`` inside its turn."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._provider: ApprovalProvider = NobodyToApprove()
        self._policies: Registry[Policy] = Registry("approval policy")
        self._turnstile = asyncio.Lock()

    def provide(self, provider: ApprovalProvider) -> Undo:
        """Put a provider in place; the undo brings back the one before."""
        before, self._provider = self._provider, provider

        def undo() -> None:
            if self._provider is provider:
                self._provider = before

        return undo

    def govern(self, name: str, policy: Policy) -> Undo:
        """Add a policy; returns the undo. Policies are asked in order of registration, and the first that decides, decides."""
        return self._policies.register(name, policy)

    async def decide(self, agent: Agent, tool: str, preview: str, *, reason: str, call_id: str | None = None) -> Decided:
        """Ask for one call, log both sides, and return the decision. A policy or provider that fails denies."""
        async with self._turnstile:
            request = ApprovalRequest(self._new_id(), agent, tool, preview, reason, call_id)
            asked = {"id": request.id, "toolName": tool, "reason": reason}
            agent.session.append(draft("approval/asked", asked if call_id is None else {**asked, "callId": call_id}))
            decided = Decided("cancelled")
            try:
                decided = await self._decided(request)
            finally:
                agent.session.append(draft("approval/decided", {"id": request.id, "outcome": decided.outcome, "by": decided.by}))
            return decided

    async def _decided(self, request: ApprovalRequest) -> Decided:
        provider = self._provider

        async def decide() -> Decided:
            ruled = next((ruling for policy in self._policies if (ruling := policy(request)) is not None), None)
            return await provider.decide(request) if ruled is None else ruled

        given = await presented(decide, _is_decided, what=f"approval {request.id}")
        return given if isinstance(given, Decided) else Decided("unavailable", by="policy", reason="the request could not be shown")


def _is_decided(value: object) -> bool:
    """Whether a policy's or provider's return value is a decision: annotations do not bind a third party's provider."""
    return isinstance(value, Decided) and value.outcome in get_args(ApprovalOutcome) and value.by in get_args(Answerer)
