"""What the page still lacks of each session, and what to send next. Pure bookkeeping: no comm, no clock of its own.

One append is in flight at a time. It is answered with the page's ``length``, with the length it ``want``s, or with ``diverged``; unanswered
for a second it is sent again (log.md, carrier 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plan_mode_nb.document.chain import Chain
from plan_mode_nb.log.session import Session

BATCH_CHARACTERS = 500_000
"""A websocket message must stay well under 10 MiB."""
PATIENCE_S = 1.0


@dataclass(frozen=True)
class InFlight:
    """The append that waits for its ack: its number, its session, the page it went to, when (seconds of the caller's clock), and the names
    that went along."""

    n: int
    session: str
    to: str
    at: float
    names: Mapping[str, Any]


class Outbox:
    """Per session: how many events the page holds. A session whose page diverged is not sent to it any more."""

    def __init__(self) -> None:
        self._acked: dict[str, int] = {}
        self._chains: dict[str, Chain] = {}
        self._diverged: set[str] = set()
        self._sent_images: set[str] = set()
        self._n = 0
        self._told: Mapping[str, Any] | None = None
        self.stripped: set[str] = set()
        self.in_flight: InFlight | None = None

    def is_settled(self, sessions: Mapping[str, Session]) -> bool:
        """Whether the page holds every event that it will take."""
        return all(id in self._diverged or self._acked.get(id, 0) >= len(session.lines) for id, session in sessions.items())

    def page_holds(self, session: str, length: int) -> None:
        """A page said how much it holds (a hello): continue from there, whatever was known before."""
        self._acked[session] = length
        self._diverged.discard(session)
        self._sent_images.clear()
        self._told = None
        self.in_flight = None

    def acknowledge(self, answer: Mapping[str, Any]) -> bool:
        """Take an ack. False when it answers nothing that is in flight (late, or a second page's)."""
        flight = self.in_flight
        if flight is None or answer.get("n") != flight.n or answer.get("session") != flight.session:
            return False
        self.in_flight = None
        if "diverged" in answer:
            self._diverged.add(flight.session)
            if answer.get("stripped") is True:
                self.stripped.add(flight.session)
        elif isinstance(answer.get("want"), int):
            self._acked[flight.session] = answer["want"]
        elif isinstance(answer.get("length"), int):
            self._acked[flight.session] = answer["length"]
            self._told = flight.names
        return True

    def has_diverged(self, session: str) -> bool:
        """Whether the page holds another continuation of this session."""
        return session in self._diverged

    def next_append(
        self, sessions: Mapping[str, Session], to: str, now: float, images: Mapping[str, str], names: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The next append for page ``to``, or None: nothing to send, or one waits for its answer still.

        ``images``: attachment id -> base64; each is sent with the first append that leaves here. ``names``: the entries of the index, sent
        with every append, and by themselves (an append of no event) when a name goes to another session without any.
        """
        if self.in_flight is not None and self.in_flight.to == to and now - self.in_flight.at < PATIENCE_S:
            return None
        for id, session in sessions.items():
            start = self._acked.get(id, 0)
            if id in self._diverged or (start >= len(session.lines) and self._told == names):
                continue
            self._n += 1
            self.in_flight = InFlight(self._n, id, to, now, names)
            events = _batch(session.lines, start)
            new = {sha: data for sha, data in images.items() if sha not in self._sent_images}
            self._sent_images.update(new)
            message = {"op": "append", "n": self._n, "to": to, "session": id, "start": start, "events": events}
            message |= {"prev": self._chain(session, start), "header": session.header.to_json()}
            return {**message, **names, "attachments": new} if new else {**message, **names}
        return None

    def _chain(self, session: Session, start: int) -> str:
        chain = self._chains.setdefault(session.id, Chain(session.id, session.lines))
        return chain.at(start)


def _batch(lines: Sequence[str], start: int) -> list[str]:
    size, end = 0, start
    while end < len(lines) and (size < BATCH_CHARACTERS or end == start):
        size += len(lines[end])
        end += 1
    return list(lines[start:end])
