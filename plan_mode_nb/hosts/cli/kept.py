"""The journals that wait: which conversations are not in their notebook, and how to bring them in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.hosts.cli.findings import Finding, fix, ok
from plan_mode_nb.store.journal import JournalFile, journals
from plan_mode_nb.store.merging import is_kept
from plan_mode_nb.store.notebook import load_document


def waiting(folder: Path) -> Iterator[Finding]:
    """One line for each journal of a kernel that is gone. One that its notebook will take in by itself needs nothing."""
    found, problems = journals(folder)
    for problem in problems:
        yield fix("journal", f"{problem}; move it out of {folder}")
    live = sum(journal.is_live for journal in found)
    yield ok("journals", f"{live} written by running kernels, {len(found) - live} of kernels that are gone, in {folder}")
    for journal in found:
        if not journal.is_live:
            yield _finding(journal)


def _finding(journal: JournalFile) -> Finding:
    what = f"session {journal.header.id} ({len(journal.lines)} events)"
    notebook = None if journal.notebook is None else Path(journal.notebook)
    if notebook is not None and notebook.exists():
        try:
            document = load_document(notebook)
        except PlanModeError as error:
            return fix("journal", f"{what}: {error}; {_way_out(journal)}")
        if is_kept(document, journal):
            return ok("journal", f"{what} is in {notebook}; the next save there removes the journal")
        named = {journal.header.id, journal.header.parent_session} if journal.answers_to is None else {journal.header.id}
        if named & document.sessions.keys():
            return ok("journal", f"{what} is taken into {notebook} when that is next opened or saved")
    where = f"not in {notebook}" if notebook is not None else "of a notebook that is not known"
    return fix("journal", f"{what} is {where}; {_way_out(journal)}")


def _way_out(journal: JournalFile) -> str:
    return f"plan-mode-nb import {shlex.quote(str(journal.path))} NOTEBOOK.ipynb keeps it, deleting the file drops it"
