"""``export`` and ``import``: sessions in and out of notebooks. The source is never written."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import typer
from msgspec import UNSET
from msgspec.structs import replace

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.reconcile import with_agents
from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.hosts.cli.reading import open_session
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.dsh_home import images_named, keep_images, missing_images, session_place
from plan_mode_nb.store.journal import SUFFIX
from plan_mode_nb.store.jsonl import ZSTD_SUFFIXES, save_jsonl
from plan_mode_nb.store.notebook import load_document, save_document, write_notebook
from plan_mode_nb.store.sources import images_of

NEW_NOTEBOOK: Final[dict[str, Any]] = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "load-plan-mode-nb",
            "metadata": {},
            "outputs": [],
            "source": ["%load_ext plan_mode_nb"],
        }
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def export_command(source: Path, file: Path, *, session: str | None) -> None:
    """Write a session as a log that deepseek-harness reads. An existing log of that name is replaced.

    Raises:
        StoreError, LogError: it cannot be read or written; FILE is not named as a log.
    """
    if file.suffix not in (".jsonl", *ZSTD_SUFFIXES):
        raise StoreError(f"{file.name} would not be known as a log; name it .jsonl, or .jsonl.zstd for a compressed one")
    opened = open_session(source, session)
    images = _images(source, opened)
    save_jsonl(file, opened.header, opened.lines)
    typer.echo(f"{len(opened)} events of session {opened.id} are in {file}.")
    place = session_place(opened.header, file.suffix)
    if not file.resolve().as_posix().endswith(f"/{place}"):
        typer.echo(f"deepseek-harness opens it as {place} in its home (DSH_HOME, or ~/.dsh).")
    if images:
        folder = keep_images(images, file)
        shown = "The image that it shows is" if len(images) == 1 else f"The {len(images)} images that it shows are"
        typer.echo(f"{shown} in {folder}.")


def import_command(source: Path, notebook: Path, *, session: str | None) -> None:
    """Put a session into a notebook, and make it the one that agent main goes on with. A missing notebook is made.

    Raises:
        StoreError, LogError: it cannot be read or written; the notebook has that session already, or is one that we may not write to.
    """
    if notebook.suffix != ".ipynb":
        raise StoreError(f"{notebook.name} is no notebook's name; name the notebook second: plan-mode-nb import SESSION NOTEBOOK.ipynb")
    opened = open_session(source, session)
    document = load_document(notebook) if notebook.exists() else Document()
    added = _added(opened, document, notebook, is_journal=source.suffix == SUFFIX)
    images = {digest: base64.b64encode(data).decode() for digest, data in _images(source, opened).items()}
    added = replace(added, attachments={**images, **added.attachments})
    if not notebook.exists():
        write_notebook(notebook, NEW_NOTEBOOK)
    save_document(notebook, added)
    typer.echo(f"Session {opened.id} with {len(opened)} events is in {notebook}.{_before(document, opened)}")


def _added(opened: Session, document: Document, notebook: Path, *, is_journal: bool) -> Document:
    if document.locked:
        raise FormatError(document.locked)
    if document.is_stripped(opened.id):
        raise FormatError(f"session {opened.id} was stripped from {notebook.name} and does not come back; import it into another notebook")
    if opened.id in document.unread.headers:
        raise FormatError(f"{notebook.name} holds session {opened.id} already, in a form that cannot be read; import into another notebook")
    there = document.sessions.get(opened.id)
    # A journal may know how a conversation went on that the notebook has the beginning of: that adds, and replaces nothing.
    if there is not None and not (is_journal and _goes_on(there, opened)):
        raise FormatError(f"{notebook.name} holds session {opened.id} already; import into another notebook to keep both")
    sessions = {**document.sessions, opened.id: StoredSession(opened.header, list(opened.lines))}
    is_child = opened.header.origin is not UNSET
    added = replace(document, sessions=sessions)
    return added if is_child else with_agents(added, {"main": opened.id})


def _goes_on(there: StoredSession, opened: Session) -> bool:
    held = list(there.lines)
    return len(held) < len(opened) and list(opened.lines[: len(held)]) == held


def _before(document: Document, opened: Session) -> str:
    main = document.agents.get("main")
    return "" if main in (None, opened.id) else f" Its agent goes on with it; session {main} stays beside it."


def _images(source: Path, opened: Session) -> dict[str, bytes]:
    """The images that the session shows; what is missing is said on stderr."""
    found = images_of(source, opened)
    missing = missing_images(images_named(opened), found)
    if missing:
        typer.echo(f"note: {missing}", err=True)
    return found
