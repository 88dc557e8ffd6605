"""What waits to be read: messages queued for the next turn and for the next step, replayed from ``agent/inbox/spliced``.

A fork does not inherit its parent's queue (deepseek-harness: replay from ``seedLength`` on); a restarted session keeps its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, field

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.log.events import Event, Header

Target = Literal["next-turn", "next-step"]
Message = dict[str, Any]


class Inbox(Struct, frozen=True):
    """Pending user messages, oldest first. ``canceled``: those that were ever taken out unsent, in the order in which that happened."""

    next_turn: tuple[Message, ...] = ()
    next_step: tuple[Message, ...] = ()
    canceled: tuple[Message, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.next_turn or self.next_step)


class _Queues(Struct):
    lists: dict[str, list[Message]] = field(default_factory=lambda: {"next-turn": [], "next-step": []})
    canceled: list[Message] = field(default_factory=list)


class InboxFold:
    """Events -> :class:`Inbox`. ``seed_length``: events before it belong to the parent session and are not replayed."""

    types: Final = frozenset({"agent/inbox/spliced"})

    def __init__(self, seed_length: int = 0) -> None:
        self._seed_length = seed_length

    def start(self) -> _Queues:
        """Nothing waits."""
        return _Queues()

    def step(self, state: _Queues, event: Event) -> _Queues:
        """Apply one splice.

        Raises:
            InvariantError: the splice lies outside the queue as it stands.
        """
        if event.seq < self._seed_length:
            return state
        data = event.data
        queue = state.lists[data["target"]]
        start, removed = data["start"], data.get("removedCount", 0)
        if not 0 <= start <= start + removed <= len(queue):
            raise InvariantError(
                f"event {event.seq}: agent/inbox/spliced changes {start}..{start + removed} of a queue of {len(queue)}", seq=event.seq
            )
        if data.get("outcome") == "canceled":
            state.canceled.extend(queue[start : start + removed])
        queue[start : start + removed] = data["inserted"]
        return state

    def value(self, state: _Queues) -> Inbox:
        """What waits now."""
        return Inbox(tuple(state.lists["next-turn"]), tuple(state.lists["next-step"]), tuple(state.canceled))


@lru_cache(maxsize=256)
def _of_seed(seed_length: int) -> InboxFold:
    return InboxFold(seed_length)


INBOX: Final = _of_seed(0)
"""The inbox of a session that is no fork. For any session: :func:`inbox_fold`."""


def inbox_fold(header: Header) -> InboxFold:
    """The inbox fold of a session with this header; the same object for the same seed length, so that incremental reading works."""
    return _of_seed(0 if header.seed_length is UNSET else header.seed_length)
