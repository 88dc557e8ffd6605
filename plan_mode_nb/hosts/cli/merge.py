"""``merge``: a git merge driver for notebooks. Sessions are reconciled and never conflict, cells may; the result is a valid notebook."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from plan_mode_nb.document.chunks import is_ours, read_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.document.threeway import MergedCells, merge_cells, merge_values
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.store.files import read_bytes
from plan_mode_nb.store.notebook import change_notebook, parse_notebook, with_document

Notebook = Mapping[str, Any]
_IDS_SINCE = 5


def merge_command(base: Path, ours: Path, theirs: Path, *, name: str | None) -> int:
    """Write the merged notebook over ``ours``. The exit status: 1 where cells conflict. ``name``: what to call the notebook in messages.

    Raises:
        StoreError, FormatError: a side cannot be read; ``ours`` is as it was.
    """
    called = name or ours.name
    before, other = _side(base, f"{called} (base)", empty=True), _side(theirs, f"{called} (theirs)")
    mine = _side(ours, f"{called} (ours)")
    document = merge_documents(read_metadata(mine["metadata"]), read_metadata(other["metadata"]))
    if document.locked:
        raise FormatError(f"{called}: {document.locked}; then merge again")
    cells = _cells(before, mine, other)
    change_notebook(ours, lambda notebook: _merged(notebook, before, other, cells, document))
    for sentence in (*cells.conflicts, *document.problems, *_told(document, mine, other)):
        typer.echo(f"{called}: {sentence}", err=True)
    return 1 if cells.conflicts else 0


def _side(path: Path, name: str, *, empty: bool = False) -> dict[str, Any]:
    """A notebook's JSON. git gives an empty base where both sides added the file."""
    text = read_bytes(path).decode("utf-8", "replace")
    if empty and not text.strip():
        return {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return parse_notebook(text, name)


def _merged(ours: Notebook, base: Notebook, theirs: Notebook, cells: MergedCells, document: Document) -> dict[str, Any]:
    minor = max(int(each.get("nbformat_minor", 0)) for each in (ours, theirs))
    others = merge_values(*(_not_ours(each) for each in (base, ours, theirs)))
    kept = {key: value for key, value in ours["metadata"].items() if is_ours(key)}
    metadata = {**others, **kept}
    if list(ours["metadata"]) == sorted(ours["metadata"]):
        metadata = dict(sorted(metadata.items()))
    return {**ours, "cells": _with_ids(cells.cells, minor), "metadata": with_document(metadata, document), "nbformat_minor": minor}


def _not_ours(notebook: Notebook) -> dict[str, Any]:
    return {key: value for key, value in notebook["metadata"].items() if not is_ours(key)}


def _with_ids(cells: list[dict[str, Any]], minor: int) -> list[dict[str, Any]]:
    """Ids where this version of the format wants them, and none where it forbids them."""
    if minor < _IDS_SINCE:
        return [{key: value for key, value in cell.items() if key != "id"} for cell in cells]
    return [cell if "id" in cell else {**cell, "id": f"merged-{place}"} for place, cell in enumerate(cells)]


def _cells(base: Notebook, ours: Notebook, theirs: Notebook) -> MergedCells:
    if importlib.util.find_spec("nbdime") is not None:
        merged = _by_nbdime(base, ours, theirs)
        if merged is not None:
            return merged
    return merge_cells(base["cells"], ours["cells"], theirs["cells"])


def _by_nbdime(base: Notebook, ours: Notebook, theirs: Notebook) -> MergedCells | None:
    """nbdime merges within a cell, and marks what conflicts there; None where it gives no valid notebook."""
    import nbformat
    from nbdime.merging.notebooks import merge_notebooks
    from nbformat.validator import iter_validate

    sides = [nbformat.reads(json.dumps({**each, "metadata": {}}), as_version=4) for each in (base, ours, theirs)]
    merged, decisions = merge_notebooks(*sides)
    if next(iter_validate(merged), None) is not None:
        return None
    cells = json.loads(nbformat.writes(merged))["cells"]
    places = sorted({"/".join(map(str, each.common_path)) for each in decisions if each.conflict})
    return MergedCells(cells, tuple(f"{place or 'cells'}: changed on both sides; the place is marked" for place in places))


def _told(document: Document, ours: Notebook, theirs: Notebook) -> list[str]:
    """A sentence for each session that both sides went on with."""
    known = {*read_metadata(ours["metadata"]).sessions, *read_metadata(theirs["metadata"]).sessions}
    forks = (session.header for session_id, session in document.sessions.items() if session_id not in known)
    return [f"session {header.parent_session} went on on both sides; both are kept, the other as {header.id}" for header in forks]
