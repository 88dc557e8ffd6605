"""One session out of any file that holds one: a notebook, a deepseek-harness log, a journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from plan_mode_nb.document.document import Document, StoredSession, decoded_images
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.events import Header
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.dsh_home import find_images, images_named
from plan_mode_nb.store.journal import SUFFIX, read_journal
from plan_mode_nb.store.jsonl import load_jsonl
from plan_mode_nb.store.notebook import load_document


class Source(Struct, frozen=True):
    """A session as text. ``problems``: one sentence for each part of the file that was left out; ``others``: what lies beside it."""

    header: Header
    lines: Sequence[str]
    problems: list[str]
    others: Sequence[StoredSession] = ()


def open_any(path: Path, session: str | None = None) -> Source:
    """Read a session from a file, without changing it. ``session``: its id where the file holds several (default: that of agent main).

    Raises:
        StoreError: the file cannot be read.
        FormatError: it holds no such session, or that session is damaged.
    """
    if path.suffix == ".ipynb":
        return _from_document(load_document(path), path.name, session)
    if path.suffix == SUFFIX:
        journal = read_journal(path)
        source = Source(journal.header, journal.lines, [])
    else:
        scan = load_jsonl(path)
        source = Source(scan.header, scan.lines, scan.problems)
    if session is not None and session != source.header.id:
        raise FormatError(f"{path.name} holds session {source.header.id}, not {session}")
    return source


def images_of(source: Path, session: Session) -> dict[str, bytes]:
    """The images that a session from this file shows, by sha256, as far as they are where its kind of file keeps them.

    Raises:
        StoreError, FormatError: as :func:`open_any`.
    """
    named = images_named(session)
    if source.suffix == ".ipynb":
        return decoded_images(load_document(source).attachments, named) if named else {}
    return find_images(named, source)


def _from_document(document: Document, name: str, session: str | None) -> Source:
    wanted = session or document.agents.get("main") or (next(iter(document.sessions)) if len(document.sessions) == 1 else None)
    if wanted is not None and wanted in document.sessions:
        found = document.sessions[wanted]
        others = [each for id, each in document.sessions.items() if id != wanted]
        return Source(found.header, list(found.lines), list(document.problems), others)
    if document.problems:
        raise FormatError(f"{name}: {'; '.join(document.problems)}")
    if not document.sessions:
        raise FormatError(f"{name} holds no session; run plan-mode-nb collect {name} if its cells carry one")
    listed = ", ".join(sorted(document.sessions))
    raise FormatError(f"{name} holds no session {wanted or 'of agent main'}; name one with --session: {listed}")
