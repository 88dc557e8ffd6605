"""The journal: private, whole, ahead of everything visible, and safe from what else lies in its folder."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import surface
from plan_mode_nb.store.belonging import journal_documents, journals_for
from plan_mode_nb.store.files import prepare_folder
from plan_mode_nb.store.journal import Journal, journal_folder, journals, read_journal
from plan_mode_nb.testing.logs import new_session, plan_mode, turn_end, turn_start, user


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return journal_folder(create=False)


def journaled(
    folder: Path, session: Session | None = None, *, kernel: str = "k", notebook: str | None = "/nb/a.ipynb"
) -> tuple[Session, Journal]:
    session = new_session() if session is None else session
    journal = Journal(folder, session.header, session.lines, kernel=kernel, notebook=notebook, pid=os.getpid())
    session.sink = journal
    return session, journal


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: the same refusal, half-way through a write, that a full disk gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_folder_and_file_are_readable_by_their_owner_alone(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    assert journal.path == only_file(folder) == folder / "s.k.journal"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600


def test_looking_leaves_nothing_behind(folder: Path) -> None:
    _, journal = journaled(folder)
    journal.moved("/nb/b.ipynb")
    journal.sync()
    journal.close()
    assert not folder.exists()
    assert journals(folder) == ([], [])


def test_it_reads_back_as_the_whole_session_with_kernel_and_notebook(folder: Path) -> None:
    older = new_session()
    older.append(plan_mode(True))
    session, journal = journaled(folder, new_session(lines=older.lines))
    session.append(turn_start(1), user("é😀"))
    session.append(turn_end(1))
    assert journal.path is not None
    read = read_journal(journal.path)
    assert read.lines == session.lines
    assert (read.header, read.kernel, read.notebook, read.pid, read.is_live) == (session.header, "k", "/nb/a.ipynb", os.getpid(), True)
    assert dict(read.document.agents) == {"main": "s"}
    assert json.loads(journal.path.read_text().splitlines()[0])["type"] == "journal"


def test_an_event_is_in_the_file_before_it_is_part_of_the_log(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    seen: list[list[str]] = []

    def check(batch: object) -> None:
        assert journal.path is not None
        seen.append(read_journal(journal.path).lines)

    session.subscribe(check)
    session.append(user())
    assert seen == [session.lines]


KILLED = """
import os, signal, sys
from pathlib import Path
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.testing.logs import new_session, turn_start, user
session = new_session()
session.sink = Journal(Path(sys.argv[1]), session.header, session.lines, kernel="dead", notebook=None, pid=os.getpid())
session.append(turn_start(1))
session.append(user("before the kill"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_everything_that_counted_survives_a_kill(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    (read,), problems = journals(folder)
    assert problems == []
    assert [json.loads(line)["type"] for line in read.lines] == ["turn/start", "user/message"]
    assert not read.is_live
    assert read.remove()
    assert list(folder.iterdir()) == []


def test_a_running_kernels_journal_is_not_removed_and_a_closed_one_is(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    assert journal.path is not None
    read = read_journal(journal.path)
    assert not read.remove()
    journal.close()
    assert read.remove()


def test_a_torn_tail_is_left_out(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    assert journal.path is not None
    with journal.path.open("a") as file:
        file.write('{"type":"user/mess')
    assert read_journal(journal.path).lines == session.lines


def test_a_full_disk_refuses_the_batch_and_leaves_the_file_as_it_was(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    assert journal.path is not None
    before = journal.path.read_bytes()
    with disk_of(len(before) + 100), pytest.raises(StoreError, match="free some space"):
        session.append(user("x" * 500), user("y" * 500))
    assert journal.path.read_bytes() == before
    assert len(session) == 1
    session.append(user("after"))
    assert read_journal(journal.path).lines == session.lines


def test_a_full_disk_at_the_first_write_leaves_nothing_half_made(folder: Path) -> None:
    session, journal = journaled(folder)
    with disk_of(50), pytest.raises(StoreError, match="cannot be written"):
        session.append(turn_start(1))
    assert list(folder.iterdir()) == []
    assert journal.path is None
    session.append(turn_start(1))
    assert len(journals(folder)[0]) == 1


def test_a_journal_that_somebody_deleted_comes_back_whole_with_the_next_event(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    only_file(folder).unlink()
    session.append(user())
    assert journal.path is not None
    assert read_journal(journal.path).lines == session.lines


def test_dropping_removes_the_file_and_the_next_event_starts_a_new_one(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    journal.drop()
    assert list(folder.iterdir()) == []
    session.append(user())
    assert read_journal(only_file(folder)).lines == session.lines


def test_a_restarted_kernel_takes_over_the_journal_it_read_and_keeps_one_that_holds_more(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1), user("a"))
    journal.close()
    again, _ = journaled(folder, new_session(lines=session.lines))
    again.append(user("b"))
    assert len(list(folder.iterdir())) == 1
    other, _ = journaled(folder, new_session())
    other.append(turn_start(1))
    assert sorted(path.name for path in folder.iterdir()) == ["s.k-1.journal", "s.k.journal"]


def test_a_rename_is_recorded_once_and_the_last_path_counts(folder: Path) -> None:
    session, journal = journaled(folder)
    session.append(turn_start(1))
    journal.moved("/nb/b.ipynb")
    journal.moved("/nb/b.ipynb")
    session.append(user())
    path = only_file(folder)
    assert path.read_text().count("journal/path") == 1
    assert read_journal(path).notebook == "/nb/b.ipynb"
    assert read_journal(path).lines == session.lines


def test_a_notebook_gets_its_kernels_journals_and_those_that_name_its_path_and_a_session_of_it(folder: Path) -> None:
    made = {"a": ("k1", "/nb/a.ipynb"), "b": ("k2", "/nb/a.ipynb"), "c": ("k3", "/nb/other.ipynb"), "d": ("k4", None)}
    for name, (kernel, notebook) in made.items():
        session, _ = journaled(folder, new_session(name), kernel=kernel, notebook=notebook)
        session.append(turn_start(1))
    found = journals_for(folder, notebook="/nb/a.ipynb", kernels=["k4"], sessions=["a", "c"])
    assert [each.header.id for each in found] == ["a", "d"]
    named = journal_documents(folder.parent, "/nb/a.ipynb")
    assert [list(each.sessions) for each in named] == [["a"], ["b"]]


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"not json\n", b'{"type":"journal"}\n', b"\xff\xfe\n", b"[" * 5000 + b"\n"])
def test_a_file_that_is_no_journal_is_left_alone_and_said(folder: Path, content: bytes) -> None:
    prepare_folder(folder)
    (folder / "x.journal").write_bytes(content)
    found, problems = journals(folder)
    assert found == []
    assert len(problems) == 1
    assert "x.journal was left alone" in problems[0]
    with pytest.raises(FormatError):
        read_journal(folder / "x.journal")


def test_a_link_in_the_folder_is_neither_followed_nor_written_through(folder: Path, tmp_path: Path) -> None:
    prepare_folder(folder)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder / "s.k.journal").symlink_to(victim)
    session, journal = journaled(folder)
    session.append(turn_start(1))
    assert victim.read_text() == "mine"
    assert journal.path == folder / "s.k-1.journal"
    found, problems = journals(folder)
    assert len(found) == len(problems) == 1
    assert "no file of yours" in problems[0]


def test_a_folder_that_is_a_link_or_a_file_is_refused_and_an_open_one_is_made_private(folder: Path, tmp_path: Path) -> None:
    folder.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    session, _ = journaled(folder)
    with pytest.raises(StoreError, match="folder of your own"):
        session.append(turn_start(1))
    folder.unlink()
    folder.write_text("a file")
    with pytest.raises(StoreError):
        session.append(turn_start(1))
    folder.unlink()
    folder.mkdir(mode=0o755)
    session.append(turn_start(1))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("id", ["../../escape", "a/b", "ä~1", "x" * 500, "."])
def test_any_session_id_is_one_safe_file_name(folder: Path, id: str) -> None:
    session, _ = journaled(folder, new_session(id), kernel="../k")
    session.append(turn_start(1))
    path = only_file(folder)
    assert path.parent == folder
    assert len(path.name) < 255
    assert read_journal(path).header.id == id


def test_a_turns_end_is_brought_to_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = journaled(folder)
    session.append(turn_start(1))
    synced: list[int] = []
    really = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), really(handle))[1])
    session.append(user())
    assert synced == []
    session.append(turn_end(1))
    assert len(synced) == 1


def test_an_image_is_kept_once_ahead_of_the_events_that_name_it(folder: Path) -> None:
    """Whole or not at all: where the disk is full the next write brings it again. The bytes count as no event."""
    session = new_session()
    kept = {digest * 64: bytes([number]) * 300 for number, digest in enumerate("abc")}
    journal = Journal(folder, session.header, session.lines, kernel="k", notebook=None, pid=1, images=lambda: kept)
    session.sink = journal
    session.append(turn_start(1), showing("a" * 64))
    with disk_of(only_file(folder).stat().st_size + 400), pytest.raises(StoreError):
        session.append(showing("b" * 64))
    session.append(showing("b" * 64, "a" * 64), showing("d" * 64))
    journal.close()
    found = read_journal(only_file(folder))
    assert found.lines == list(session.lines)
    assert {sha: b64decode(text) for sha, text in found.attachments.items()} == {sha: kept[sha] for sha in ("a" * 64, "b" * 64)}
    assert only_file(folder).read_text().count('"journal/image"') == 2
    session.append(showing("c" * 64))
    assert read_journal(only_file(folder)).attachments.keys() == {sha * 64 for sha in "abc"}, "a file that was let go is written whole"


def test_a_choice_is_kept_before_anything_is_said(folder: Path) -> None:
    session = new_session()
    journal = Journal(folder, session.header, session.lines, kernel="k", notebook=None, pid=1, agent="main", chosen=3)
    journal.keep()
    journal.close()
    found = read_journal(only_file(folder))
    assert (found.lines, found.chosen, found.document.agents, found.document.chosen) == ([], 3, {"main": "s"}, {"main": 3})


def showing(*digests: str) -> Draft:
    blocks = [{"type": "image", "attachment": {"attachmentId": f"sha256:{each}", "mediaType": "image/png"}} for each in digests]
    return surface("user/message", user_message(blocks, id="u"))
