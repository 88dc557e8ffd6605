"""Where a terminal keeps its log: the file that ``PlanAgent.log_file`` names, and its siblings.

``chat.jsonl`` holds the main agent's present session, ``chat.NAME.jsonl`` that of another agent, ``chat.ID.jsonl`` a child's, or one that
another took the place of. Nothing is ever written over but a file that holds the beginning of the same log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path
from typing import final
from urllib.parse import quote

from msgspec import UNSET

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.exceptions import PlanModeError, StoreError
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.jsonl import LogFile, load_jsonl
from plan_mode_nb.store.locks import is_locked

MAIN = "main"
_LONGEST_ID = 100


@final
class LogFiles:
    """``log_file()``: the setting. It is read once, at the first use; a later change counts when the extension is loaded again."""

    def __init__(self, log_file: Callable[[], str]) -> None:
        self._log_file = log_file
        self._base: Path | None = None
        self._open: dict[Path, LogFile] = {}
        self._where: dict[str, Path] = {}

    def found(self) -> Document:
        """Every session in these files. One that cannot be read is a problem in words, and stays as it is."""
        named = self._log_file().strip()
        self._base = Path(named).expanduser().absolute() if named else None
        agents: dict[str, str] = {}
        sessions: dict[str, StoredSession] = {}
        problems: list[str] = []
        for path in self._files():
            try:
                held = load_jsonl(path)
            except PlanModeError as error:
                problems.append(f"{path} cannot be read ({error}); it was left as it is")
                continue
            problems += [f"{path}: {problem}" for problem in held.problems]
            sessions[held.header.id] = StoredSession(held.header, held.lines)
            name = self._name(path)
            if name != _in_a_name(held.header.id):
                agents[name] = held.header.id
        return Document(agents=agents, sessions=sessions, problems=tuple(problems))

    def sink(self, name: str, session: Session) -> LogFile | None:
        """The file of an agent's session. What the file held before is set aside under its own id.

        Raises:
            StoreError: another process writes the file, or it holds something that is no log; nothing was changed.
        """
        if self._base is None:
            return None
        aside = self._path(_in_a_name(session.id))
        path = self._path(name) if session.header.origin is UNSET else aside
        self._make_room(path, session.id)
        if aside.exists() and not path.exists():
            self._release(aside)
            os.replace(aside, path)
        log = LogFile(path, session.header, session.lines)
        self._open[path] = log
        self._where[session.id] = path
        return log

    def where(self, session: Session) -> str:
        """In words for a person."""
        path = self._where.get(session.id)
        return "memory only; PlanAgent.log_file names a file to keep it in" if path is None else str(path)

    def close(self) -> None:
        """Let the files go."""
        for path in list(self._open):
            self._release(path)

    def _make_room(self, path: Path, id: str) -> None:
        self._release(path)
        if not path.exists() or not path.stat().st_size:
            return
        if is_locked(path):
            return  # its first line will be refused, with a sentence; until then this session is only looked at
        try:
            held = load_jsonl(path).header.id
        except PlanModeError:
            return  # the same
        aside = self._path(_in_a_name(held))
        if held != id and aside.exists():
            raise StoreError(f"{aside} is in the way of the session in {path}; move one of them elsewhere")
        if held != id:
            os.replace(path, aside)
            self._where[held] = aside

    def _release(self, path: Path) -> None:
        log = self._open.pop(path, None)
        if log is not None:
            log.close()

    def _files(self) -> Iterator[Path]:
        base = self._base
        if base is None:
            return
        if base.exists():
            yield base
        yield from sorted(path for path in base.parent.glob(f"{escape(base.stem)}.*{escape(base.suffix)}") if path != base)

    def _path(self, name: str) -> Path:
        assert self._base is not None
        return self._base if name == MAIN else self._base.with_name(f"{self._base.stem}.{name}{self._base.suffix}")

    def _name(self, path: Path) -> str:
        """The agent's name, or the id, that a file is named by."""
        assert self._base is not None
        return MAIN if path == self._base else path.name.removeprefix(f"{self._base.stem}.").removesuffix(self._base.suffix)


def _in_a_name(id: str) -> str:
    """A session's id as a part of a file's name: ids of other programs may hold anything."""
    return quote(id, safe="")[:_LONGEST_ID]
