"""Where a kernel finds the log again: the notebook file, the journals of kernels before it, and what an open page holds.

Reading only. Nothing found is run, and what cannot be read is reported and left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plan_mode_nb.document.chunks import KEY, is_count, read_metadata
from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.document.outputs import read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError, PlanModeError
from plan_mode_nb.log.headers import read_header

NOTEBOOK_VARIABLE = "PLAN_MODE_NB_NOTEBOOK"


def notebook_path(shell: Any) -> Path | None:
    """The notebook's file as this kernel knows it, or None: by our own variable, by Jupyter's, by VS Code's."""
    candidates = (os.environ.get(NOTEBOOK_VARIABLE), os.environ.get("JPY_SESSION_NAME"), shell.user_ns.get("__vsc_ipynb_file__"))
    for name in candidates:
        if isinstance(name, str) and name.endswith(".ipynb"):
            path = Path(name)
            if path.is_absolute() or path.exists():
                return path.absolute()
    return None


def from_disk(path: Path | None, journal_folder: Path, kernel_id: str) -> Document:
    """What the notebook file holds, in its metadata and in outputs, with the journals that belong to it: this kernel's (a restart keeps its
    id), and those that name this path and a session of the file. Any other is left for ``doctor`` to offer."""
    from plan_mode_nb.store.journal import journals_for
    from plan_mode_nb.store.notebook import read_notebook

    stored, problems = Document(), []
    if path is not None and path.exists():
        try:
            notebook = read_notebook(path)
            stored = merge_documents(read_metadata(notebook["metadata"]), read_outputs(notebook["cells"]))
        except PlanModeError as error:
            problems.append(str(error))
    named = {id: name for name, id in stored.agents.items()}
    found = journals_for(journal_folder, notebook=str(path or ""), kernels={kernel_id}, sessions=set(stored.sessions))
    journals = [one_session(each.session, agent=named.get(each.header.id, "main")) for each in found if not each.is_live]
    merged = merge_documents(stored, *journals)
    return replace(merged, problems=(*merged.problems, *problems))


def from_page(session: str, lines: Sequence[str], index: Mapping[str, Any] | None) -> Document:
    """What a page sent of its session, and its tombstones; empty where its index does not fit."""
    listed = (index or {}).get("stripped")
    gone = Document(stripped=frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset())
    sessions = (index or {}).get("sessions")
    header = sessions.get(session) if isinstance(sessions, Mapping) else None
    if not lines or header is None:
        return gone
    try:
        read = read_header(header)
    except FormatError as error:
        return Document(problems=(f"the open notebook's {KEY!r} metadata cannot be read ({error}); it was left as it is",))
    named, counted = (index or {}).get("agents"), (index or {}).get("chosen")
    agents = {name: id for name, id in named.items() if id == session} if isinstance(named, Mapping) else {"main": session}
    chosen = {name: counted[name] for name in agents if isinstance(counted, Mapping) and is_count(counted.get(name))}
    return replace(gone, agents=agents, chosen=chosen, sessions={session: StoredSession(read, list(lines), dict(header))})
