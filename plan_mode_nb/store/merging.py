"""Journals into the document of the notebook that they belong to."""

from __future__ import annotations

from collections.abc import Iterable

from plan_mode_nb.document.document import Document, one_session
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.store.journal import JournalFile


def merge_journals(document: Document, journals: Iterable[JournalFile]) -> Document:
    """The document with everything that the journals hold.

    The notebook says which agent a session answers to; a journal is asked only about one that the notebook does not have.
    """
    return merge_documents(
        document, *(one_session(each.session) if each.header.id in document.sessions else each.document for each in journals)
    )
