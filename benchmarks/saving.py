"""``save_ms``: what the server's hook adds to the save of a notebook of 33,000 events, its file and its journal there, one turn new."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.made_logs import closed, notebook_of, one_turn
from benchmarks.measuring import interleaved, rounded
from plan_mode_nb.document.chunks import is_ours
from plan_mode_nb.hosts.server.saved import reconciled
from plan_mode_nb.store.belonging import journals_for
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.testing import logs

EVENTS = 33_000


def measure() -> dict[str, Any]:
    """``{"save_ms": ms}``."""
    with tempfile.TemporaryDirectory() as folder:
        path, journals = Path(folder) / "notebook.ipynb", Path(folder) / "journals"
        before = closed(EVENTS)
        notebook_of(before, path)
        session = logs.new_session(lines=list(before.lines))
        journal = Journal(journals, session.header, session.lines, kernel="k", notebook=str(path), pid=os.getpid())
        session.sink = journal
        session.append(*one_turn(session.place.next_turn))
        saving = json.loads(path.read_text(encoding="utf-8"))["metadata"]

        def save() -> None:
            on_disk = {key: value for key, value in json.loads(path.read_bytes())["metadata"].items() if is_ours(key)}
            found = journals_for(journals, notebook=str(path), kernels=frozenset(), sessions={session.id})
            assert len(reconciled(saving, on_disk, found).changes) == 1

        (seconds,) = interleaved([save], 7)
        journal.close()
    return {"save_ms": rounded(seconds * 1e3)}
