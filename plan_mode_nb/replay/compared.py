"""A live session compared with a recorded one while it grows: each event with the one at its place, to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.folds.header import canonical
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.session import Session
from plan_mode_nb.replay.compare import Comparison, Difference, short_diff
from plan_mode_nb.replay.drift import header_difference


class Compared:
    """``difference``: the first one found. ``drifted``: headers that differ by drift alone and were accepted, seq -> the one of now.

    ``sections``: what the live system prompt is assembled from, name -> text.
    """

    def __init__(self, recorded: Sequence[Event], session: Session, comparison: Comparison, *, accepts_drift: bool) -> None:
        """``session``: what it holds already (a seed) is compared at once."""
        self.recorded = recorded
        self.session = session
        self.comparison = comparison
        self.difference: Difference | None = None
        self.drifted: dict[int, dict[str, Any]] = {}
        self.sections: Callable[[], Mapping[str, str]] = dict
        self._accepts_drift = accepts_drift
        self._on_events(session.events)
        self._undo = session.subscribe(self._on_events)

    def close(self) -> None:
        """Stop following."""
        self._undo()

    @property
    def place(self) -> int:
        """How far the live session is, what it owes included."""
        return len(self.session) + self.session.owed

    @property
    def next(self) -> Event | None:
        """The recorded event that comes next; None at the end, and once something differs."""
        return self.recorded[self.place] if self.difference is None and self.place < len(self.recorded) else None

    def check(self) -> None:
        """Raise the first difference, if there is one.

        Raises:
            ReplayError: with the difference as a short diff.
        """
        if self.difference is not None:
            found = self.difference
            what = "drift, not a difference in what happened: " if found.drift else ""
            raise ReplayError(f"{what}{found.where} is not as recorded\n{short_diff(found.recorded, found.now)}", position=found.where)

    def adopt(self, found: Difference, of: str) -> None:
        """A difference found in a child's session is this one's, too. ``of``: the child, in words."""
        self.note(replace(found, where=f"{of}, {found.where}"))

    def note(self, found: Difference) -> None:
        """Keep the first difference, with the turn and step in which it was found."""
        if self.difference is None:
            place = self.session.place
            turn = f"turn {place.turn}, " if place.turn is not None else ""
            step = f"step {place.step}, " if place.step is not None else ""
            self.difference = replace(found, where=f"{turn}{step}{found.where}")

    # -- inside

    def _on_events(self, batch: Sequence[Event]) -> None:
        for event in batch:
            if self.difference is not None:
                return
            found = self._compare(event)
            if found is not None:
                self.note(found)

    def _compare(self, live: Event) -> Difference | None:
        if live.seq >= len(self.recorded):
            return Difference(live.seq, f"event {live.seq}", "nothing: the recording ends", f"{live.type}")
        recorded = self.recorded[live.seq]
        if recorded.type == live.type == "request/header":
            return self._compare_header(recorded, live) or self.comparison.compare(_without_header(recorded), _without_header(live))
        return self.comparison.compare(recorded, live)

    def _compare_header(self, recorded: Event, live: Event) -> Difference | None:
        before, now = canonical(recorded.data["header"]), canonical(live.data["header"])
        found = header_difference(live.seq, before, now, self.sections(), self.comparison)
        if found is None or not (found.drift and self._accepts_drift):
            return found
        self.drifted[live.seq] = live.data["header"]
        return None


def _without_header(event: Event) -> Event:
    return Event(event.type, event.seq, event.time, {key: value for key, value in event.data.items() if key != "header"})
