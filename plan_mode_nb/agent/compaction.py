"""The seam of compaction: who says when a conversation is compacted and how much of it, and what stays in front of the model word for word.

Without the plugin nobody asks, and nothing is compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.agent.waterfall import Waterfall
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.session import Session

COMPACT: Final = "compact"
"""The plugin whose message stands for a span, and whose message asks for its summary (deepseek-harness's name)."""
STOPPED: Final = "stopped"
"""What ``compaction/end`` gives as the error of an attempt that was stopped."""
Trigger: TypeAlias = Literal["asked", "pressure", "overflow", "shorter"]
"""``asked``: a person wants it. ``pressure``: a step is about to be made. ``overflow``: the provider refused the open step's request as too
long. ``shorter``: no summary came of the span that was tried; perhaps one comes of less."""


class Span(Struct, frozen=True):
    """A span of the surface: the seqs of its first and last node, inclusive, by position (``start`` may exceed ``end`` as a number)."""

    start: int
    end: int


class Question(Struct, frozen=True):
    """Whether an agent's conversation is compacted now. ``tried``, ``error``: the span that was tried before, and why that failed."""

    agent: Agent
    trigger: Trigger
    tried: Span | None = None
    error: ModelError | None = None


class DueChain(Waterfall[Question, Span | None]):
    """Nobody there: nothing is compacted. A listener returns the span, or None."""

    def __init__(self) -> None:
        super().__init__(lambda question: None)


Kept = Callable[[Session, Sequence[Message]], str]
"""(the session, the messages that stay) -> what the model must go on seeing word for word, or "" where nothing is or a message has it."""


class Keeps:
    """Functions by unique name, asked in order of registration when a span is replaced by its summary."""

    def __init__(self) -> None:
        self._kept: Registry[Kept] = Registry("kept text")

    def register(self, name: str, kept: Kept) -> Undo:
        """Add one; returns the undo."""
        return self._kept.register(name, kept)

    def texts(self, session: Session, staying: Sequence[Message]) -> list[str]:
        """The texts that are not empty, in order."""
        return [text for kept in self._kept if (text := kept(session, staying))]


class Compaction:
    """``due``: when and what; ``keeps``: what stays word for word."""

    def __init__(self) -> None:
        self.due = DueChain()
        self.keeps = Keeps()


__all__ = ["COMPACT", "STOPPED", "Compaction", "DueChain", "Keeps", "Kept", "Question", "Span", "Trigger"]
