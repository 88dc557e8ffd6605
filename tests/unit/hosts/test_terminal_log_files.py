"""Where a terminal keeps its log: one file, its siblings, and nothing written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.hosts.terminal.log_files import LogFiles
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.jsonl import load_jsonl, save_jsonl
from plan_mode_nb.testing.logs import turn_end, turn_start, user


def session(id: str = "s1", lines: list[str] | None = None) -> Session:
    return Session(Header(id=SessionId(id), created_at=1), clock=lambda: 1, lines=lines or [])


def kept(files: LogFiles, made: Session, name: str = "main") -> Session:
    """One turn of an agent's session, written."""
    made.sink = files.sink(name, made)
    turn = len(made) // 3 + 1
    made.append(turn_start(turn), user(), turn_end(turn))
    return made


def opened(path: Path) -> LogFiles:
    files = LogFiles(lambda: str(path))
    files.found()
    return files


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_looking_writes_nothing_and_no_name_means_memory(tmp_path: Path) -> None:
    """A file appears with the first event; without a setting there is no sink."""
    path = tmp_path / "folder" / "chat.jsonl"
    files = LogFiles(lambda: str(path))
    assert files.found().sessions == {}
    files.sink("main", session())
    assert not path.parent.exists()
    nowhere = LogFiles(lambda: " ")
    assert nowhere.found().sessions == {}
    assert nowhere.sink("main", session()) is None
    assert "PlanAgent.log_file" in nowhere.where(session())


def test_a_later_process_finds_every_session_under_its_agent(tmp_path: Path) -> None:
    """The main agent's in the file itself, another's beside it under its name, those set aside under their ids."""
    files = opened(tmp_path / "chat.jsonl")
    kept(files, session("old"))
    main = kept(files, session("new"))
    analyst = kept(files, session("third"), "analyst")
    files.close()
    assert names(tmp_path) == ["chat.analyst.jsonl", "chat.jsonl", "chat.old.jsonl"]
    document = LogFiles(lambda: str(tmp_path / "chat.jsonl")).found()
    assert document.agents == {"main": "new", "analyst": "third"}
    assert set(document.sessions) == {"old", "new", "third"}
    assert document.sessions["new"].lines == main.lines
    assert document.sessions["third"].lines == analyst.lines
    assert document.problems == ()


def test_going_back_to_a_session_takes_its_file_up_again(tmp_path: Path) -> None:
    """And sets the present one aside; each log exists once."""
    path = tmp_path / "chat.jsonl"
    files = opened(path)
    old = kept(files, session("old"))
    kept(files, session("new"))
    again = session("old", list(old.lines))
    kept(files, again)
    assert names(tmp_path) == ["chat.jsonl", "chat.new.jsonl"]
    assert load_jsonl(path).lines == again.lines
    assert len(again) == 6


@pytest.mark.parametrize("id", ["../../evil", "a/b", "x" * 300, ".."])
def test_an_id_from_elsewhere_names_no_other_place(tmp_path: Path, id: str) -> None:
    """A log that another program wrote may have any id; its file stays in the folder."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = folder / "chat.jsonl"
    foreign = session(id)
    foreign.append(turn_start(1), turn_end(1))
    save_jsonl(path, foreign.header, foreign.lines)
    kept(opened(path), session("new"))
    assert len(names(folder)) == 2
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["b"]
    assert set(LogFiles(lambda: str(path)).found().sessions) == {id, "new"}


@pytest.mark.parametrize("content", [b"my notes\n", b'{"type":"session","version":99,"id":"x","createdAt":1}\n', b"\x00\xff"])
def test_a_file_that_holds_no_log_is_never_written_over(tmp_path: Path, content: bytes) -> None:
    """It is reported when found, and refused when something is to be kept there."""
    path = tmp_path / "chat.jsonl"
    path.write_bytes(content)
    files = LogFiles(lambda: str(path))
    assert "it was left as it is" in files.found().problems[0]
    with pytest.raises(StoreError, match=r"choose another PlanAgent\.log_file"):
        kept(files, session())
    assert path.read_bytes() == content
    assert names(tmp_path) == ["chat.jsonl"]


def test_what_another_process_added_since_is_never_lost(tmp_path: Path) -> None:
    """Two terminals one after the other: the one that read before the other wrote must read again."""
    path = tmp_path / "chat.jsonl"
    kept(opened(path), session()).sink.close()  # type: ignore[union-attr]
    stale, other = opened(path), opened(path)
    held = load_jsonl(path).lines
    kept(other, session(lines=list(held)))
    other.close()
    longer = path.read_bytes()
    with pytest.raises(StoreError, match="changed by another process"):
        kept(stale, session(lines=list(held)))
    assert path.read_bytes() == longer
    assert kept(opened(path), session(lines=load_jsonl(path).lines)).lines == load_jsonl(path).lines


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """A session cannot be set aside over another file."""
    path = tmp_path / "chat.jsonl"
    kept(opened(path), session("old")).sink.close()  # type: ignore[union-attr]
    (tmp_path / "chat.old.jsonl").write_text("mine")
    with pytest.raises(StoreError, match="in the way"):
        kept(opened(path), session("new"))
    assert (tmp_path / "chat.old.jsonl").read_text() == "mine"


def test_a_torn_last_line_is_reported_and_the_log_goes_on(tmp_path: Path) -> None:
    """What was cut off by a crash is left out; everything before it counts."""
    path = tmp_path / "chat.jsonl"
    made = kept(opened(path), session())
    made.sink.close()  # type: ignore[union-attr]
    path.write_bytes(path.read_bytes() + b'{"type":"turn/st')
    files = LogFiles(lambda: str(path))
    document = files.found()
    assert "cut off" in document.problems[0]
    kept(files, session(lines=list(document.sessions["s1"].lines)))
    assert len(load_jsonl(path).lines) == 6
    assert load_jsonl(path).problems == []
