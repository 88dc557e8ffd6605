"""Journals into the document of the notebook that they belong to."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import holds, merge_documents
from plan_mode_nb.store.journal import JournalFile


def merge_journals(document: Document, journals: Iterable[JournalFile]) -> Document:
    """The document with everything that the journals hold.

    The notebook says which agent a session answers to; a journal is asked only about one that the notebook does not have, or where it
    knows of a later choice.
    """
    return without_bare(merge_documents(document, *(_part(each, document) for each in journals)), document)


def without_bare(merged: Document, before: Document) -> Document:
    """Without sessions that came with a journal, hold nothing and have no name: begun, and given up before a word was said."""
    named = set(merged.agents.values())
    kept = {id: each for id, each in merged.sessions.items() if each.lines or id in named or id in before.sessions}
    return merged if len(kept) == len(merged.sessions) else replace(merged, sessions=kept)


def is_kept(document: Document, journal: JournalFile) -> bool:
    """Whether a document holds all that a journal does: its events, its images, and the choice that made it its agent's session."""
    has_choice = document.chosen.get(journal.answers_to or "", 0) >= journal.chosen
    return has_choice and journal.attachments.keys() <= document.attachments.keys() and holds(document, journal.session)


def _part(journal: JournalFile, document: Document) -> Document:
    is_later = journal.chosen > document.chosen.get(journal.answers_to or "", 0)
    if journal.header.id not in document.sessions or is_later:
        return journal.document
    return replace(journal.document, agents={}, chosen={})
