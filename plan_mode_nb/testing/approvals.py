"""An approval provider that answers from a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from plan_mode_nb.agent.approval import ApprovalOutcome, ApprovalRequest, Decided


class ScriptedApprovals:
    """Satisfies the ApprovalProvider protocol. ``requests``: what was presented, in order. With no answer left it is ``unavailable``.

    ``wait``: awaited before each answer, as a place where a test can hold or cancel a request.
    """

    def __init__(self, outcomes: Iterable[ApprovalOutcome] = (), *, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        self.requests: list[ApprovalRequest] = []
        self._outcomes = iter(outcomes)
        self._wait = wait

    async def decide(self, request: ApprovalRequest) -> Decided:
        """The next answer, as the person's."""
        self.requests.append(request)
        if self._wait is not None:
            await self._wait()
        return Decided(next(self._outcomes, "unavailable"))
