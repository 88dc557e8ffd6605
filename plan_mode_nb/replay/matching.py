"""Which cell of a notebook did which recorded part, found before anything runs: by the hash of the cell's source, in order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, field

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.outputs import read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import LogError
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.log.events import Event
from plan_mode_nb.replay.recorded import Part, child_part, parts

VOLATILE_TAG: Final = "replay-volatile"
"""A cell with this tag says ``replay: volatile``: results of tools that run again are taken from the recording where they differ."""
_MAGIC: Final = re.compile(
    r"^(?P<indent>[ \t]*)%{1,2}(?P<name>plan|agent|sandbox|approval|session[ \t]+compact)\b(?!\s*\?\s*$)(?P<rest>.*)$", re.MULTILINE
)
_SESSION: Final = re.compile(r"^[ \t]*%session\b(?![ \t]+compact\b)", re.MULTILINE)
_INDIRECT: Final = re.compile(r"run_(line|cell)_magic|\bget_ipython\(\)")


class NotebookCell(Struct, frozen=True):
    """One code cell. ``number``: its place among all cells, from 1, as a person counts them. ``code``: among code cells, from 0."""

    number: int
    code: int
    source: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    failed: bool = False

    @property
    def hash(self) -> str:
        """sha256 of the source, as ``notebook/cell`` has it."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def asks(self) -> bool:
        """Whether it says something to the agent or sets one of its axes, as far as its lines show. One that failed may not have."""
        return not self.failed and _MAGIC.search(self.source) is not None

    @property
    def shows_session(self) -> bool:
        """Whether it prints what ``%session`` says, which holds ids and numbers of the day."""
        return _SESSION.search(self.source) is not None

    @property
    def is_volatile(self) -> bool:
        """Whether it is tagged so."""
        return VOLATILE_TAG in self.tags

    def most(self) -> tuple[int, int] | None:
        """How many commands and how many turns one run of it can have had; None where its lines do not show."""
        found = list(_MAGIC.finditer(self.source))
        if self.source.startswith(("%%plan", "%%agent")):
            found = found[:1]
        elif _INDIRECT.search(self.source) or any(magic["indent"] for magic in found):
            return None
        names = [magic["name"] for magic in found]
        return sum(name != "agent" for name in names), sum(name in ("plan", "agent") for name in names)

    def __str__(self) -> str:
        first = next((line.strip() for line in self.source.splitlines() if line.strip()), "")
        return f"cell {self.number} ({first if len(first) <= 60 else f'{first[:59]}…'})"


def code_cells(notebook: Mapping[str, Any]) -> list[NotebookCell]:
    """The code cells of a notebook's JSON."""
    found: list[NotebookCell] = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "code":
            source, tags = cell.get("source", ""), cell.get("metadata", {}).get("tags", ())
            failed = any(output.get("output_type") == "error" for output in cell.get("outputs", ()))
            text = source if isinstance(source, str) else "".join(source)
            found.append(NotebookCell(number, len(found), text, cell.get("id"), tuple(tags), failed))
    return found


class Place(Struct, frozen=True):
    """A recorded part and the session that it belongs to."""

    session: str
    part: Part

    def __str__(self) -> str:
        return str(self.part)


class RecordedSession(Struct, frozen=True):
    """One session of a notebook, read. ``is_main``: it may be one that agent ``main`` had."""

    stored: StoredSession
    events: list[Event]
    parts: list[Part]


class Matching(Struct, frozen=True):
    """``by_cell``: what each code cell did, by its place among code cells. ``orphans``: parts without a cell; ``unasked``: the reverse.

    ``attachments``: the images that the notebook keeps, sha256 -> base64. ``children``: the sessions of child agents, which no cell had.
    """

    cells: list[NotebookCell]
    sessions: dict[str, RecordedSession]
    agents: Mapping[str, str]
    by_cell: dict[int, list[Place]]
    orphans: list[Place] = field(default_factory=list)
    unasked: list[NotebookCell] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    attachments: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, RecordedSession] = field(default_factory=dict)

    @property
    def places(self) -> Iterator[tuple[NotebookCell, Place]]:
        """Every matched part with its cell, in the order in which cells run."""
        for cell in self.cells:
            for place in self.by_cell.get(cell.code, ()):
                yield cell, place

    @property
    def is_recorded(self) -> bool:
        """Whether the notebook carries anything that its cells did. One that does not is nobody's business here."""
        return bool(self.sessions) and any(session.parts for session in self.sessions.values())

    def problem(self, name: str) -> str:
        """Why it cannot be replayed, "" where it can: a list of what has no counterpart, and what to do."""
        listed = [f"{place} has no cell" for place in self.orphans] + [f"{cell} has no recorded turn" for cell in self.unasked]
        listed += self.unread
        if not listed:
            return ""
        return "\n  ".join([f"{name} and its recording do not fit: run the notebook again with `plan-mode-nb record {name}`", *listed])


def match(notebook: Mapping[str, Any]) -> Matching:
    """Match the cells of a notebook's JSON with what its sessions recorded, in its metadata or its outputs. Nothing is run."""
    cells = code_cells(notebook)
    document = merge_documents(read_metadata(notebook["metadata"]), read_outputs(notebook["cells"]))
    sessions, unread = read_sessions(document)
    recorded = [Place(id, part) for id, session in sessions.items() for part in session.parts]
    created = {id: session.stored.header.created_at for id, session in sessions.items()}
    recorded.sort(key=lambda place: (place.part.time, created[place.session], place.part.start))
    children = read_children(document)
    found = Matching(cells, sessions, document.agents, {}, unread=unread, attachments=document.attachments, children=children)
    _align(found, recorded)
    return found


def read_sessions(document: Document) -> tuple[dict[str, RecordedSession], list[str]]:
    """The sessions that cells had: no child agent's, and no other branch of a conversation that two copies of the notebook went on with."""
    named, unread = set(document.agents.values()), list(document.problems)
    found: dict[str, RecordedSession] = {}
    for id, stored in sorted(document.sessions.items(), key=lambda item: (item[1].header.created_at, item[0])):
        if stored.header.origin is not UNSET or (id not in named and "~" in id):
            continue
        try:
            events = decode_all(list(stored.lines))
        except LogError as error:
            unread.append(f"session {id} cannot be read: {error}")
            continue
        found[id] = RecordedSession(stored, events, parts(stored.header, events))
    return found, unread


def read_children(document: Document) -> dict[str, RecordedSession]:
    """The sessions of child agents, each with its one part. One that cannot be read is left out: the call that made it will miss it."""
    found: dict[str, RecordedSession] = {}
    for id, stored in document.sessions.items():
        if stored.header.origin is UNSET:
            continue
        try:
            events = decode_all(list(stored.lines))
        except LogError:
            continue
        part = child_part(stored.header, events)
        found[id] = RecordedSession(stored, events, [] if part is None else [part])
    return found


def _align(found: Matching, recorded: list[Place]) -> None:
    """In order: a cell takes the parts of its source that come next; what no later cell can take has none."""
    at = 0
    hashes = [cell.hash for cell in found.cells]
    for cell, hash in zip(found.cells, hashes, strict=True):
        ahead = next((place for place in range(at, len(recorded)) if recorded[place].part.source == hash), None)
        if ahead is not None and not _wanted(recorded[at:ahead], hashes[cell.code + 1 :]):
            found.orphans.extend(_unrepeated(recorded[at:ahead], hashes[: cell.code]))
            taken = _taken(cell, recorded[ahead:], hashes[cell.code + 1 :])
            found.by_cell[cell.code] = taken
            at = ahead + len(taken)
        elif cell.asks:
            found.unasked.append(cell)
    found.orphans.extend(_unrepeated(recorded[at:], hashes))


def _unrepeated(skipped: Sequence[Place], earlier: Sequence[str]) -> list[Place]:
    """Parts that no cell can take, without commands that an earlier cell gave once more (after a restart, say): those are fed."""
    return [place for place in skipped if place.part.kind == "turn" or place.part.source not in earlier]


def _wanted(skipped: Sequence[Place], later: Sequence[str]) -> bool:
    return any(place.part.source in later for place in skipped)


def _taken(cell: NotebookCell, ahead: Sequence[Place], later: Sequence[str]) -> list[Place]:
    """The parts of one run of a cell: those of its source that stand together, no more than one run can have made."""
    together = 0
    while together < len(ahead) and ahead[together].part.source == cell.hash:
        together += 1
    most = cell.most()
    if most is None:
        # Two cells of one source, and nothing says how often each asked: the cell's id does, where it was told.
        first = ahead[0].part.cell
        return [place for place in ahead[:together] if cell.hash not in later or place.part.cell == first]
    left = {"command": most[0], "turn": most[1]}
    taken: list[Place] = []
    for place in ahead[:together]:
        left[place.part.kind] -= 1
        if min(left.values()) < 0:
            break
        taken.append(place)
    return taken
