"""The hook with jupyter_server's own managers in this process: collaboration's paths, managers without files, faults."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from pathlib import Path
from typing import Any

import pytest
import stored
from jupyter_server.services.contents.filecheckpoints import GenericFileCheckpoints
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupyter_server.services.contents.manager import AsyncContentsManager, ContentsManager
from jupyter_server.services.sessions.sessionmanager import SessionManager
from traitlets import Dict

from plan_mode_nb.hosts.server.hook import SaveHook
from plan_mode_nb.store.journal import FOLDER

SHORT, LONG = stored.lines(1), stored.lines(3)
LOG = logging.getLogger("test.server")


class Memory(ContentsManager):  # type: ignore[misc]
    """Notebooks in a dictionary."""

    notebooks = Dict()

    def _checkpoints_class_default(self) -> type:
        return GenericFileCheckpoints

    def file_exists(self, path: str = "") -> bool:
        return path in self.notebooks

    def get(self, path: str, content: bool = True, type: str | None = None, format: str | None = None) -> dict[str, Any]:
        return {"type": "notebook", "content": self.notebooks[path]}

    def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        self.run_pre_save_hooks(model=model, path=path)
        self.notebooks[path] = model["content"]
        return model


class AsyncMemory(AsyncContentsManager):  # type: ignore[misc]
    """The same, asynchronously."""

    notebooks = Dict()

    async def file_exists(self, path: str = "") -> bool:
        return path in self.notebooks

    async def get(self, path: str, content: bool = True, type: str | None = None, format: str | None = None) -> dict[str, Any]:
        return {"type": "notebook", "content": self.notebooks[path]}

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        self.run_pre_save_hooks(model=model, path=path)
        self.notebooks[path] = model["content"]
        return model


@pytest.fixture
def sessions() -> SessionManager:
    return SessionManager()


@pytest.fixture
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path / "runtime" / FOLDER


def maps(sessions: SessionManager, path: str, kernel: str, kind: str = "notebook") -> None:
    """A session as the manager keeps it."""
    sessions.cursor.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", (f"{path}/{kernel}", path, "", kind, kernel))


def model(metadata: dict[str, Any]) -> dict[str, Any]:
    """What a front end sends."""
    return {"type": "notebook", "format": "json", "content": stored.notebook(metadata)}


@pytest.mark.parametrize("where", ["notes/a.ipynb", "RTC:notes/a.ipynb", "/notes/a.ipynb"])
def test_a_session_is_of_the_notebook_whatever_drive_its_path_names(where: str, sessions: SessionManager, journals: Path) -> None:
    maps(sessions, where, "k")
    maps(sessions, "other.ipynb", "k2")
    maps(sessions, "console-1", "k", "console")
    stored.journal(journals, "s", LONG, kernel="k", path=None).close()
    stored.journal(journals, "t", LONG, kernel="k2", path=None).close()
    saved = model({})
    SaveHook(sessions, LOG).before_save(saved, "notes/a.ipynb", Memory())
    assert stored.held(saved["content"]["metadata"]) == {"s": LONG}


def test_a_manager_without_files_keeps_what_it_has(sessions: SessionManager, journals: Path) -> None:
    manager = Memory(notebooks={"a.ipynb": stored.notebook(stored.metadata({"s": LONG}))})
    hook = SaveHook(sessions, LOG)
    manager.register_pre_save_hook(hook.before_save)
    manager.save(model(stored.metadata({"s": SHORT})), "a.ipynb")
    assert stored.held(manager.notebooks["a.ipynb"]["metadata"]) == {"s": LONG}
    manager.save(model(stored.metadata({"t": SHORT})), "new.ipynb")
    assert stored.held(manager.notebooks["new.ipynb"]["metadata"]) == {"t": SHORT}


def test_an_asynchronous_manager_without_files_takes_the_journals_in(sessions: SessionManager, journals: Path) -> None:
    manager = AsyncMemory()
    maps(sessions, "a.ipynb", "k")
    stored.journal(journals, "s", LONG, kernel="k", path=None).close()
    manager.register_pre_save_hook(SaveHook(sessions, LOG).before_save)
    asyncio.run(manager.save(model({}), "a.ipynb"))
    assert stored.held(manager.notebooks["a.ipynb"]["metadata"]) == {"s": LONG}


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"type": "file", "content": "text", "chunk": 1},
        {"type": "directory"},
        {"type": "notebook"},
        {"type": "notebook", "content": None},
        {"type": "notebook", "content": {"metadata": 5}},
        {"type": "notebook", "content": {"cells": []}},
    ],
)
def test_what_is_no_notebook_is_saved_as_it_came(saved: dict[str, Any], sessions: SessionManager, caplog: pytest.LogCaptureFixture) -> None:
    before = copy.deepcopy(saved)
    SaveHook(sessions, LOG).before_save(saved, "a.ipynb", Memory())
    assert saved == before
    assert not caplog.records


def test_a_fault_never_leaves_the_hook(sessions: SessionManager, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hook, manager = SaveHook(sessions, LOG), LargeFileManager(root_dir=str(tmp_path))
    saved = model({})
    hook.before_save(saved, "../outside.ipynb", manager)
    assert saved == model({})
    hook.before_save(5, "a.ipynb", manager)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert all("is saved as it came" in record.message for record in caplog.records)


def test_without_a_session_table_the_paths_of_the_journals_remain(tmp_path: Path, journals: Path) -> None:
    stored.journal(journals, "s", LONG, kernel="k", path=tmp_path / "a.ipynb").close()
    saved = model(stored.metadata({"s": SHORT}))
    SaveHook(object(), LOG).before_save(saved, "a.ipynb", LargeFileManager(root_dir=str(tmp_path)))
    assert stored.held(saved["content"]["metadata"]) == {"s": LONG}


def test_journals_of_other_notebooks_are_not_read(tmp_path: Path, sessions: SessionManager, journals: Path) -> None:
    journals.mkdir(parents=True, mode=0o700)
    unreadable = journals / "elsewhere.k2.journal"
    unreadable.mkdir()  # reading it would fail, and be said
    maps(sessions, "a.ipynb", "k")
    saved = model(stored.metadata({"s": SHORT}))
    SaveHook(sessions, LOG).before_save(saved, "a.ipynb", LargeFileManager(root_dir=str(tmp_path)))
    assert stored.held(saved["content"]["metadata"]) == {"s": SHORT}


def test_a_long_conversation_is_reconciled_within_a_second(tmp_path: Path, sessions: SessionManager, journals: Path) -> None:
    one = stored.lines(1, "x" * 1800)
    long = [line for _ in range(3500) for line in one]  # 9 MB
    maps(sessions, "a.ipynb", "k")
    stored.journal(journals, "s", long, kernel="k", path=tmp_path / "a.ipynb").close()
    hook, manager = SaveHook(sessions, LOG), LargeFileManager(root_dir=str(tmp_path))
    hook.before_save(saved := model({}), "a.ipynb", manager)
    manager.save(saved, "a.ipynb")
    again = model(stored.metadata({"s": long[:-6]}))
    began = time.perf_counter()
    hook.before_save(again, "a.ipynb", manager)
    took = time.perf_counter() - began
    assert stored.held(again["content"]["metadata"]) == {"s": long}
    assert took < 1.0
