"""The hooks around a save. They never raise and never refuse: a fault of ours must not cost anybody their notebook.

Everything of jupyter_server is passed in. Both hooks run inside the save, on the server's thread.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from plan_mode_nb.document.chunks import KEY, is_ours, read_metadata
from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.hosts.server.saved import Saved, reconciled
from plan_mode_nb.store.belonging import journals_for
from plan_mode_nb.store.journal import JournalFile, journal_folder, read_journal
from plan_mode_nb.store.merging import is_kept

_MARK = f'"{KEY}'.encode()


class Kernels(Struct, frozen=True):
    """Kernels by id that the server maps to a notebook. ``shared``: those that another notebook uses as well."""

    mapped: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


class SaveHook:
    """One per server. ``session_manager``: the server's, asked which kernels a notebook has."""

    def __init__(self, session_manager: Any, log: logging.Logger) -> None:
        self._sessions = session_manager
        self._log = log
        self._told: dict[str, tuple[str, ...]] = {}
        self._merged: dict[str, list[Path]] = {}

    def before_save(self, model: Any, path: str, contents_manager: Any, **_: Any) -> None:
        """Bring into ``model`` what the file and the journals have and it lacks."""
        try:
            content = model.get("content") if model.get("type") == "notebook" else None
            if isinstance(content, dict) and isinstance(content.get("metadata", {}), dict):
                self._reconcile(content, path.strip("/"), contents_manager)
        except Exception:  # noqa: BLE001 - a fault of ours must not cost anybody their notebook
            self._log.exception("plan_mode_nb: %s is saved as it came", path)

    def after_save(self, model: Any, os_path: str, contents_manager: Any, **_: Any) -> None:
        """Remove journals of kernels that are gone, once the file that was just written holds their events."""
        try:
            for journal in self._merged.pop(os_path, ()):
                self._settle(journal, os_path)
        except Exception:  # noqa: BLE001 - a fault of ours must not cost anybody their notebook
            self._log.exception("plan_mode_nb: the journals of %s stay", os_path)

    def _reconcile(self, content: dict[str, Any], path: str, contents_manager: Any) -> None:
        metadata = content.get("metadata", {})
        os_path = contents_manager._get_os_path(path) if hasattr(contents_manager, "_get_os_path") else None
        on_disk = self._on_disk(path, os_path, contents_manager)
        journals = self._journals(path, os_path, _named(metadata) | _named(on_disk))
        if os_path is not None:
            self._merged[os_path] = [each.path for each in journals if not each.is_live]
        if not journals and not any(map(is_ours, metadata)) and not on_disk:
            return
        self._put(content, path, reconciled(metadata, on_disk, journals))

    def _put(self, content: dict[str, Any], path: str, saved: Saved) -> None:
        # A notebook is saved again every two minutes: what stays wrong is said once.
        if saved.problems != self._told.get(path, ()):
            self._told[path] = saved.problems
            for problem in saved.problems:
                self._log.warning("plan_mode_nb: %s: %s", path, problem)
        if saved.metadata != content.get("metadata", {}):
            content["metadata"] = saved.metadata
            what = ", ".join(saved.changes) or "what the file had and the saved copy had not"
            self._log.info("plan_mode_nb: %s was saved with %s", path, what)

    def _on_disk(self, path: str, os_path: str | None, contents_manager: Any) -> dict[str, Any]:
        """What is ours in the file that is about to be replaced."""
        if os_path is not None:
            return {} if not os.path.exists(os_path) else self._in_file(Path(os_path), path)
        if inspect.iscoroutinefunction(contents_manager.get) or not contents_manager.file_exists(path):
            return {}
        return _ours(contents_manager.get(path, content=True, type="notebook")["content"]["metadata"])

    def _in_file(self, file: Path, path: str) -> dict[str, Any]:
        data = file.read_bytes()
        if _MARK not in data:
            return {}
        try:
            return _ours(json.loads(data)["metadata"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._log.warning("plan_mode_nb: the file of %s is damaged (%s), so nothing of it could be kept in this save", path, error)
            return {}

    def _journals(self, path: str, os_path: str | None, sessions: set[str]) -> list[JournalFile]:
        kernels = self._kernels(path)
        here = os.path.realpath(os_path) if os_path is not None else ""
        try:
            found = journals_for(journal_folder(create=False), notebook=here, kernels=kernels.mapped, sessions=sessions)
        except (PlanModeError, OSError) as error:
            self._log.warning("plan_mode_nb: the journals of %s were not read: %s", path, error)
            return []
        return [each for each in found if each.kernel not in kernels.shared or _records(each, here)]

    def _kernels(self, path: str) -> Kernels:
        """The session manager's own table: its methods are coroutines, and a hook cannot wait."""
        try:
            rows = self._sessions.cursor.connection.execute("SELECT path, type, kernel_id FROM session").fetchall()
        except Exception as error:  # noqa: BLE001 - another session manager, or another thread's database: the journals' own paths remain
            self._log.debug("plan_mode_nb: the kernels of %s are not known: %r", path, error)
            return Kernels()
        mapped = {kernel for where, _, kernel in rows if _same(where, path)}
        elsewhere = {kernel for where, kind, kernel in rows if kind == "notebook" and not _same(where, path)}
        return Kernels(frozenset(mapped), frozenset(mapped & elsewhere))

    def _settle(self, journal: Path, os_path: str) -> None:
        if not journal.exists():
            return
        read = read_journal(journal)
        if not read.is_live and is_kept(read_metadata(self._in_file(Path(os_path), os_path)), read) and read.remove():
            self._log.info("plan_mode_nb: the journal %s was removed: its events are in %s", journal.name, os_path)


def _same(session_path: str, path: str) -> bool:
    """Whether a session is of this notebook; collaboration may put a drive's name before the path (``RTC:``)."""
    return path in (session_path.strip("/"), session_path.partition(":")[2].strip("/"))


def _records(journal: JournalFile, here: str) -> bool:
    return journal.notebook is not None and os.path.realpath(journal.notebook) == here


def _named(metadata: Mapping[str, Any]) -> set[str]:
    """The ids of the sessions that a copy names, readable or not."""
    index = metadata.get(KEY)
    sessions = index.get("sessions") if isinstance(index, Mapping) else None
    return set(sessions) if isinstance(sessions, Mapping) else set()


def _ours(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if is_ours(key)}
