"""What the loop needs of a model: one request in, a stream of chunks out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct, field

from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.messages import Message


class Request(Struct, frozen=True):
    """A pure function of the log.

    ``config`` is the header's (provider, model, settings); ``tools`` are ``{name, description, parameters}``;
    ``images``: attachment id -> bytes, for the attachments that the messages name. ``stable``: how many characters of ``system`` the
    session does not change (None: all); where a provider caches what it is told to, it is told there.
    """

    config: Mapping[str, Any]
    system: str
    tools: Sequence[Mapping[str, Any]]
    messages: Sequence[Message]
    images: Mapping[str, bytes] = field(default_factory=dict)
    stable: int | None = None


class TextDelta(msgspec.Struct, frozen=True, tag_field="type", tag="text-delta"):
    """More text of the block at ``index``."""

    index: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning-delta"):
    """More thinking of the block at ``index``."""

    index: int
    text: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag_field="type", tag="tool-call-delta", rename="camel", omit_defaults=True):
    """More of the call at ``index``: raw JSON text exactly as the model produced it."""

    index: int
    id: str
    name: str | None = None
    arguments_delta: str = ""


class Usage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Tokens, counted disjointly as dsh does: ``input_tokens`` leaves out what was read from or written to the provider's cache."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def to_json(self) -> dict[str, int]:
        """dsh's ``usage`` object."""
        built: dict[str, int] = msgspec.to_builtins(self)
        return {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens, **built}


class UsageChunk(msgspec.Struct, frozen=True, tag_field="type", tag="usage"):
    """Usage so far; the newest replaces."""

    usage: Usage


FinishKind = Literal["stop", "tool-calls", "max-tokens"]


class Finish(msgspec.Struct, frozen=True, tag_field="type", tag="finish"):
    """The end of a complete answer. ``replay_state``: what the provider needs back unchanged (signatures of thinking, say)."""

    kind: FinishKind
    replay_state: Any = None


Chunk = TextDelta | ReasoningDelta | ToolCallDelta | UsageChunk | Finish


class Model(Protocol):
    """A model that belongs to one event loop. Fakes and real ones pass the same contract suite (``testing.model_contract``)."""

    @property
    def config(self) -> Mapping[str, Any]:
        """``{"provider", "model", …settings}``: what the request header says of it."""

    def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """Answer. Blocks are indexed from 0 in order of appearance; the last chunk is ``Finish``. Cancelling closes the connection.

        Raises:
            ModelError: the request failed; chunks before it were delivered.
        """


Models = Callable[[str | None], Model]
"""A model's name -> the model; None -> the one that the deployment chose. Raises ModelError or ConfigError with a sentence."""


@runtime_checkable
class KnowsWindow(Protocol):
    """A model that may know how much it can read."""

    async def context_window(self) -> int | None:
        """Tokens that one request may have, answer included; None: not known."""


@runtime_checkable
class HoldsConnections(Protocol):
    """A model that has something to let go of."""

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones. On the loop that used them."""


async def window_of(model: Model) -> int | None:
    """How many tokens a model can read, where it knows."""
    return await model.context_window() if isinstance(model, KnowsWindow) else None


class NoModel:
    """The null: no model is configured. Every request fails with the sentence that says how to choose one."""

    config: Mapping[str, Any] = {"provider": "none", "model": "none"}

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """Always fails.

        Raises:
            ModelError: with the sentence.
        """
        raise ModelError(self._sentence, code="CONFIG")
        yield  # an async generator, as the protocol has it
