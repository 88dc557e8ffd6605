"""What goes wrong on a wire, as parts of a script: ``[say("Reading"), drop()]``. Each has a JSON form, like the other parts."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.script import WirePart


class Status(msgspec.Struct, frozen=True, tag_field="type", tag="status", omit_defaults=True):
    """Answer with this HTTP status and an error body; stands first. ``retry_after``: seconds; ``message`` is the provider's own words."""

    status: int
    message: str = "scripted"
    retry_after: float | None = None
    code: str | None = None


class Drop(msgspec.Struct, frozen=True, tag_field="type", tag="drop"):
    """Reset the connection."""


class Cut(msgspec.Struct, frozen=True, tag_field="type", tag="cut"):
    """End the body properly, but before the answer is complete (as some proxies do)."""


class Stall(msgspec.Struct, frozen=True, tag_field="type", tag="stall"):
    """Send nothing more until the client goes away or the server closes."""


class Slow(msgspec.Struct, frozen=True, tag_field="type", tag="slow"):
    """From here on, wait this long before each frame."""

    seconds: float


class Garbage(msgspec.Struct, frozen=True, tag_field="type", tag="garbage"):
    """A frame that is not JSON."""


class Trouble(msgspec.Struct, frozen=True, tag_field="type", tag="trouble"):
    """The provider's own error event inside the stream."""

    message: str = "scripted"


class Filtered(msgspec.Struct, frozen=True, tag_field="type", tag="filtered"):
    """The provider's content filter ends the answer here."""


class Nothing(msgspec.Struct, frozen=True, tag_field="type", tag="nothing"):
    """The provider ends the answer as complete here, whatever was said (nothing, perhaps)."""


Fault: TypeAlias = Status | Drop | Cut | Stall | Slow | Garbage | Trouble | Filtered | Nothing
ServerPart: TypeAlias = WirePart | Fault
"""What a script of the loopback server is made of."""


def fault_of(error: ModelError, *, started: bool) -> Fault:
    """The fault that makes a client see this error's code. ``started``: the answer has begun, so its HTTP status is already said."""
    match error.code:
        case "AUTH":
            return Status(401, str(error))
        case "RATE_LIMIT" if not started:
            return Status(429, str(error), None if error.retry_after_ms is None else error.retry_after_ms / 1000)
        case "QUOTA":
            return Status(429, str(error), code="insufficient_quota")
        case "BAD_REQUEST":
            return Status(400, str(error))
        case "CONTEXT_OVERFLOW":
            return Status(400, "prompt is too long: the maximum context length is 10 tokens", code="context_length_exceeded")
        case "CONTENT_FILTER":
            return Filtered()
        case "EMPTY_RESPONSE":
            return Nothing()
        case "TRANSPORT":
            return Drop()
        case "TIMEOUT":
            return Stall()
        case _:
            return Trouble(str(error)) if started else Status(500, str(error))
