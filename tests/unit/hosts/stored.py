"""Small conversations as they lie in files: lines, notebooks, journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plan_mode_nb.document.chunks import read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.testing import logs


def header(id: str, created: int = logs.FIRST_TIME) -> Header:
    """A session's header."""
    return Header(id=SessionId(id), created_at=created)


def lines(turns: int, last: str = "hello", *, id: str = "s") -> list[str]:
    """The lines of a conversation of so many turns; ``last``: what the person said in the last one."""
    session = logs.new_session(id)
    for turn in range(1, turns + 1):
        said = last if turn == turns else "hello"
        session.append(logs.turn_start(turn), logs.step_start(turn, 1), logs.user(said, id=f"u{turn}"))
        session.append(logs.assistant(turn, 1, "Good.", id=f"a{turn}"), logs.step_end(turn, 1), logs.turn_end(turn))
    return list(session.lines)


def metadata(sessions: Mapping[str, Sequence[str]], **document: Any) -> dict[str, Any]:
    """A notebook's metadata with these sessions; the first is agent main's."""
    stored = {id: StoredSession(header(id), list(each)) for id, each in sessions.items()}
    agents = {"main": next(iter(sessions))} if sessions else {}
    return write_metadata(Document(**{"agents": agents, "sessions": stored, **document}), {"kernelspec": KERNEL})


def held(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """The lines that a notebook's metadata holds, by session."""
    return {id: list(session.lines) for id, session in read_metadata(metadata).sessions.items()}


def notebook(metadata: Mapping[str, Any], *sources: str) -> dict[str, Any]:
    """A notebook of code cells."""
    cells = [
        {"cell_type": "code", "id": f"cell-{at}", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for at, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": dict(metadata), "nbformat": 4, "nbformat_minor": 5}


def journal(folder: Path, id: str, content: Sequence[str], *, kernel: str, path: Path | None, agent: str | None = None) -> Journal:
    """A journal that this process still writes; close it to let it go."""
    journal = Journal(folder, header(id), [], kernel=kernel, notebook=None if path is None else str(path), pid=1, agent=agent)
    journal.write(content)
    return journal


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
