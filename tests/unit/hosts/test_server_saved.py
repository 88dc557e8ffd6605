"""What a save writes: no copy of a notebook erases what another one has."""

from __future__ import annotations

from pathlib import Path

import pytest
import stored
from msgspec.structs import replace

from plan_mode_nb.document.chunks import is_ours, read_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import holds
from plan_mode_nb.document.strip import strip_metadata
from plan_mode_nb.hosts.server.saved import reconciled
from plan_mode_nb.store.journal import JournalFile, read_journal
from plan_mode_nb.store.merging import is_kept

SHORT, LONG = stored.lines(1), stored.lines(3)


def test_an_old_copy_over_a_newer_file_loses_no_event() -> None:
    saved = reconciled(stored.metadata({"s": SHORT}), stored.metadata({"s": LONG}))
    assert stored.held(saved.metadata) == {"s": LONG}
    assert saved.changes == ("12 more events of session s",)


def test_a_copy_without_sessions_takes_those_of_the_file() -> None:
    saved = reconciled({"kernelspec": stored.KERNEL}, stored.metadata({"s": LONG}))
    assert saved.metadata == stored.metadata({"s": LONG})


def test_a_copy_that_holds_everything_is_saved_as_it_is() -> None:
    copy = stored.metadata({"s": LONG})
    saved = reconciled(copy, stored.metadata({"s": SHORT}))
    assert saved.metadata == copy
    assert saved.changes == ()


def test_two_copies_that_diverged_make_one_fork_however_often_they_are_saved() -> None:
    ours, theirs = stored.lines(2, "plan it"), stored.lines(2, "do it")
    tab = stored.metadata({"s": ours})
    file = stored.metadata({"s": theirs})
    for _ in range(5):
        file = reconciled(tab, file).metadata
    held = stored.held(file)
    assert len(held) == 2
    assert sorted(held.values()) == sorted([ours, theirs])
    assert next(id for id in held if id != "s").startswith(f"s~{len(SHORT) + 2}~")


def test_a_stripped_session_does_not_come_back_from_an_open_tab() -> None:
    file = strip_metadata(stored.metadata({"s": LONG}))
    saved = reconciled(stored.metadata({"s": LONG}), file)
    assert saved.metadata == {"kernelspec": stored.KERNEL} | {key: value for key, value in file.items() if is_ours(key)}
    assert saved.changes == ("without session s, which was stripped",)


@pytest.mark.parametrize("index", [{"format": 2, "sessions": {}}, {"format": "one"}, 5, {"format": 1, "agents": [], "sessions": {}}])
def test_what_cannot_be_read_on_disk_stays_as_it_is(index: object) -> None:
    file = {**stored.metadata({"s": LONG}), "plan_mode_nb": index}
    saved = reconciled(stored.metadata({"t": SHORT}), file)
    assert {key: saved.metadata[key] for key in file} == file
    assert saved.metadata["plan_mode_nb/t/0000000"] == SHORT, "and what only the new copy has is not thrown away"
    assert len(saved.problems) == 1


def test_a_damaged_index_in_a_tab_does_not_replace_the_one_on_disk() -> None:
    file = stored.metadata({"s": LONG})
    assert reconciled({**file, "plan_mode_nb": "gone"}, file).metadata == file


def test_a_damaged_session_stays_as_it_is_beside_one_that_is_merged() -> None:
    file = stored.metadata({"s": LONG, "t": SHORT})
    file["plan_mode_nb"]["sessions"]["s"]["version"] = 7
    saved = reconciled(stored.metadata({"t": LONG}), file)
    assert saved.metadata["plan_mode_nb"]["sessions"]["s"] == file["plan_mode_nb"]["sessions"]["s"]
    assert saved.metadata["plan_mode_nb/s/0000000"] == LONG
    assert stored.held(saved.metadata) == {"t": LONG}
    assert "session 's'" in saved.problems[0]


def test_a_journal_brings_what_neither_copy_has(tmp_path: Path) -> None:
    stored.journal(tmp_path, "s", LONG, kernel="k", path=None).close()
    journal = read_journal(next(tmp_path.iterdir()))
    saved = reconciled(stored.metadata({"s": SHORT}), {}, [journal])
    assert saved.metadata == stored.metadata({"s": LONG})


def test_a_journal_of_a_known_session_does_not_say_who_is_main(tmp_path: Path) -> None:
    named = {"main": "m", "reviewer": "s"}
    stored.journal(tmp_path, "s", LONG, kernel="k", path=None, agent="main").close()
    saved = reconciled(stored.metadata({"m": SHORT, "s": SHORT}, agents=named), {}, [read_journal(next(tmp_path.iterdir()))])
    assert saved.metadata["plan_mode_nb"]["agents"] == named
    assert stored.held(saved.metadata)["s"] == LONG


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (stored.metadata({"s": LONG}), True),
        (stored.metadata({"s": SHORT}), False),
        (stored.metadata({"t": LONG}), False),
        ({}, False),
        (strip_metadata(stored.metadata({"s": LONG})), False),
        ({**stored.metadata({"s": LONG}), "plan_mode_nb": 1}, False),
    ],
)
def test_a_journal_is_held_when_every_event_of_it_is_in_the_notebook(tmp_path: Path, document: dict[str, object], expected: bool) -> None:
    stored.journal(tmp_path, "s", stored.lines(2), kernel="k", path=None).close()
    journal = read_journal(next(tmp_path.iterdir()))
    assert holds(read_metadata(document), journal.session) is expected


def test_a_journal_whose_branch_is_in_the_notebook_as_a_fork_is_held(tmp_path: Path) -> None:
    stored.journal(tmp_path, "s", stored.lines(2, "plan it"), kernel="k", path=None).close()
    journal = read_journal(next(tmp_path.iterdir()))
    document = read_metadata(stored.metadata({"s": stored.lines(2, "do it")}))
    assert not holds(document, journal.session)
    assert holds(read_metadata(reconciled(stored.metadata({"s": stored.lines(2, "do it")}), {}, [journal]).metadata), journal.session)


def test_a_document_of_nothing_is_saved_as_it_came() -> None:
    assert reconciled({"kernelspec": stored.KERNEL}, {}).metadata == {"kernelspec": stored.KERNEL}
    assert read_metadata({}) == Document()


def test_a_journal_with_a_later_choice_says_which_session_an_agent_goes_on_with(tmp_path: Path) -> None:
    """A kernel that was killed right after `%session use`: the choice is in its journal, and in the file after the next save."""
    sessions = {"new": stored.lines(1, id="new"), "old": stored.lines(1, id="old")}
    saving = stored.metadata(sessions, agents={"main": "new"}, chosen={"main": 1})
    journal = chosen(tmp_path, "old", sessions["old"], 2)
    assert not is_kept(read_metadata(saving), journal)
    saved = reconciled(saving, {}, [journal]).metadata
    assert (saved["plan_mode_nb"]["agents"], saved["plan_mode_nb"]["chosen"]) == ({"main": "old"}, {"main": 2})
    assert is_kept(read_metadata(saved), journal)
    assert reconciled(saved, {}, [chosen(tmp_path, "new", sessions["new"], 1)]).metadata == saved


def test_a_session_that_was_begun_and_given_up_without_a_word_leaves_nothing(tmp_path: Path) -> None:
    saving = stored.metadata({"s": stored.lines(1)})
    given_up, present = chosen(tmp_path, "a", [], 1), chosen(tmp_path, "b", [], 2)
    saved = reconciled(saving, {}, [given_up, present]).metadata
    assert saved["plan_mode_nb"]["sessions"].keys() == {"s", "b"}
    assert saved["plan_mode_nb"]["agents"] == {"main": "b"}
    assert all(is_kept(read_metadata(saved), each) for each in (given_up, present))


def test_a_journals_images_are_saved_before_it_goes(tmp_path: Path) -> None:
    lines = stored.lines(1)
    journal = replace(chosen(tmp_path, "s", lines, 0), attachments={"a" * 64: "QUJD"})
    assert not is_kept(read_metadata(stored.metadata({"s": lines})), journal)
    saved = reconciled(stored.metadata({"s": lines}), {}, [journal])
    assert saved.changes == ("1 images",)
    assert is_kept(read_metadata(saved.metadata), journal)


def chosen(folder: Path, id: str, lines: list[str], count: int) -> JournalFile:
    """The journal of an agent's session, of a kernel that is gone."""
    return JournalFile(folder / id, stored.header(id), lines, "main", "gone", None, 1, False, chosen=count)
