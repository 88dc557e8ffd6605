"""Sessions that were stripped from the notebook while this kernel went on with them: it begins a new one, and the old never returns."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.document.document import Document

_MARK = b'"stripped"'


class Tombstones:
    """What the open page answered, and what the notebook's file says; the file is read again only when it changed."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None
        self._in_file: frozenset[str] = frozenset()

    def gone(self, sessions: Collection[str], answered: Collection[str], notebook: Path | None) -> list[str]:
        """Those of these sessions that were stripped. ``answered``: ids that a page refused for that."""
        if notebook is not None:
            self._look(notebook)
        stripped = Document(stripped=self._in_file.union(answered))
        return [session for session in sessions if stripped.is_stripped(session)]

    def _look(self, notebook: Path) -> None:
        try:
            found = notebook.stat()
            seen = (found.st_mtime_ns, found.st_size)
            data = notebook.read_bytes() if seen != self._seen else None
        except OSError:
            return  # it is being replaced, or somewhere else; the next cell looks again
        self._seen = seen
        if data is not None:
            self._in_file = _stripped(data) if _MARK in data else frozenset()


def _stripped(data: bytes) -> frozenset[str]:
    try:
        notebook: Any = json.loads(data)
    except (ValueError, RecursionError):
        return frozenset()
    return read_metadata(notebook.get("metadata") if isinstance(notebook, dict) else None).stripped
