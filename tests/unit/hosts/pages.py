"""A page of the lab extension reduced to what it answers: a notebook's metadata, and the protocol of ``lib/metadata.js`` on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plan_mode_nb.document.chain import chained
from plan_mode_nb.document.chunks import KEY, chunk_key, chunked, read_metadata

LINES_AT_ONCE = 4


class Page:
    """``silent_after``: how many answers it gives before it is closed."""

    def __init__(self, metadata: Mapping[str, Any], *, silent_after: int | None = None) -> None:
        self.metadata = dict(metadata)
        self.asked: list[dict[str, Any]] = []
        self._left = silent_after

    def lines(self, session: str) -> list[str]:
        found = read_metadata(self.metadata).sessions.get(session)
        return [] if found is None else list(found.lines)

    def image(self, sha: str) -> str | None:
        return self.metadata.get(f"{KEY}/attachments/{sha}")

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a message of the kernel; None when it is closed."""
        self.asked.append(dict(message))
        if self._left is not None:
            if not self._left:
                return None
            self._left -= 1
        answered = self._append(message) if message["op"] == "append" else self._page(message)
        return {"op": "ack" if message["op"] == "append" else "page", "n": message["n"], **answered}

    def _page(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if "images" in message:
            return {"attachments": {sha: self.image(sha) for sha in message["images"][:2]}}
        index = self.metadata.get(KEY)
        session, start = message["session"] or index["agents"].get("main", ""), message["start"]
        held = self.lines(session)
        lengths = {"lengths": {id: len(self.lines(id)) for id in index["sessions"]}} if not start else {}
        return {"index": index, **lengths, "session": session, "start": start, "events": held[start:][:LINES_AT_ONCE], "length": len(held)}

    def _append(self, message: Mapping[str, Any]) -> dict[str, Any]:
        session, start, events = message["session"], message["start"], message["events"]
        answer: dict[str, Any] = {"session": session}
        held = self.lines(session)
        if start > len(held):
            return {**answer, "want": len(held)}
        if start == len(held) and chained(session, held) != message["prev"]:
            return {**answer, "diverged": start}
        lines = [*held[:start], *events]
        index = self.metadata.setdefault(KEY, {"format": 1, "agents": {}, "sessions": {}})
        index["sessions"].setdefault(session, message["header"])
        index["agents"].update(message["agents"])
        self.metadata.update({chunk_key(session, at): chunk for at, chunk in chunked(lines)})
        for sha, base64 in message.get("attachments", {}).items():
            self.metadata.setdefault(f"{KEY}/attachments/{sha}", base64)
        lacks = [sha for sha in message.get("images", ()) if self.image(sha) is None]
        return {**answer, "length": len(lines), **({"lacks": lacks} if lacks else {})}
