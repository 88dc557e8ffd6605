"""What a save must write: the metadata that is being saved, made to agree with the file and the journals. No Jupyter, no IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from plan_mode_nb.document.chunks import is_ours, read_metadata, write_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.store.journal import JournalFile
from plan_mode_nb.store.merging import merge_journals


class Saved(Struct, frozen=True):
    """``metadata``: what to write. ``changes``: what the copy being saved lacked, in words. ``problems``: a sentence each."""

    metadata: dict[str, Any]
    changes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def reconciled(metadata: Mapping[str, Any], on_disk: Mapping[str, Any], journals: Sequence[JournalFile] = ()) -> Saved:
    """Reconcile the metadata being saved with the file's and with journals of the same notebook.

    Where either copy cannot be read, nothing is merged: what is on disk stays as it is, and what only the new copy has is added beside it.
    """
    saving, disk = read_metadata(metadata), read_metadata(on_disk)
    if saving.locked or disk.locked:
        kept = {**metadata, **{key: value for key, value in on_disk.items() if is_ours(key)}}
        return Saved(kept, problems=tuple(dict.fromkeys((*disk.problems, *saving.problems))))
    merged = merge_journals(merge_documents(saving, disk), journals)
    return Saved(write_metadata(merged, metadata), tuple(_changes(saving, merged)), merged.problems)


def _changes(saving: Document, merged: Document) -> list[str]:
    changes = []
    for session_id, session in merged.sessions.items():
        there = saving.sessions.get(session_id)
        if there is None:
            changes.append(f"session {session_id} ({len(session.lines)} events)")
        elif len(session.lines) > len(there.lines):
            changes.append(f"{len(session.lines) - len(there.lines)} more events of session {session_id}")
        elif list(session.lines) != list(there.lines):
            changes.append(f"another continuation of session {session_id}")
    changes.extend(f"without session {session_id}, which was stripped" for session_id in saving.sessions if merged.is_stripped(session_id))
    images = len(merged.attachments.keys() - saving.attachments.keys())
    return [*changes, *([f"{images} images"] if images else [])]
