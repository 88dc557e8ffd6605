"""What becomes of a request that failed: the chain that may have the same request made again within its step (``request-error``).

A retry is not a step: the request is the step's own, byte for byte, and nobody's pre-step is asked again. After a compaction its header is
the step's own, and its messages are those that the log has now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.waterfall import Waterfall
from plan_mode_nb.exceptions import ModelError

RequestErrorAction: TypeAlias = Literal["retry", "derive", "fail"]
"""``retry``: the same request again. ``derive``: the history was replaced (compaction); the step's request is derived from it again."""


class FailedRequest(Struct, frozen=True):
    """One attempt that failed, in an open step. ``provider``: of the request's configuration."""

    agent: Agent
    turn: int
    step: int
    provider: str
    error: ModelError


CallNext = Callable[[FailedRequest], Awaitable[RequestErrorAction]]


class RequestErrorChain(Waterfall[FailedRequest, RequestErrorAction]):
    """Nobody there: the request has failed. Cancelling the turn cancels whoever waits here."""

    def __init__(self) -> None:
        super().__init__(lambda failed: "fail")


def failure_json(error: ModelError) -> dict[str, Any]:
    """dsh's ``LlmFailure``: ``{message, code, status?, providerRetryAfterMs?}``."""
    told: dict[str, Any] = {"message": str(error), "code": error.code}
    if error.status is not None:
        told["status"] = error.status
    if error.retry_after_ms is not None:
        told["providerRetryAfterMs"] = error.retry_after_ms
    return told
