"""What waits to be said to the model. The queues are a fold of ``agent/inbox/spliced``, so a message survives a killed kernel.

``next-turn`` holds prompts, one turn each; ``next-step`` holds what joins the next step, whichever turn that is in (dsh's two targets).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plan_mode_nb.folds.inbox import Inbox as Queues
from plan_mode_nb.folds.inbox import Target, inbox_fold
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft


class Inbox:
    """The queues of one session. Reading folds; writing appends. Nothing here wakes the loop: the host decides when a turn runs."""

    def __init__(self, session: Session, redact: Callable[[Message], Message] = lambda message: message) -> None:
        """``redact``: what takes secrets out of a message before it is logged."""
        self._session = session
        self._redact = redact
        self._fold = inbox_fold(session.header)

    def followup(self, message: Message) -> None:
        """Queue a prompt: one turn of its own."""
        self._insert("next-turn", message)

    def steer(self, message: Message) -> None:
        """Queue a message for the next step of the running turn, or of the next one; a turn does not end while one waits."""
        self._insert("next-step", message)

    def inject(self, message: Message) -> None:
        """Queue context for the next step, like a steer. It asks nothing: a host starts no turn because of it."""
        self._insert("next-step", message)

    @property
    def next_turn(self) -> list[Message]:
        """Waiting prompts, first in first."""
        return list(self._waiting.next_turn)

    @property
    def next_step(self) -> list[Message]:
        """Messages that the next step takes, in order."""
        return list(self._waiting.next_step)

    @property
    def has_pending(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    @property
    def _waiting(self) -> Queues:
        return self._session.fold(self._fold)

    def claim(self, first: bool) -> tuple[list[Message], list[Draft]]:
        """What a step takes, and the events that take it out of the queues. ``first``: a turn's first step also takes one prompt."""
        steps, prompts = self.next_step, self.next_turn[:1] if first else []
        drafts = [_removal("next-step", len(steps))] if steps else []
        if prompts:
            drafts.append(_removal("next-turn", 1))
        return [*steps, *prompts], drafts

    def clear(self) -> list[Message]:
        """Take everything out unsent (a stopped turn); returns it, so that a host can hand it back to the person."""
        steps, prompts = self.next_step, self.next_turn
        drafts = [_removal("next-step", len(steps), outcome="canceled")] if steps else []
        if prompts:
            drafts.append(_removal("next-turn", len(prompts), outcome="canceled"))
        self._session.append(*drafts)
        return [*steps, *prompts]

    def _insert(self, target: Target, message: Message) -> None:
        waiting = self._waiting
        start = len(waiting.next_turn if target == "next-turn" else waiting.next_step)
        self._session.append(draft("agent/inbox/spliced", {"target": target, "start": start, "inserted": [self._redact(message)]}))


def _removal(target: Target, count: int, outcome: str | None = None) -> Draft:
    data: dict[str, Any] = {"target": target, "start": 0, "removedCount": count, "inserted": []}
    return draft("agent/inbox/spliced", data if outcome is None else {**data, "outcome": outcome})
