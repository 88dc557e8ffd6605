"""Where a kernel finds the log again: the notebook file, the journals of kernels before it, and what an open page holds.

Reading only. Nothing found is run, and what cannot be read is reported and left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from plan_mode_nb.document.chunks import is_count, read_metadata
from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.document.outputs import read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError, PlanModeError
from plan_mode_nb.log.events import Header
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
    id), and those that name this path and a session of the file, also where the kernel that writes one still runs somewhere: it belongs to
    a server that is gone. Any other is left for ``doctor`` to offer."""
    from plan_mode_nb.store.belonging import journals_for
    from plan_mode_nb.store.merging import without_bare
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
    journals = [
        one_session(each.session, agent=named.get(each.header.id, each.answers_to), chosen=each.chosen, attachments=each.attachments)
        for each in found
        if not each.is_live or each.kernel != kernel_id
    ]
    merged = without_bare(merge_documents(stored, *journals), stored)
    return replace(merged, problems=(*merged.problems, *problems))


def from_page(
    lines: Mapping[str, Sequence[str]],
    index: Mapping[str, Any] | None,
    attachments: Mapping[str, str] | None = None,
    damaged: Collection[str] = (),
) -> Document:
    """What a page sent: its sessions (by id, each whole), its images, its tombstones; nothing but problems where its index does not fit.

    ``damaged``: ids of sessions whose events the page cannot read to their end. They stay as they are, and a new session begins beside.
    """
    index = index or {}
    listed = index.get("stripped")
    gone = Document(stripped=frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset())
    named, counted, headers = index.get("agents"), index.get("chosen"), index.get("sessions")
    sessions: dict[str, StoredSession] = {}
    problems = [f"session {id!r} in the open notebook cannot be read to its end; it was left as it is" for id in sorted(damaged)]
    for id, each in lines.items():
        if not each or not isinstance(headers, Mapping) or id not in headers:
            continue
        try:
            sessions[id] = StoredSession(_header(id, headers[id]), list(each), dict(headers[id]))
        except FormatError as error:
            problems.append(f"session {id!r} in the open notebook cannot be read ({error}); it was left as it is")
    agents = {name: id for name, id in named.items() if isinstance(id, str) and id in sessions} if isinstance(named, Mapping) else {}
    chosen = {name: counted[name] for name in agents if isinstance(counted, Mapping) and is_count(counted.get(name))}
    return replace(gone, agents=agents, chosen=chosen, sessions=sessions, attachments=attachments or {}, problems=tuple(problems))


def _header(id: str, value: Any) -> Header:
    header = read_header(value)
    if header.id != id:
        raise FormatError(f"its header says that it is session {header.id!r}")
    return header
