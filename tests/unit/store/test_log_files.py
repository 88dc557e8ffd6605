"""Log files of deepseek-harness, plain and compressed, the terminal's own log, and opening any file that holds a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.store import jsonl
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.store.jsonl import LogFile, framed, load_jsonl, save_jsonl, unframed
from plan_mode_nb.store.notebook import save_document, write_notebook
from plan_mode_nb.store.sources import open_any
from plan_mode_nb.testing.logs import new_session, turn_end, turn_start, user


def session() -> Session:
    made = new_session()
    made.append(turn_start(1), user("é😀" * 50), turn_end(1))
    return made


def frames_of(made: Session) -> list[bytes]:
    head, *rest = write_jsonl(made.header, made.lines).splitlines(keepends=True)
    return [framed(head), framed(b"".join(rest[:2])), framed(b"".join(rest[2:]))]


@pytest.mark.parametrize("name", ["s.jsonl", "session.jsonl.zstd", "s.zst"])
def test_what_is_saved_is_loaded_and_the_source_is_never_written_to(tmp_path: Path, name: str) -> None:
    made, path = session(), tmp_path / name
    save_jsonl(path, made.header, made.lines)
    before = path.read_bytes()
    scan = load_jsonl(path)
    assert (scan.header, scan.lines, scan.problems) == (made.header, made.lines, [])
    assert path.read_bytes() == before


def test_a_compressed_log_is_checksummed_frames_with_the_header_alone_in_the_first(tmp_path: Path) -> None:
    made, path = session(), tmp_path / "s.zstd"
    save_jsonl(path, made.header, made.lines)
    data = path.read_bytes()
    assert zstandard.get_frame_parameters(data).has_checksum
    first = zstandard.ZstdDecompressor().decompressobj()
    assert json.loads(first.decompress(data))["type"] == "session"
    assert first.unused_data


def test_frames_that_were_appended_one_by_one_are_one_log(tmp_path: Path) -> None:
    made, path = session(), tmp_path / "s.zstd"
    path.write_bytes(b"".join(frames_of(made)))
    assert load_jsonl(path).lines == made.lines


def test_a_frame_that_is_cut_off_is_a_torn_tail_and_the_frames_before_it_count(tmp_path: Path) -> None:
    made, path = session(), tmp_path / "s.zstd"
    head, first, second = frames_of(made)
    for cut in range(1, len(second)):
        path.write_bytes(head + first + second[:cut])
        scan = load_jsonl(path)
        assert scan.lines[:2] == made.lines[:2]
        assert scan.lines == made.lines[: len(scan.lines)]
        assert len(scan.problems) == 1


def test_a_damaged_frame_is_refused(tmp_path: Path) -> None:
    head, first, second = frames_of(session())
    path = tmp_path / "s.zstd"
    for data in (head + first[:-1] + bytes([first[-1] ^ 1]) + second, head + b"junk" + second):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"damaged near byte \d+.*restore"):
            load_jsonl(path)


def test_a_log_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "PLAIN_LIMIT", 10**6)
    with pytest.raises(FormatError, match="unpack it yourself"):
        unframed(framed(b"\n" * 10**8))


def test_a_terminals_log_grows_and_is_always_a_log(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "log.jsonl"
    made = new_session()
    made.sink = log = LogFile(path, made.header, made.lines)
    assert not path.exists()
    made.append(turn_start(1))
    made.append(user(), turn_end(1))
    assert read_jsonl(path.read_bytes()) == (made.header, made.lines)
    other = new_session()
    other.sink = LogFile(path, other.header, other.lines)
    with pytest.raises(StoreError, match="another process"):
        other.append(turn_start(1))
    log.close()
    again = new_session(lines=read_jsonl(path.read_bytes())[1])
    again.sink = LogFile(path, again.header, again.lines)
    again.append(turn_start(2))
    assert read_jsonl(path.read_bytes())[1] == again.lines


def test_a_terminals_log_may_be_a_link_that_its_owner_set(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.touch()
    link.symlink_to(real)
    made = new_session()
    made.sink = LogFile(link, made.header, made.lines)
    made.append(turn_start(1))
    made.append(turn_end(1))
    assert link.is_symlink()
    assert read_jsonl(real.read_bytes())[1] == made.lines


def test_any_file_that_holds_a_session_opens(tmp_path: Path) -> None:
    made = session()
    notebook = tmp_path / "n.ipynb"
    write_notebook(notebook, {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    save_document(notebook, one_session(StoredSession(made.header, made.lines), agent="main"))
    plain = tmp_path / "s.jsonl"
    save_jsonl(plain, made.header, made.lines)
    journal = Journal(tmp_path / "journals", made.header, [], kernel="k", notebook=None, pid=1)
    journal.write(made.lines)
    assert journal.path is not None
    for path in (notebook, plain, journal.path):
        assert open_any(path).lines == made.lines
        assert open_any(path, "s").header == made.header
        with pytest.raises(FormatError, match="other"):
            open_any(path, "other")


def test_which_session_of_a_notebook_is_by_id_else_the_main_agents_else_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    write_notebook(path, {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    with pytest.raises(FormatError, match="collect"):
        open_any(path)
    stored = {id: StoredSession(Header(id=SessionId(id), created_at=1), [id]) for id in ("a", "b")}
    save_document(path, Document(sessions={"b": stored["b"]}))
    assert open_any(path).lines == ["b"]
    save_document(path, Document(sessions=stored))
    with pytest.raises(FormatError, match="--session: a, b"):
        open_any(path)
    save_document(path, Document(agents={"main": "a"}, sessions=stored))
    assert open_any(path).lines == ["a"]
    assert open_any(path, "b").lines == ["b"]


def test_a_damaged_session_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    index = {"format": 1, "agents": {"main": "s"}, "sessions": {"s": {"version": 0}}}
    write_notebook(path, {"cells": [], "metadata": {"plan_mode_nb": index}, "nbformat": 4, "nbformat_minor": 5})
    with pytest.raises(FormatError, match=r"session 's' in this notebook cannot be read"):
        open_any(path)
