"""``reopen_ratio`` and ``memory_ratio``: a notebook of 100,000 events, opened, beside its file.

Opened: the file read, its metadata understood, every event decoded and checked, and what ``fold --json`` prints of it computed. Compared
with ``json.load`` of the same file, which understands no event.
"""

from __future__ import annotations

import gc
import json
import tempfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.made_logs import closed, notebook_of
from benchmarks.measuring import interleaved, rounded
from plan_mode_nb.folds.summary import SUMMARY, session_summary
from plan_mode_nb.log.fold import Fold
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.notebook import load_document

EVENTS = 100_000


def measure() -> dict[str, Any]:
    """``{"reopen_ratio": times json.load, "memory_ratio": bytes kept by byte of the file}``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        notebook_of(closed(EVENTS), path)
        plain, ours = interleaved([lambda: _json(path), lambda: reopened(path)], 7)
        return {"reopen_ratio": rounded(ours / plain), "memory_ratio": rounded(_memory(path) / path.stat().st_size)}


def reopened(path: Path) -> tuple[Session, dict[str, Any]]:
    """A notebook's session, opened and checked, and what it amounts to: folded once."""
    session = opened(path, SUMMARY)
    return session, session_summary(session)


def opened(path: Path, folds: Sequence[Fold[Any, Any]] = ()) -> Session:
    """The session of a notebook, checked."""
    (stored,) = load_document(path).sessions.values()
    return Session(stored.header, clock=lambda: 1, lines=stored.lines, folds=folds)


def _json(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        return json.load(file)


def _memory(path: Path) -> int:
    """Bytes that the open session keeps, by tracemalloc; what a fold makes of it is its reader's."""
    gc.collect()
    tracemalloc.start()
    kept = opened(path)
    gc.collect()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept)
    return now
