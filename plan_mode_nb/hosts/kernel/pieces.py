"""What turns' outputs carry where neither a page nor a client of ours takes the log (log.md, Who writes it)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plan_mode_nb.document.outputs import EVENTS_MIME, events_bundle
from plan_mode_nb.log.events import Header
from plan_mode_nb.log.session import Session

_Taken = tuple[Header, int, list[str], dict[str, str]]


class Pieces:
    """Which lines lie in outputs already. A cell that runs again loses its piece, so the next one begins where that began."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._in_cells: dict[str, dict[str, int]] = {}

    def cell_begins(self, cell: str | None) -> None:
        """A cell runs, so what its outputs carried is gone. ``cell``: its id, None where the front end gives none."""
        for session, start in self._in_cells.pop(cell or "", {}).items():
            self._next[session] = min(self._next.get(session, 0), start)

    def take(
        self,
        agent: str,
        session: Session,
        cell: str | None,
        images: Mapping[str, str],
        *,
        chosen: int = 0,
        runs_once: bool = False,
        children: Iterable[Session] = (),
    ) -> dict[str, Any]:
        """The entry for the turn's output: everything from the first line that no output holds. Empty when there is nothing.

        Without a cell id nobody knows which piece a cell that runs again takes with it, so each output carries the whole session; unless
        every cell ``runs_once``. ``images``: base64 by sha256; those that the lines name go along. ``children``: their sessions.
        """
        taken = [self._take(each, cell, images, runs_once) for each in children]
        inner = [events_bundle(header, start, lines, attachments=named) for header, start, lines, named in taken if lines]
        header, start, lines, named = self._take(session, cell, images, runs_once)
        if not lines and not inner:
            return {}
        return {EVENTS_MIME: events_bundle(header, start, lines, agent=agent, chosen=chosen, attachments=named, children=inner)}

    def _take(self, session: Session, cell: str | None, images: Mapping[str, str], runs_once: bool) -> _Taken:
        start = self._next.get(session.id, 0) if cell is not None or runs_once else 0
        lines = list(session.lines[start:])
        self._next[session.id] = start + len(lines)
        if cell is not None and lines:
            self._in_cells.setdefault(cell, {}).setdefault(session.id, start)
        named = {sha: images[sha] for sha in images if any(sha in line for line in lines)}
        return session.header, start, lines, named
