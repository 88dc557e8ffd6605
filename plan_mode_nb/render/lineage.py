"""Which sessions are whose children, and how each ended: lines for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.exceptions import LogError
from plan_mode_nb.folds.descriptor import DESCRIPTOR, Descriptor
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.events import Event, Header
from plan_mode_nb.log.fold import fold_values
from plan_mode_nb.plan.visible import visible_line
from plan_mode_nb.render.cards import end_phrase

_MADE: Final = {"spawn": "spawned", "fork": "forked"}


def is_child(header: Header) -> bool:
    """Whether a session is a child agent's."""
    return header.origin is not UNSET


def descendants(session: str, stored: Iterable[StoredSession]) -> list[StoredSession]:
    """The children of a session and theirs, each behind its parent, the older of two first."""
    born = sorted((each for each in stored if is_child(each.header)), key=lambda each: (each.header.created_at, each.header.id))
    lineage, found = {session}, []
    # A child is younger than its parent, but for a clock that was set back.
    while more := [each for each in born if each.header.parent_session in lineage and each.header.id not in lineage]:
        lineage.update(each.header.id for each in more)
        found += more
    return found


def own_events(child: StoredSession) -> list[Event]:
    """What a child did itself, without what it was forked with.

    Raises:
        LogError: a line of it is no event.
    """
    seed = child.header.seed_length
    return [decode(line) for line in child.lines[0 if seed is UNSET else seed :]]


def child_line(child: StoredSession) -> str:
    """``“count rows” (spawned): completed, 2 steps, 630 tokens in, 18 out``."""
    try:
        own = own_events(child)
    except LogError as error:
        return f"cannot be read: {visible_line(str(error))}"
    made, turns, usage = fold_values((DESCRIPTOR, TURNS, USAGE), own)
    first = next((each for each in own if each.type == "turn/start"), None)
    told = [*turns.closed, *([turns.open] if turns.open else [])]
    # The end of a turn of the seed stands in the child's own part, without its start.
    if first is None or not told:
        return f"{_made(made)}: not begun"
    last = told[-1]
    end = "open" if last.end is None else end_phrase(last.end) or "completed"
    given = usage.uncached_input + usage.cache_read + usage.cache_write
    return f"{_made(made)}: {end}, {last.steps} step{'' if last.steps == 1 else 's'}, {given:,} tokens in, {usage.output:,} out"


def _made(made: Descriptor | None) -> str:
    if made is None:
        return "a child"
    label = f"“{visible_line(made.label)}” " if made.label else ""
    return f"{label}({_MADE.get(made.kind, visible_line(made.kind))})"
