"""Executing a notebook headless, in place: outputs into its cells, the agent's log into its metadata, whatever came of it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from plan_mode_nb.document.chunks import is_ours, read_metadata, write_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.document.outputs import read_outputs, without_events
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError, PlanModeError, StoreError
from plan_mode_nb.hosts.cli.carrier import Received
from plan_mode_nb.hosts.cli.cells import Cells
from plan_mode_nb.hosts.cli.settle import gather, journals_of, remove_held
from plan_mode_nb.store.files import read_bytes
from plan_mode_nb.store.journal import journal_folder
from plan_mode_nb.store.notebook import parse_notebook, read_notebook, write_notebook

NOTEBOOK_VARIABLE: Final = "PLAN_MODE_NB_NOTEBOOK"


class Executed(Struct, frozen=True):
    """``notebook``: its JSON as saved. ``sessions``: ids of the sessions that this run began. ``cells``: how many code cells ran.

    ``failure``: why it stopped early, "" where every cell ran. ``problems``: a sentence for each part of a log that could not be kept.
    """

    notebook: Mapping[str, Any]
    document: Document
    sessions: tuple[str, ...]
    cells: int
    failure: str
    problems: tuple[str, ...]


def execute(path: Path, *, timeout: int | None, kernel: str | None, environment: Mapping[str, str]) -> Executed:
    """Run the notebook's code cells in its folder, in order, until one fails, and save it in any case.

    ``timeout``: seconds for one cell. ``kernel``: the kernel's name, default the notebook's. ``environment``: the kernel's; the notebook's
    path is added.

    Raises:
        StoreError: it cannot be read or written.
        FormatError: it is no valid notebook of format 4; nothing was run.
    """
    path = path.absolute()
    notebook = _open(path)
    received = Received()
    cells = Cells(notebook, path.parent, received)
    try:
        cells.run(timeout=timeout, kernel=kernel, environment={**environment, NOTEBOOK_VARIABLE: str(path)})
    finally:
        executed = _save(path, notebook, received, cells)
    return executed


def _open(path: Path) -> Any:
    import nbformat
    from nbformat.validator import iter_validate

    text = read_bytes(path).decode("utf-8", "replace").removeprefix("\ufeff")
    parse_notebook(text, path.name)
    if not os.access(path, os.W_OK):
        raise StoreError(f"{path.name} is read-only, and a run is saved in place; make it writable or run a copy")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without ids get some
            notebook = nbformat.reads(text, as_version=4)
        fault = next(iter_validate(notebook), None)
    except nbformat.ValidationError as error:
        fault = error
    if fault is not None:
        raise FormatError(f"{path.name} is not a valid notebook ({str(fault).splitlines()[0]}); open it in Jupyter and save it")
    return notebook


def _save(path: Path, notebook: Any, received: Received, cells: Cells) -> Executed:
    """Reconcile with the file as it is now and with the kernel's journals; write; let go of the journals that are in it now."""
    on_disk = _ours_on_disk(path, notebook)
    stored, new = read_metadata(on_disk), received.document
    cells_now = _json(notebook)["cells"]
    carried = read_outputs(cells_now)
    journals = journals_of(journal_folder(create=False), path, cells.kernels, {*stored.sessions, *new.sessions})
    document = gather(merge_documents(stored, carried), new, journals)
    others = {key: value for key, value in _json(notebook)["metadata"].items() if not is_ours(key)}
    kept = cells_now if carried.problems else [without_events(cell) for cell in cells_now]
    saved = {**_json(notebook), "cells": kept, "metadata": dict(sorted(write_metadata(document, {**others, **on_disk}).items()))}
    write_notebook(path, saved)
    remove_held(read_metadata(saved["metadata"]), journals)
    return Executed(
        notebook=saved,
        document=document,
        sessions=tuple(id for id in document.sessions if id not in stored.sessions),
        cells=cells.ran,
        failure=cells.failure,
        problems=tuple(dict.fromkeys((*received.problems, *document.problems))),
    )


def _ours_on_disk(path: Path, notebook: Any) -> dict[str, Any]:
    """What is ours in the file now; of the notebook as it was opened where the file is gone or damaged meanwhile."""
    try:
        metadata = read_notebook(path)["metadata"]
    except PlanModeError:
        metadata = _json(notebook)["metadata"]
    return {key: value for key, value in metadata.items() if is_ours(key)}


def _json(notebook: Any) -> dict[str, Any]:
    """The notebook as it lies in a file: sources and texts as lists of lines."""
    import nbformat

    value: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return value
