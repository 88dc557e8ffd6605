"""Reading the log out of an open page: every session of its notebook, then the images that they show. One bounded answer at a time.

Where kernel and server share a disk this repeats what the file says, but for what the page has not saved yet. Behind a gateway the page is
the only place that has any of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plan_mode_nb.document.document import Document
from plan_mode_nb.hosts.kernel import sources
from plan_mode_nb.log.messages import digests_in_lines

Send = Callable[[dict[str, Any]], None]


class Fetch:
    """What one page is asked for. ``done`` when it is complete; ``answers`` counts what came, so that silence can be told from slowness."""

    def __init__(self, to: str, session: str, held: Document, send: Send, numbers: Iterator[int]) -> None:
        """``session``: that of agent main, read first. ``held``: what was found elsewhere; another session of the same length, and an image
        that it has, are not asked for again. ``numbers``: those of the questions, each used once."""
        self.to = to
        self.answers = 0
        self.done = False
        self._held, self._send, self._numbers = held, send, numbers
        self._n = 0
        self._sessions = deque([session])
        self._images: deque[str] | None = None
        self._lines: dict[str, list[str]] = {session: []}
        self._damaged: set[str] = set()
        self._attachments: dict[str, str] = {}
        self._index: Mapping[str, Any] | None = None

    @property
    def document(self) -> Document:
        """What came, as far as it is complete. A session that cannot be read whole is a problem in words, and no session."""
        whole = {id: lines for id, lines in self._lines.items() if id not in self._damaged and id not in self._sessions}
        return sources.from_page(whole, self._index, self._attachments, self._damaged)

    def ask(self) -> None:
        """Ask for what comes next, or be done."""
        question: dict[str, Any] | None = None
        if self._sessions:
            id = self._sessions[0]
            question = {"session": id, "start": len(self._lines[id])}
        else:
            images = self._images = self._wanted() if self._images is None else self._images
            question = {"images": list(images)} if images else None
        if question is None:
            self.done = True
            return
        self._n = next(self._numbers)
        self._send({"op": "get", "n": self._n, "to": self.to, **question})

    def take(self, client: str, data: Mapping[str, Any]) -> bool:
        """A page's answer; whether it was one to the last question."""
        if self.done or client != self.to or data.get("n") != self._n:
            return False
        self.answers += 1
        if self._sessions:
            self._take_lines(data)
        else:
            self._take_images(data.get("attachments"))
        self.ask()
        return True

    def _take_lines(self, data: Mapping[str, Any]) -> None:
        id = self._sessions[0]
        events, length = data.get("events"), data.get("length")
        if not isinstance(events, list) or not all(isinstance(line, str) for line in events):
            events = []
        self._lines[id].extend(events)
        if data.get("damaged") is True:
            self._damaged.add(id)
        if self._index is None and isinstance(data.get("index"), Mapping):
            self._index = data["index"]
            self._queue(data["index"], data.get("lengths"))
        if not events or not isinstance(length, int) or len(self._lines[id]) >= length:
            self._sessions.popleft()

    def _queue(self, index: Mapping[str, Any], lengths: object) -> None:
        """The notebook's other sessions, those that agents go on with first. ``lengths``: by id, as the page has them."""
        named, listed = index.get("agents"), index.get("sessions")
        ids = [*(named.values() if isinstance(named, Mapping) else ()), *(listed if isinstance(listed, Mapping) else ())]
        known = lengths if isinstance(lengths, Mapping) else {}
        for id in dict.fromkeys(each for each in ids if isinstance(each, str) and isinstance(listed, Mapping) and each in listed):
            held = self._held.sessions.get(id)
            if id in self._lines or not known.get(id, 1) or (held is not None and len(held.lines) == known.get(id)):
                continue
            self._lines[id] = []
            self._sessions.append(id)

    def _wanted(self) -> deque[str]:
        named = set().union(*(digests_in_lines(lines) for lines in self._lines.values()))
        return deque(sorted(named - self._held.attachments.keys()))

    def _take_images(self, answered: object) -> None:
        """As many of those asked for, in order, as the page's answer had room for; one that it has not, or that is too big, is null."""
        assert self._images is not None
        given = answered if isinstance(answered, Mapping) else {}
        before = len(self._images)
        while self._images and self._images[0] in given:
            digest = self._images.popleft()
            if isinstance(given[digest], str):
                self._attachments[digest] = given[digest]
        if len(self._images) == before:
            self._images.clear()  # a page of an older version, which sends none
