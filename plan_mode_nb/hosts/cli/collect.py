"""``collect``: what cells' outputs and waiting journals carry goes into the notebook's metadata, and leaves the outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.document.outputs import read_outputs, without_events
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.hosts.cli.settle import remove_held
from plan_mode_nb.store.journal import journal_folder, journals
from plan_mode_nb.store.merging import merge_journals
from plan_mode_nb.store.notebook import change_notebook, load_document, read_notebook, with_document


def collect_command(notebook: Path) -> int:
    """Collect in place, and say what came. The exit status: 1 where a part could not be read; that part stays where it is.

    Raises:
        StoreError, FormatError: it cannot be read or written, or may not be written to; it is as it was.
    """
    before = read_notebook(notebook)
    held = read_metadata(before["metadata"])
    if held.locked:
        raise FormatError(f"{notebook.name}: {held.locked}")
    carried = read_outputs(before["cells"])
    here = os.path.realpath(notebook)
    waiting = [each for each in journals(journal_folder(create=False))[0] if each.notebook and os.path.realpath(each.notebook) == here]
    document = merge_journals(merge_documents(held, carried), waiting)
    whole = not carried.problems
    change_notebook(notebook, lambda found: _collected(found, document, empty_outputs=whole))
    remove_held(load_document(notebook), waiting)
    for problem in document.problems:
        typer.echo(f"note: {problem}", err=True)
    typer.echo(f"{notebook.name}: {_told(held, document)}")
    return 0 if whole else 1


def _collected(notebook: Mapping[str, Any], document: Document, *, empty_outputs: bool) -> dict[str, Any]:
    cells = [without_events(cell) for cell in notebook["cells"]] if empty_outputs else notebook["cells"]
    return {**notebook, "cells": cells, "metadata": with_document(notebook["metadata"], document)}


def _told(before: Document, after: Document) -> str:
    added = {id: len(session.lines) - _length(before, id) for id, session in after.sessions.items()}
    said = [f"{count} event{'s' * (count != 1)} of session {id}" for id, count in added.items() if count > 0]
    return f"collected {', '.join(said)}." if said else "there was nothing to collect."


def _length(document: Document, session: str) -> int:
    return len(document.sessions[session].lines) if session in document.sessions else 0
