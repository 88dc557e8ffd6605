"""What went wrong at a provider, as one sentence that a person can act on, with dsh's code. A key never appears in it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from pydantic_ai import exceptions as pai

from plan_mode_nb.exceptions import ModelError

_logger = logging.getLogger(__name__)
QUOTED = 200
"""Characters of a provider's own words that a sentence quotes."""


@dataclass(frozen=True)
class Route:
    """Where requests go. ``key_name``: the variable its key is read from; ``key``: the key, to keep it out of sentences."""

    provider: str
    model: str
    url: str
    url_name: str
    key_name: str
    key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """As configured."""
        return f"{self.provider}:{self.model}"


def one_line(text: object) -> str:
    """The text on one line, bounded."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= QUOTED else flat[: QUOTED - 1] + "…"


def failure(error: Exception, route: Route) -> ModelError:
    """The error as ours. The most telling class counts first: a refused key is also a rejected request, and both are HTTP errors."""
    status = error.status_code if isinstance(error, pai.ModelHTTPError) else None
    after = error.retry_after if isinstance(error, pai.ModelAPIError) else None
    told = _classify(error, route, status)
    if told is None:
        _logger.error("the request to %s failed unexpectedly", route.name, exc_info=error)
        told = "UNKNOWN", f"The request to {route.name} failed: {type(error).__name__}: {_said(error, route)}"
    return ModelError(told[1], code=told[0], status=status, retry_after_ms=None if after is None else max(1, round(after * 1000)))


def _classify(error: Exception, route: Route, status: int | None) -> tuple[str, str] | None:
    told = f" ({status})" if status is not None else ""
    match error:
        case pai.ModelAuthenticationError():
            return "AUTH", _key_refused(route, told)
        case pai.ModelContextWindowExceededError():
            return "CONTEXT_OVERFLOW", (
                f"The conversation is longer than {route.name} can read: go on in a new one with %session new, from an earlier point with"
                " %session fork SEQ, or choose a model that reads more."
            )
        case pai.ModelNotFoundError():
            meant = getattr(error, "suggested_model_id", None)
            hint = f"; did you mean {meant!r}?" if meant else "."
            return "BAD_REQUEST", f"{route.url} knows no model {route.model!r}{told}: check PlanAgent.model and {route.url_name}{hint}"
        case pai.ModelQuotaExceededError():
            return "QUOTA", f"The account behind {route.key_name} has no credit or quota left{told}: top it up, or choose another model."
        case pai.ModelRateLimitError():
            wait = f"wait {error.retry_after:g} s and run the cell again" if error.retry_after else "wait a moment and run the cell again"
            return "RATE_LIMIT", f"{route.name} takes no more requests for now{told}: {wait}."
        case pai.ModelRequestRejectedError():
            return "BAD_REQUEST", f"{route.name} refused the request{told}: {_said(error, route)}"
        case pai.ModelUnavailableError() | pai.ModelServerError():
            return "SERVER", f"{route.name} failed on its side{told}: run the cell again in a moment. It said: {_said(error, route)}"
        case pai.ModelRequestTimeout():
            return "TIMEOUT", f"{route.name} gave no whole answer in {error.timeout:g} s: ask for less at once, or choose a faster model."
        case pai.ModelTimeoutError():
            if error.phase == "connect":
                return "TRANSPORT", _unreachable(route)
            return "TIMEOUT", f"{route.name} fell silent: run the cell again, or raise PlanAgent.request_timeout."
        case pai.ModelConnectionError():
            if error.phase == "connect":
                return "TRANSPORT", _unreachable(route)
            return "TRANSPORT", f"The connection to {route.url} broke before the answer was complete: run the cell again."
        case pai.ContentFilterError():
            return "CONTENT_FILTER", f"The content filter of {route.name} stopped the answer: rephrase the request."
        case pai.UserError() | ImportError():
            return "CONFIG", f"{route.name} cannot be used: {_said(error, route)}"
        case pai.ModelAPIError() | pai.UnexpectedModelBehavior():
            # An error object without a status, or bytes that are not the wire's format: the server's fault, whatever it meant.
            return "SERVER", f"{route.name} answered with something that is not an answer{told}: {_said(error, route)}"
        case _:
            return None


def _key_refused(route: Route, told: str) -> str:
    if not route.key:
        return f"{route.url} wants a key{told}: set {route.key_name} before Jupyter starts."
    return f"The key for {route.provider} was refused{told}: set {route.key_name} to a valid key before Jupyter starts."


def _unreachable(route: Route) -> str:
    return f"Cannot reach {route.url}: is the server running, and is {route.url_name} right?"


def _said(error: Exception, route: Route) -> str:
    """The provider's own words, short and without the key."""
    body = error.body if isinstance(error, pai.ModelAPIError) else None
    words: object = None
    if isinstance(body, dict):
        inner = body.get("error", body)
        words = inner.get("message") if isinstance(inner, dict) else inner
    said = one_line(words or getattr(error, "message", None) or error)
    return said.replace(route.key, "[key]") if route.key else said
