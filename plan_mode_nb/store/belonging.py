"""Which journals belong to a notebook."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import UNSET

from plan_mode_nb.document.document import Document
from plan_mode_nb.log.events import Header
from plan_mode_nb.store.journal import FOLDER, JournalFile, journals, segment


def journals_for(folder: Path, *, notebook: str, kernels: Collection[str], sessions: Collection[str]) -> list[JournalFile]:
    """The journals that belong to a notebook: those of the kernels mapped to it, and those that record its path and a session it names, or
    a child of one.

    Only files whose names say that they may belong are read: a save must not read every conversation of this user.
    """
    here = os.path.realpath(notebook)
    starts = tuple(f"{segment(session)}." for session in sessions)
    parts = [f".{segment(kernel)}" for kernel in kernels]
    found = journals(folder, lambda name: name.startswith(starts) or any(part in name for part in parts))[0]
    ids = {*sessions, *_children([each.header for each in found], sessions)}
    return [
        each
        for each in found
        if each.kernel in kernels or (each.header.id in ids and each.notebook is not None and os.path.realpath(each.notebook) == here)
    ]


def journal_documents(runtime: str | Path, notebook: str | Path) -> list[Document]:
    """One document for each journal under a Jupyter runtime folder that records this notebook's path."""
    here = os.path.realpath(notebook)
    found, _ = journals(Path(runtime) / FOLDER)
    return [each.document for each in found if each.notebook is not None and os.path.realpath(each.notebook) == here]


def _children(headers: Sequence[Header], sessions: Collection[str]) -> list[str]:
    """The ids of the children of these sessions, and of theirs."""
    lineage = list(sessions)
    for parent in lineage:
        lineage += [each.id for each in headers if each.origin is not UNSET and each.parent_session == parent and each.id not in lineage]
    return lineage[len(sessions) :]
