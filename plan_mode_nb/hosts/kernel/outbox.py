"""What the page still lacks of each session, and what to send next. Pure bookkeeping: no comm, no clock of its own.

One append is in flight at a time. It is answered with the page's ``length`` (and the images it ``lacks``), with the length it ``want``s, or
with ``diverged``; unanswered for a second it is sent again (log.md, carrier 2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from plan_mode_nb.document.chain import Chain
from plan_mode_nb.log.session import Session

BATCH_CHARACTERS = 500_000
"""A websocket message must stay well under 10 MiB."""
BATCH_IMAGES = 1_500_000
"""Characters of base64 in one append, unless one image has more (it has 5,000,000 at most)."""
PATIENCE_S = 1.0


class InFlight(Struct, frozen=True):
    """The append that waits for its ack: its number, its session, the page it went to, when (seconds of the caller's clock), and the names
    and images that it brings or asks about."""

    n: int
    session: str
    to: str
    at: float
    names: Mapping[str, Any]
    images: Collection[str]


class Images(Struct):
    """What is known of the images of the page that is written to. ``likely``: those that its notebook had when this kernel found the log;
    they are asked about and sent only where the page lacks them. Any other goes along with the first append that leaves."""

    held: set[str] = field(default_factory=set)
    lacked: set[str] = field(default_factory=set)
    likely: Collection[str] = frozenset()

    def forget(self) -> None:
        """Another page, or the same after a reload: it may hold what was saved last."""
        self.held.clear()
        self.lacked.clear()

    def take(self, images: Collection[str], lacked: object) -> None:
        """The page took an append that brought or asked about these."""
        lacks = {sha for sha in lacked if isinstance(sha, str)} if isinstance(lacked, list) else set()
        self.held.update(set(images) - lacks)
        self.lacked = (self.lacked | lacks) - self.held

    def outgoing(self, images: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """What the next append brings, as many as fit into one message, and which it asks about."""
        brings: dict[str, str] = {}
        asks: list[str] = []
        size = 0
        for sha in images:
            if sha in self.held:
                continue
            if sha in self.likely and sha not in self.lacked:
                asks.append(sha)
            elif not brings or size + len(images[sha]) <= BATCH_IMAGES:
                brings[sha] = images[sha]
                size += len(brings[sha])
        return brings, asks


class Outbox:
    """Per session: how many events the page holds. A session whose page diverged is not sent to it any more."""

    def __init__(self) -> None:
        self._acked: dict[str, int] = {}
        self._chains: dict[str, Chain] = {}
        self._diverged: set[str] = set()
        self._n = 0
        self._to = ""
        self._told: Mapping[str, Any] | None = None
        self.images = Images()
        self.stripped: set[str] = set()
        self.in_flight: InFlight | None = None

    def is_settled(self, sessions: Mapping[str, Session], images: Collection[str]) -> bool:
        """Whether the page holds every event, and every image, that it will take."""
        taken = {id: session for id, session in sessions.items() if id not in self._diverged}
        is_behind = any(self._acked.get(id, 0) < len(session.lines) for id, session in taken.items())
        return not taken or not (is_behind or set(images) - self.images.held)

    def page_holds(self, session: str, length: int) -> None:
        """A page said how much it holds (a hello): continue from there, whatever was known before."""
        self._acked[session] = length
        self._diverged.discard(session)
        self.images.forget()
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
            self.images.take(flight.images, answer.get("lacks"))
        return True

    def has_diverged(self, session: str) -> bool:
        """Whether the page holds another continuation of this session."""
        return session in self._diverged

    def next_append(
        self, sessions: Mapping[str, Session], to: str, now: float, images: Mapping[str, str], names: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The next append for page ``to``, or None: nothing to send, or one waits for its answer still.

        ``images``: sha256 -> base64. ``names``: the entries of the index, sent with every append. What is left of either when no event is
        goes in an append of none.
        """
        if self.in_flight is not None and self.in_flight.to == to and now - self.in_flight.at < PATIENCE_S:
            return None
        if to != self._to:
            self._to, self._told = to, None
            self.images.forget()
        for id, session in sessions.items():
            start = self._acked.get(id, 0)
            if id in self._diverged or (start >= len(session.lines) and self._told == names and not images.keys() - self.images.held):
                continue
            self._n += 1
            brings, asks = self.images.outgoing(images)
            self.in_flight = InFlight(self._n, id, to, now, names, [*brings, *asks])
            message = {"op": "append", "n": self._n, "to": to, "session": id, "start": start, "events": _batch(session.lines, start)}
            message |= {"prev": self._chain(session, start), "header": session.header.to_json()}
            return {**message, **names, **({"attachments": brings} if brings else {}), **({"images": asks} if asks else {})}
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
