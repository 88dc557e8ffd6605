"""``write`` and ``edit``: which files may be changed, exactly how, and what the model is told when one may not."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hands import beyond_private, hands, needs_a_sandbox, ready

from plan_mode_nb.agent.tools import Presentation
from plan_mode_nb.features.tools import change
from plan_mode_nb.features.tools.change import present_change

FULL = "danger-full-access"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace."""
    made = tmp_path / "w"
    made.mkdir()
    return made


@pytest.fixture
def beyond() -> Iterator[Path]:
    """A folder that is outside the workspace, and not the sandbox's own."""
    folder = beyond_private()
    yield folder
    shutil.rmtree(folder)


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write", {"path": path, "content": content}


def edit(path: str, old: str, new: str, **more: bool) -> tuple[str, dict[str, Any]]:
    return "edit", {"path": path, "old": old, "new": new, **more}


@needs_a_sandbox
class TestWhere:
    """Each mode, and each way to a place outside it."""

    def test_in_the_workspace_files_are_made_and_changed(self, root: Path) -> None:
        """The default mode; missing folders are made."""
        made = hands(root, write("a/b.py", "x = 1\ny = 2\n"), edit("a/b.py", "y = 2", "y = 3"))
        assert made.texts == ["wrote a/b.py: 2 lines, new file", "edited a/b.py: 1 place, at line 2, now 2 lines"]
        assert (root / "a" / "b.py").read_text() == "x = 1\ny = 3\n"
        assert made.decided == []

    @pytest.mark.parametrize("calls", [write("new.txt", "x"), write("there.txt", "x"), edit("there.txt", "a", "b")])
    def test_read_only_changes_nothing(self, calls: Any, root: Path) -> None:
        """And asks nobody."""
        (root / "there.txt").write_text("a")
        made = hands(root, calls, mode="read-only", answers=["allowed-once"])
        assert made.results[0][1] == "SANDBOX_DENIED"
        assert "sandbox mode read-only" in made.texts[0]
        assert {path.name: path.read_text() for path in root.iterdir()} == {"there.txt": "a"}
        assert made.decided == []

    def test_outside_the_workspace_nothing_is_written(self, root: Path, beyond: Path) -> None:
        """By its whole path, upwards, and through links that lead out."""
        (beyond / "kept.txt").write_text("kept")
        (root / "file").symlink_to(beyond / "kept.txt")
        (root / "folder").symlink_to(beyond)
        (root / "dangling").symlink_to(beyond / "made.txt")
        places = [
            str(beyond / "made.txt"),
            os.path.relpath(beyond / "made.txt", root),
            "file",
            "folder/made.txt",
            "dangling",
            "/tmp/made.txt",
        ]
        made = hands(root, *[write(place, "escaped") for place in places], edit("file", "kept", "escaped"))
        assert [code for _, code in made.results] == ["SANDBOX_DENIED"] * 7
        assert all("outside the workspace" in text for text in made.texts)
        assert {path.name: path.read_text() for path in beyond.iterdir()} == {"kept.txt": "kept"}

    def test_a_repository_stays_as_it_is(self, root: Path) -> None:
        """At the top and below, by name and through a link."""
        for folder in (".git", "inner/.git"):
            (root / folder).mkdir(parents=True)
            (root / folder / "config").write_text("kept")
        (root / "config").symlink_to(root / ".git" / "config")
        writes = [write(path, "x") for path in (".git/hooks/pre-commit", "inner/.git/config", "deep/.git/x")]
        made = hands(root, *writes, edit("config", "kept", "x"))
        assert [code for _, code in made.results] == ["SANDBOX_DENIED"] * 4
        assert (root / ".git" / "config").read_text() == "kept"
        assert not (root / "deep").exists()

    def test_a_link_that_is_put_in_the_way_leads_nowhere(self, root: Path, beyond: Path) -> None:
        """The worker itself follows no link, whatever was checked before."""
        (root / "there.txt").symlink_to(beyond / "made.txt")
        for request in ({"act": "write", "content": "x"}, {"act": "edit", "old": "a", "new": "b", "all": False}):
            asked = json.dumps({**request, "path": str(root / "there.txt")}).encode()
            worker = [sys.executable, "-I", "-S", str(change._WORKER)]
            ran = subprocess.run(worker, input=asked, capture_output=True, timeout=60, check=True)
            assert "problem" in json.loads(ran.stdout)
        assert list(beyond.iterdir()) == []

    def test_what_the_check_did_not_see_the_sandbox_still_refuses(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The check is for a clear answer only."""
        (root / ".git").mkdir()
        monkeypatch.setattr(change, "_check", lambda file, workspace, launch: None)
        made = hands(root, write(".git/config", "x"), write("/usr/made-by-a-test", "x"))
        assert [code for _, code in made.results] == ["WRITE_FAILED"] * 2
        assert all("Read-only file system" in text for text in made.texts)
        assert not Path("/usr/made-by-a-test").exists()

    def test_full_access_writes_anywhere(self, root: Path, beyond: Path) -> None:
        """The person lifted the limits."""
        made = hands(root, write(str(beyond / "made.txt"), "x"), write(".git/config", "x"), mode=FULL)
        assert [code for _, code in made.results] == [None, None]
        assert (beyond / "made.txt").read_text() == "x"


class TestEditing:
    """Exactly one place, or all that were asked for."""

    def test_a_text_that_is_there_twice_needs_more_of_its_lines(self, root: Path) -> None:
        """The lines are named; nothing is changed."""
        (root / "f.txt").write_text("a\nb\na\n")
        made = hands(root, edit("f.txt", "a", "c"), mode=FULL)
        said = "the old text stands in f.txt 2 times (lines 1, 3); send more of the lines around the one you mean, or all: true"
        assert made.results == [(f"Error: {said}", "NOT_UNIQUE")]
        assert (root / "f.txt").read_text() == "a\nb\na\n"

    def test_all_places_are_changed_when_asked(self, root: Path) -> None:
        """Counted as they were."""
        (root / "f.txt").write_text("a\n" * 8)
        made = hands(root, edit("f.txt", "a", "bb", all=True), mode=FULL)
        assert made.texts == ["edited f.txt: 8 places, at lines 1, 2, 3, 4, 5, …, now 8 lines"]
        assert (root / "f.txt").read_text() == "bb\n" * 8

    @pytest.mark.parametrize(
        ("text", "old", "said"),
        [
            ("def f(x):\n    return x\n", "def f(y):", "the nearest line there is 'def f(x):'"),
            ("a:\n\tb\n", "a:\n    b", "with this white space"),
            ("nothing alike", "@@@", "read it again and send the text exactly as it is there"),
        ],
    )
    def test_a_text_that_is_not_there_is_answered_with_what_is(self, text: str, old: str, said: str, root: Path) -> None:
        """So that the next try fits."""
        (root / "f.txt").write_text(text)
        ((answer, code),) = hands(root, edit("f.txt", old, "x"), mode=FULL).results
        assert code == "NO_MATCH"
        assert said in answer
        assert (root / "f.txt").read_text() == text

    @pytest.mark.parametrize(
        ("before", "old", "new", "after"),
        [
            (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
            (b"a\r\nb\nc\r\n", "b\nc", "x", b"a\r\nx\r\n"),
            (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
            ("grüße\n".encode(), "grüße", "日本", "日本\n".encode()),
            (b"no end", "end", "", b"no "),
            (b"aaa", "aa", "b", b"aaa"),
        ],
    )
    def test_line_ends_marks_and_all_the_rest_stay_as_they_are(self, before: bytes, old: str, new: str, after: bytes, root: Path) -> None:
        """Only the text that was asked for changes."""
        (root / "f.txt").write_bytes(before)
        hands(root, edit("f.txt", old, new), mode=FULL)
        expected = b"ba" if before == b"aaa" else after
        assert (root / "f.txt").read_bytes() == expected

    def test_mode_links_and_other_names_of_a_file_stay(self, root: Path) -> None:
        """An executable stays one; a link stays a link; two names stay one file."""
        (root / "run.sh").write_text("a")
        (root / "run.sh").chmod(0o754)
        (root / "link").symlink_to("run.sh")
        (root / "one").write_text("a")
        os.link(root / "one", root / "two")
        hands(root, edit("link", "a", "b"), edit("one", "a", "b"), write("two", "c"), mode=FULL)
        assert (root / "link").is_symlink()
        assert ((root / "run.sh").read_text(), (root / "run.sh").stat().st_mode & 0o777) == ("b", 0o754)
        assert (root / "one").read_text() == (root / "two").read_text() == "c"
        assert sorted(os.listdir(root)) == ["link", "one", "run.sh", "two"]


class TestRefusals:
    """What is no file to change as text."""

    def test_text_with_a_redaction_mark_is_never_written(self, root: Path) -> None:
        """It stands for a secret that the model was not shown."""
        (root / "f.txt").write_text("KEY=old\n")
        mark = "KEY=[redacted:OPENAI_API_KEY]"
        made = hands(root, write("f.txt", mark), edit("f.txt", "KEY=old", mark), edit("f.txt", mark, "x"), mode=FULL)
        assert [code for _, code in made.results] == ["REDACTED_TEXT"] * 3
        assert (root / "f.txt").read_text() == "KEY=old\n"

    def test_a_notebook_that_exists_is_not_changed_as_text(self, root: Path) -> None:
        """An open page and its conversation would be lost; a new one may be written."""
        (root / "n.ipynb").write_text("{}")
        made = hands(root, write("n.ipynb", "[]"), edit("N.ipynb", "{", "["), edit("n.ipynb", "{", "["), write("m.ipynb", "{}"), mode=FULL)
        assert [code for _, code in made.results] == ["IS_NOTEBOOK", "NOT_FOUND", "IS_NOTEBOOK", None]
        assert (root / "n.ipynb").read_text() == "{}"

    def test_wrong_arguments_and_files_are_corrected(self, root: Path) -> None:
        """Each with its own sentence."""
        (root / "latin.txt").write_bytes(b"caf\xe9")
        (root / "folder").mkdir()
        os.mkfifo(root / "pipe")
        made = hands(
            root, edit("gone.txt", "a", "b"), edit("latin.txt", "caf", "x"), edit("folder", "a", "b"), write("folder", "x"),
            write("pipe", "x"), edit("latin.txt", "", "x"), write("latin.txt/below", "x"), write("", "x"), write("a\0b", "x"), mode=FULL,
        )  # fmt: skip
        assert [code for _, code in made.results] == [
            "NOT_FOUND", "NOT_TEXT", "NOT_A_FILE", "NOT_A_FILE", "NOT_A_FILE",
            "BAD_ARGUMENTS", "WRITE_FAILED", "BAD_ARGUMENTS", "BAD_ARGUMENTS",
        ]  # fmt: skip
        assert all(text.startswith("Error: ") and "Traceback" not in text for text in made.texts)

    def test_the_same_text_is_no_edit(self, root: Path) -> None:
        """It would say that something changed."""
        (root / "f.txt").write_text("a")
        assert hands(root, edit("f.txt", "a", "a"), mode=FULL).results[0][1] == "BAD_ARGUMENTS"


def test_a_write_says_what_it_took_the_place_of(root: Path) -> None:
    """So that an overwritten file is noticed."""
    (root / "f.txt").write_text("1\n2\n3\n")
    assert hands(root, write("f.txt", "one"), mode=FULL).texts == ["wrote f.txt: 1 line, in place of 3 lines"]


def test_a_secret_that_the_model_wrote_is_not_shown_back(root: Path) -> None:
    """Its own arguments were redacted before the call, so the mark refuses."""
    made = hands(root, write("f.txt", "TOKEN=hunter2-hunter2"), mode=FULL, environ={"MY_TOKEN": "hunter2-hunter2"})
    assert made.results[0][1] == "REDACTED_TEXT"
    assert not (root / "f.txt").exists()


def test_a_call_is_shown_by_its_path() -> None:
    """With what would be written."""
    assert present_change('{"path": "a.py", "content": "x"}') == Presentation("a.py", "x", "code")
    assert present_change('{"path": "a.py", "old": "x", "new": "y"}') == Presentation("a.py", "y", "code")
    for arguments in ("{", "[]", '{"path": " "}', '{"content": "x"}'):
        assert present_change(arguments) is None


def test_both_stop_with_the_turn(root: Path) -> None:
    """Stop while the worker runs: the file is whole, old or new, and the turn ends as stopped."""
    (root / "f.txt").write_text("old")

    async def stopped() -> str:
        made = ready(root, write("f.txt", "new"), mode=FULL)
        turn = asyncio.ensure_future(made.bench.ask("go"))
        while not made.bench.events("tool/call"):
            await asyncio.sleep(0)
        made.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 30)
        return str(made.bench.events("turn/end")[0].data["reason"]["kind"])

    assert asyncio.run(stopped()) == "aborted"
    assert (root / "f.txt").read_text() in ("old", "new")
