"""``append_per_s``: events a second through the journal, one append each, every one out of the process before it counts."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import interleaved, rounded
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.testing import logs

APPENDS = 2_000


def measure() -> dict[str, Any]:
    """``{"append_per_s": events}``."""
    with tempfile.TemporaryDirectory() as folder:
        session = logs.new_session()
        journal = Journal(Path(folder), session.header, session.lines, kernel="k", notebook=None, pid=os.getpid())
        session.sink = journal
        (seconds,) = interleaved([partial(_append, session)], 9)
        journal.close()
    return {"append_per_s": round(rounded(APPENDS / seconds))}


def _append(session: Session) -> None:
    for index in range(APPENDS):
        session.append(logs.plan_selected(bool(index % 2)))
