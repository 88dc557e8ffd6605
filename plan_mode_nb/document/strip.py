"""Taking the conversation out of a notebook before it is published (log.md, Size and secrets).

What is removed: every session, its attachments, saved card states, and the outputs of cells that opened a turn. What stays: the notebook's
own cells (a prompt typed into a cell is its author's text), and a tombstone of each session's id, so that no other copy brings it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from plan_mode_nb.document.chunks import FORMAT, KEY, chunk_of, is_ours, read_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.outputs import carries_events, read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.codec import decode

Transcript = Callable[[StoredSession], list[str]]
"""A session -> the markdown sources of the cells that tell it."""
_WIDGETS: Final = "widgets"
_STATE: Final = "application/vnd.jupyter.widget-state+json"
_CELL_LINE: Final = '{"type":"notebook/cell"'


def strip_metadata(metadata: Mapping[str, Any], carried: Iterable[str] = ()) -> dict[str, Any]:
    """The metadata without anything of ours but tombstones. Also removes what cannot be read: publishing is what the person asked for.

    ``carried``: ids of sessions that lie in outputs only.
    """
    stripped = sorted(_ids(metadata).union(carried))
    kept = {key: value for key, value in metadata.items() if not is_ours(key)}
    if _WIDGETS in kept:
        kept[_WIDGETS] = _without_cards(kept[_WIDGETS])
    if stripped:
        kept[KEY] = {"format": FORMAT, "agents": {}, "sessions": {}, "stripped": stripped}
    return kept


def strip_notebook(notebook: Mapping[str, Any], *, transcript: Transcript | None = None) -> dict[str, Any]:
    """A notebook (its JSON) without its sessions. ``transcript``: appends markdown cells that tell each session first."""
    carried = read_outputs(notebook.get("cells", []))
    document = merge_documents(read_metadata(notebook.get("metadata")), carried)
    opened = agent_sources(document)
    cells = [_without_outputs(cell, opened) for cell in notebook.get("cells", [])]
    if transcript is not None:
        has_ids = (notebook.get("nbformat", 4), notebook.get("nbformat_minor", 5)) >= (4, 5)
        told = [
            (session.header.id, place, source) for session in document.sessions.values() for place, source in enumerate(transcript(session))
        ]
        cells.extend(_markdown_cell(source, f"{session_id}/{place}" if has_ids else None) for session_id, place, source in told)
    return {**notebook, "cells": cells, "metadata": strip_metadata(notebook.get("metadata", {}), carried.sessions)}


def agent_sources(document: Document) -> frozenset[str]:
    """The sha256 of each cell source that opened a turn or ran a command."""
    lines = (line for session in document.sessions.values() for line in session.lines if line.startswith(_CELL_LINE))
    return frozenset(source for source in map(_source_of, lines) if isinstance(source, str))


def _source_of(line: str) -> object:
    try:
        return decode(line).data["source"]
    except (FormatError, KeyError, TypeError):  # a damaged line names no cell; it is removed with its session all the same
        return None


def _ids(metadata: Mapping[str, Any]) -> set[str]:
    """Every session id that the metadata names, readable or not."""
    document = read_metadata(metadata)
    chunks = [chunk_of(key) for key in metadata]
    named = {*document.sessions, *document.stripped, *document.agents.values(), *(chunk[0] for chunk in chunks if chunk)}
    index = metadata.get(KEY)
    if isinstance(index, Mapping):
        lists = [index.get(part) for part in ("sessions", "stripped")]
        named.update(each for listed in lists if isinstance(listed, (Mapping, list)) for each in listed if isinstance(each, str))
    return named


def _without_outputs(cell: Mapping[str, Any], opened: frozenset[str]) -> dict[str, Any]:
    outputs = cell.get("outputs")
    if not isinstance(outputs, list):
        return dict(cell)
    if sha256(source_text(cell).encode("utf-8", "surrogatepass")).hexdigest() in opened or any(map(carries_events, outputs)):
        return {**cell, "outputs": [], "execution_count": None}
    return dict(cell)


def source_text(cell: Mapping[str, Any]) -> str:
    """A cell's source as one string, whichever of nbformat's two forms it has."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _without_cards(widgets: Any) -> Any:
    """Saved widget states without the cards, which hold plans and questions."""
    saved = widgets.get(_STATE) if isinstance(widgets, Mapping) else None
    models = saved.get("state") if isinstance(saved, Mapping) else None
    if not isinstance(saved, Mapping) or not isinstance(models, Mapping):
        return widgets
    kept = {model: value for model, value in models.items() if not _is_card(value)}
    return {**widgets, _STATE: {**saved, "state": kept}}


def _is_card(model: object) -> bool:
    state = model.get("state") if isinstance(model, Mapping) else None
    return isinstance(state, Mapping) and {"kind", "state", "questions"} <= state.keys()


def _markdown_cell(source: str, name: str | None) -> dict[str, Any]:
    """The id is a function of the cell's place, so that stripping a file twice gives the same bytes; None: no ids here."""
    named = {} if name is None else {"id": sha256(name.encode()).hexdigest()[:12]}
    return {"cell_type": "markdown", **named, "metadata": {}, "source": source}
