"""What waits to be said to the model. The queues are a fold of ``agent/inbox/spliced``, so a message survives a killed kernel.

``next-turn`` holds prompts, one turn each; ``next-step`` holds what joins the next step, whichever turn that is in (dsh's two targets).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
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
        return list(self.queues.next_turn)

    @property
    def next_step(self) -> list[Message]:
        """Messages that the next step takes, in order."""
        return list(self.queues.next_step)

    @property
    def has_pending(self) -> bool:
        """Whether anything waits."""
        return bool(self.queues)

    @property
    def queues(self) -> Queues:
        """What waits, and what was taken out unsent so far."""
        return self._session.fold(self._fold)

    def claim(self, first: bool) -> tuple[list[Message], list[Draft]]:
        """What a step takes, and the events that take it out of the queues. ``first``: a turn's first step also takes one prompt."""
        steps, prompts = self.next_step, self.next_turn[:1] if first else []
        drafts = [_removal("next-step", 0, len(steps))] if steps else []
        if prompts:
            drafts.append(_removal("next-turn", 0, 1))
        return [*steps, *prompts], drafts

    def clear(self) -> list[Message]:
        """Take everything out unsent (a turn that was stopped, or failed); returns it, so that a host can hand it back to the person."""
        return self._take_out(self.queues, lambda message: True)

    def hand_back(self, before: Queues) -> list[Message]:
        """Take out unsent what a person had said and what waited in ``before``, the queues as they were; returns it.

        For a host that is about to run a turn for something newer. What plugins put in stays.
        """
        return self._take_out(before, lambda message: message["source"].get("kind") == "user")

    def _take_out(self, queues: Queues, is_taken: Callable[[Message], bool]) -> list[Message]:
        taken: list[Message] = []
        drafts: list[Draft] = []
        for target, queue in (("next-step", queues.next_step), ("next-turn", queues.next_turn)):
            at = 0
            for wanted, run in groupby(queue, is_taken):
                messages = list(run)
                if wanted:
                    taken.extend(messages)
                    drafts.append(_removal(target, at, len(messages), outcome="canceled"))
                else:
                    at += len(messages)
        self._session.append(*drafts)
        return taken

    def _insert(self, target: Target, message: Message) -> None:
        waiting = self.queues
        start = len(waiting.next_turn if target == "next-turn" else waiting.next_step)
        self._session.append(draft("agent/inbox/spliced", {"target": target, "start": start, "inserted": [self._redact(message)]}))


def _removal(target: str, start: int, count: int, outcome: str | None = None) -> Draft:
    data: dict[str, Any] = {"target": target, "start": start, "removedCount": count, "inserted": []}
    return draft("agent/inbox/spliced", data if outcome is None else {**data, "outcome": outcome})
