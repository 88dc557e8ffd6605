"""Making a failed request again: bounded, after a growing wait or the one that the provider asked for, and logged (``llm/retry``).

The rules are those of deepseek-harness's normal policy. Without jitter: one notebook is no herd, and so the same failures always give the
same log, which a replay compares. What was tried is a fold of the log, so that nothing has to be remembered here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.requests import CallNext, FailedRequest, RequestErrorAction, failure_json
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.vocabulary import draft

CODES: Final = ("EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT")
"""What may pass by itself. The rest (a refused key, a filtered answer, a conversation too long) fails the same way again."""

Sleep = Callable[[float], Awaitable[Any]]
"""Waits that many seconds; cancelling the turn cancels it."""


class RetryPolicy(Struct, frozen=True):
    """``max_retries`` a step, 0 for none; waits grow from ``first_ms`` to ``most_ms``.

    A provider that asks for up to ``patience_ms`` gets it; one that asks for more has failed, and its sentence says how long to wait.
    """

    max_retries: int = 2
    first_ms: int = 500
    most_ms: int = 10_000
    patience_ms: int = 60_000

    @property
    def key(self) -> str:
        """dsh's policy key: retries count on only under the same policy."""
        fields = ["normal", self.max_retries, CODES, self.first_ms, self.most_ms, self.patience_ms]
        return msgspec.json.encode(fields).decode()

    def delay_ms(self, retry: int, asked_ms: int | None) -> int | None:
        """How long to wait before retry number ``retry`` (from 1); None: it is not made."""
        if retry > self.max_retries or (asked_ms is not None and asked_ms > self.patience_ms):
            return None
        return min(self.first_ms * 2 ** (retry - 1), self.most_ms) if asked_ms is None else asked_ms


STANDARD: Final = RetryPolicy()


def install(seams: Seams, policy: RetryPolicy = STANDARD, *, sleep: Sleep = asyncio.sleep) -> Undo:
    """Listen to failed requests; returns the undo. ``sleep``: how a retry waits.

    Why nothing happens meanwhile is told as a preview, which the next attempt replaces: it is no part of the outputs that stay.
    """

    async def listen(failed: FailedRequest, call_next: CallNext) -> RequestErrorAction:
        action = await call_next(failed)
        if action != "fail":
            return action
        error = failed.error
        before = _last_retry(failed.agent.session.events)
        retry = 1 if before is None else before["retry"] + 1
        delay = policy.delay_ms(retry, error.retry_after_ms) if error.code in CODES else None
        if delay is None:
            return "fail"
        retry_id = seams.new_id() if before is None else before["retryId"]
        at = {"turn": failed.turn, "step": failed.step}
        scheduled = {
            "retryId": retry_id,
            **at,
            "provider": failed.provider,
            "mode": "normal",
            "policyKey": policy.key,
            "retry": retry,
            "maxRetries": policy.max_retries,
            "delayMs": delay,
            "failure": seams.redactions.json(failure_json(error)),
        }
        failed.agent.session.append(draft("llm/retry", scheduled))
        told = f"{scheduled['failure']['message']} Trying again in {delay / 1000:g} s ({retry} of {policy.max_retries})."
        seams.previews.send(Preview(failed.agent.session.id, "start"))
        seams.previews.send(Preview(failed.agent.session.id, "text", 0, told))
        await sleep(delay / 1000)
        failed.agent.session.append(draft("llm/retry-started", {"retryId": retry_id, **at, "retry": retry}))
        return "retry"

    return seams.request_error.register(listen)


def _last_retry(events: Sequence[Event]) -> dict[str, Any] | None:
    """The data of the open step's last ``llm/retry``."""
    for event in reversed(events):
        if event.type == "llm/retry":
            data: dict[str, Any] = event.data
            return data
        if event.type == "step/start":
            return None
    return None
