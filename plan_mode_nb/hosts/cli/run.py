"""``run``: execute a notebook in place, and say what came of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from plan_mode_nb.document.document import Document
from plan_mode_nb.hosts.cli.execute import Executed, execute
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.events import Event


def run_command(notebook: Path, *, timeout: int | None, kernel: str | None) -> int:
    """The exit status: 1 where a cell failed.

    Raises:
        StoreError, FormatError: it is no notebook, or cannot be read or written.
    """
    executed = execute(notebook, timeout=timeout, kernel=kernel, environment=os.environ)
    for problem in executed.problems:
        typer.echo(f"note: {problem}", err=True)
    if executed.failure:
        typer.echo(f"plan-mode-nb: {notebook.name}: {executed.failure}", err=True)
        return 1
    typer.echo(f"{notebook.name}: {_count(executed.cells, 'cell')} ran.{_told(executed)}")
    return 0


def events_of(document: Document, session: str) -> list[Event]:
    """The events of a session of a document that was just written."""
    return [decode(line) for line in document.sessions[session].lines]


def _told(executed: Executed) -> str:
    said = ""
    for session in executed.sessions:
        events = events_of(executed.document, session)
        turns = sum(event.type == "turn/start" for event in events)
        said += f" Session {session}: {_count(turns, 'turn')}, {_count(len(events), 'event')}."
        said += _unanswered(events)
    return said


def _unanswered(events: Sequence[Event]) -> str:
    count = sum(event.type == "question/answered" and event.data["outcome"] == "unavailable" for event in events)
    return f" {_count(count, 'review')} had nobody to answer: open the notebook in Jupyter to go on from there." if count else ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
