"""When a kernel is gone: what its journals hold goes into the notebook, and a journal goes once its events are there."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import merge_documents, with_agents
from plan_mode_nb.store.belonging import journals_for
from plan_mode_nb.store.journal import JournalFile, journal_folder
from plan_mode_nb.store.journal import journals as found
from plan_mode_nb.store.merging import is_kept, merge_journals
from plan_mode_nb.store.notebook import load_document, save_document


def gather(on_disk: Document, received: Document, journals: Collection[JournalFile]) -> Document:
    """Everything of one notebook. Its agents are those that the kernel named last: it knows who goes on with which session."""
    merged = merge_journals(merge_documents(on_disk, received), journals)
    return with_agents(merged, received.agents)


def journals_of(folder: Path, notebook: Path, kernels: Collection[str], sessions: Collection[str]) -> list[JournalFile]:
    """The journals of this notebook that no running kernel writes."""
    return [each for each in journals_for(folder, notebook=str(notebook), kernels=kernels, sessions=sessions) if not each.is_live]


def remove_held(document: Document, journals: Collection[JournalFile]) -> None:
    """Remove the journals whose events are all in the document, which is in its file."""
    for journal in journals:
        if is_kept(document, journal):
            journal.remove()


def settle(notebook: Path) -> None:
    """Bring the journals that record this notebook into it, and remove them. A notebook that is gone keeps its journals.

    Raises:
        StoreError, FormatError: it cannot be read or written.
    """
    if not notebook.exists():
        return
    journals = [each for each in found(journal_folder(create=False))[0] if not each.is_live and _records(each, notebook)]
    if journals:
        save_document(notebook, merge_journals(load_document(notebook), journals))
        remove_held(load_document(notebook), journals)


def _records(journal: JournalFile, notebook: Path) -> bool:
    return journal.notebook is not None and os.path.realpath(journal.notebook) == os.path.realpath(notebook)
