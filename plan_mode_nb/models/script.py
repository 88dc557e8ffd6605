"""What a scripted model says: small parts that compose into the chunks of one answer.

The same parts drive :class:`~plan_mode_nb.models.scripted.ScriptedModel` in memory and the loopback server on the wire, and they have a
JSON form (``{"type": "say", "text": "…"}``), so that a script can be handed to another process.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from plan_mode_nb.agent.model import (
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from plan_mode_nb.exceptions import ModelError

_WORD = re.compile(r"\S+\s*|\s+")
FRAGMENT = 12
"""Characters in one piece of a call's arguments: small, so that a reader of deltas meets cuts inside tokens."""


class Say(msgspec.Struct, frozen=True, tag_field="type", tag="say"):
    """A block of text, streamed word by word."""

    text: str


class Think(msgspec.Struct, frozen=True, tag_field="type", tag="think", omit_defaults=True):
    """A block of thinking. ``signature``: what a provider wants back unchanged with it (the loopback server sends it)."""

    text: str
    signature: str | None = None


class Call(msgspec.Struct, frozen=True, tag_field="type", tag="call", omit_defaults=True):
    """A tool call. ``arguments`` is raw text, so it can be malformed; ``id`` None: numbered by answer and place."""

    name: str
    arguments: str
    id: str | None = None


class Fail(msgspec.Struct, frozen=True, tag_field="type", tag="fail", omit_defaults=True):
    """The request fails here, after what stands before it was delivered."""

    message: str
    code: str = "UNKNOWN"
    status: int | None = None
    retry_after_ms: int | None = None


class Hold(Struct, frozen=True):
    """Wait here, in memory only: an awaitable's factory instead of a delay."""

    wait: Callable[[], Awaitable[Any]]


WirePart: TypeAlias = Say | Think | Call | Fail | UsageChunk | Finish | TextDelta | ReasoningDelta | ToolCallDelta
"""What has a JSON form. Protocol chunks pass unchanged, for answers that no builder can spell."""
Part: TypeAlias = WirePart | Hold
X = TypeVar("X")


def say(text: str) -> Say:
    """A block of text."""
    return Say(text)


def think(text: str, signature: str | None = None) -> Think:
    """A block of thinking."""
    return Think(text, signature)


def call(name: str, arguments: dict[str, Any] | str, id: str | None = None) -> Call:
    """A tool call; an object is written as compact JSON, text is sent byte for byte."""
    return Call(name, arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode(), id)


def fail(error: ModelError) -> Fail:
    """Fail with this error."""
    return Fail(str(error), error.code, error.status, error.retry_after_ms)


def hold(wait: Callable[[], Awaitable[Any]]) -> Hold:
    """Wait for ``wait()``; an :class:`asyncio.Event`'s ``wait`` fits."""
    return Hold(wait)


def usage(input_tokens: int, output_tokens: int, **more: int) -> UsageChunk:
    """Report tokens; ``more``: ``cache_read_tokens``, ``cache_write_tokens``, ``reasoning_tokens``."""
    return UsageChunk(Usage(input_tokens, output_tokens, **more))


def finish(kind: FinishKind, replay_state: Any = None) -> Finish:
    """End with this kind; without it an answer ends as ``tool-calls`` where it calls, else as ``stop``."""
    return Finish(kind, replay_state)


def words(text: str) -> list[str]:
    """The text cut after each run of whitespace; joined it is the text. Empty text is one empty piece, so its block exists."""
    return _WORD.findall(text) or [text]


def fragments(text: str) -> list[str]:
    """The text cut into pieces of :data:`FRAGMENT` characters; joined it is the text."""
    return [text[start : start + FRAGMENT] for start in range(0, len(text), FRAGMENT)]


def call_id(part: Call, answer: int, index: int) -> str:
    """The id of a call that names none: by its answer and block, both from 0, so a script always plays the same."""
    return part.id or f"call-{answer}-{index}"


def play(parts: Sequence[WirePart | X], answer: int) -> Iterator[Chunk | ModelError | X]:
    """The chunks of answer number ``answer`` (from 0), in order; a failure ends it, anything else ends in ``Finish``.

    What is no part of a script (a :class:`Hold`, a fault of the wire) passes in its place.
    """
    index, called = 0, False
    for part in parts:
        match part:
            case Say(text):
                yield from (TextDelta(index, piece) for piece in words(text))
                index += 1
            case Think(text):
                yield from (ReasoningDelta(index, piece) for piece in words(text))
                index += 1
            case Call(name, arguments):
                id, called = call_id(part, answer, index), True
                yield ToolCallDelta(index, id, name)
                yield from (ToolCallDelta(index, id, None, piece) for piece in fragments(arguments))
                index += 1
            case Fail(message, code, status, retry_after_ms):
                yield ModelError(message, code=code, status=status, retry_after_ms=retry_after_ms)
                return
            case Finish():
                yield part
                return
            case _:
                yield part
    yield Finish("tool-calls" if called else "stop")
