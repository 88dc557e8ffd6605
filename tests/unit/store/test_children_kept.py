"""Sessions of child agents where logs are kept: journals, outputs, a terminal's files. None answers to a name, and none is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.document.outputs import EVENTS_MIME, read_outputs
from plan_mode_nb.hosts.kernel.pieces import Pieces
from plan_mode_nb.hosts.kernel.sources import from_disk
from plan_mode_nb.hosts.terminal.log_files import LogFiles
from plan_mode_nb.log.closing import closers, is_open
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.belonging import journals_for
from plan_mode_nb.store.journal import Journal, journal_folder, read_journal
from plan_mode_nb.testing.logs import assistant, call_block, new_session, step_start, tool_call, turn_end, turn_start, user

NOTEBOOK = "/nb/a.ipynb"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return journal_folder(create=False)


def child_of(parent: Session, id: str) -> Session:
    return parent.child(id=SessionId(id))


def journaled(folder: Path, session: Session, *, kernel: str = "k", notebook: str = NOTEBOOK) -> Session:
    session.sink = Journal(folder, session.header, session.lines, kernel=kernel, notebook=notebook, pid=os.getpid())
    session.append(turn_start(1))
    return session


def test_a_child_belongs_where_its_parent_is_named_and_its_children_with_it(folder: Path) -> None:
    """Of this notebook alone; the file's name says that it may, so no other conversation is read."""
    parent = journaled(folder, new_session("p"))
    child = journaled(folder, child_of(parent, "p.1"), kernel="another")
    journaled(folder, child_of(child, "p.1.2"))
    journaled(folder, child_of(parent, "p.3"), notebook="/nb/other.ipynb")
    stranger = journaled(folder, new_session("q"))
    journaled(folder, child_of(stranger, "q.1"))
    found = journals_for(folder, notebook=NOTEBOOK, kernels=[], sessions=["p"])
    assert [each.header.id for each in found] == ["p.1.2", "p.1", "p"]
    assert {each.header.id: each.answers_to for each in found} == {"p": "main", "p.1": None, "p.1.2": None}
    assert journals_for(folder, notebook=NOTEBOOK, kernels=[], sessions=["p.1"])[0].header.parent_session == "p.1"


def test_a_reopened_kernel_takes_a_childs_journal_for_no_agents_session(folder: Path) -> None:
    """The younger session would otherwise be taken for the main one's."""
    parent = new_session("p")
    child = child_of(parent, "p.1")
    for session in (parent, child):
        journal = Journal(folder, session.header, session.lines, kernel="k", notebook=NOTEBOOK, pid=os.getpid())
        session.sink = journal
        session.append(turn_start(1))
        journal.close()
    document = from_disk(Path(NOTEBOOK), folder, "k")
    assert set(document.sessions) == {"p", "p.1"}
    assert dict(document.agents) == {"main": "p"}
    assert read_journal(next(folder.glob("p.1.k*"))).document.agents == {}


def test_outputs_carry_children_beside_their_parent_and_give_them_back() -> None:
    """Each output what is new of each session; a cell that runs again loses both pieces, and the next one begins where they began."""
    parent = new_session("p")
    child = child_of(parent, "p.1")
    pieces = Pieces()
    parent.append(turn_start(1))
    child.append(turn_start(1))
    first = pieces.take("main", parent, "c1", {}, children=[child])
    child.append(turn_end(1))
    parent.append(turn_end(1), user())
    second = pieces.take("main", parent, "c2", {}, children=[child])
    assert pieces.take("main", parent, "c3", {}, children=[child]) == {}
    for carried, lengths in ([first], (1, 1)), ([first, second], (3, 2)), ([second, first], (3, 2)):
        document = read_outputs([{"outputs": [{"data": bundle} for bundle in carried]}])
        assert document.problems == ()
        assert dict(document.agents) == {"main": "p"}
        assert [len(document.sessions[id].lines) for id in ("p", "p.1")] == list(lengths)
    pieces.cell_begins("c2")
    again = pieces.take("main", parent, "c2", {}, children=[child])
    assert again == second


def test_a_childs_news_are_carried_though_its_parent_has_none() -> None:
    """Closing a child's log adds nothing to its parent's."""
    parent = new_session("p")
    child = child_of(parent, "p.1")
    pieces = Pieces()
    parent.append(turn_start(1))
    pieces.take("main", parent, "c1", {})
    child.append(turn_start(1))
    document = read_outputs([{"outputs": [{"data": pieces.take("main", parent, "c2", {}, children=[child])}]}])
    assert len(document.sessions["p.1"].lines) == 1


@pytest.mark.parametrize("children", ["x", [None], [{"format": 9}], [[]], {"a": 1}, [{"children": [{}]}]])
def test_damaged_children_in_an_output_are_a_problem_and_never_an_error(children: Any) -> None:
    """The parent is read all the same."""
    parent = new_session("p")
    parent.append(turn_start(1))
    bundle = {**Pieces().take("main", parent, "c", {})[EVENTS_MIME], "children": children}
    document = read_outputs([{"outputs": [{"data": {EVENTS_MIME: bundle}}]}])
    assert len(document.sessions["p"].lines) == 1


def test_a_terminal_keeps_a_child_in_a_file_of_its_own(tmp_path: Path) -> None:
    """Named by its id; it takes no agent's place, and is found again."""
    files = LogFiles(lambda: str(tmp_path / "chat.jsonl"))
    files.found()
    parent = new_session("p")
    child = child_of(parent, "p.1")
    for session in (parent, child):
        session.sink = files.sink("main" if session is parent else "count the rows", session)
        session.append(turn_start(1), user(), turn_end(1))
    files.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat.jsonl", "chat.p.1.jsonl"]
    found = LogFiles(lambda: str(tmp_path / "chat.jsonl")).found()
    assert dict(found.agents) == {"main": "p"}
    assert set(found.sessions) == {"p", "p.1"}


def test_an_open_log_is_told_by_its_lines() -> None:
    """As the closers would find it."""
    session = new_session("s")
    for drafts in (
        [],
        [user("turn/start")],
        [turn_start(1), step_start(1, 1), assistant(1, 1, call_block("c")), tool_call(1, 1, "c")],
    ):
        session.append(*drafts)
        assert is_open(session.lines) is bool(closers(session.events))
    session.append(*closers(session.events))
    assert not is_open(session.lines)
