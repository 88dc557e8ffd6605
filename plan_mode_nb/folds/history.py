"""The surface and the model's history (deepseek-harness's ``deriveMessages``): one message a surface node, in order, unchanged.

An assistant message with empty content yields none (it only carries usage), though its node stays on the surface. Nothing is merged,
reordered or invented: system prompt and tools come from the request header, not from here.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from plan_mode_nb.folds.view import View
from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.surface import span
from plan_mode_nb.log.vocabulary import SURFACE as SURFACE_TYPES

Message = dict[str, Any]


class Messages(View[Message]):
    """The model's history at one moment; stays valid, and unchanged, while the log grows."""

    __slots__ = ()


def message_of(event: Event) -> Message | None:
    """The message that a surface event stands for; None for an assistant message without content and for any other event."""
    if event.type not in SURFACE_TYPES:
        return None
    message: Message = event.data if event.type == "user/message" else event.data["message"]
    return None if event.type == "assistant/message" and not message["content"] else message


class _Surface(Struct):
    """``owned[i]`` is the message of ``nodes[i]``; ``messages`` is ``owned`` without its Nones. Lists only grow or are replaced whole."""

    nodes: list[int] = field(default_factory=list)
    owned: list[Message | None] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


class _SurfaceFold:
    types: Final = SURFACE_TYPES

    def start(self) -> _Surface:
        """The empty surface."""
        return _Surface()

    def step(self, state: _Surface, event: Event) -> _Surface:
        """The surface after one more event. An append is O(1); a replace builds new lists, so that views handed out before stay valid."""
        message = message_of(event)
        if type(event.surface_op) is Replace:
            first, last = span(state.nodes, event.surface_op, event.seq)
            state.nodes = [*state.nodes[:first], event.seq, *state.nodes[last + 1 :]]
            state.owned = [*state.owned[:first], message, *state.owned[last + 1 :]]
            state.messages = [each for each in state.owned if each is not None]
            return state
        state.nodes.append(event.seq)
        state.owned.append(message)
        if message is not None:
            state.messages.append(message)
        return state


class HistoryFold(_SurfaceFold):
    """Events -> the model's history."""

    def value(self, state: _Surface) -> Messages:
        """The messages, oldest first."""
        return Messages(state.messages)


class SurfaceFold(_SurfaceFold):
    """Events -> the seqs on the surface, in the order the model sees them."""

    def value(self, state: _Surface) -> View[int]:
        """The seqs, in surface order (a replacement stands where its span stood)."""
        return View(state.nodes)


HISTORY: Final = HistoryFold()
NODES: Final = SurfaceFold()
