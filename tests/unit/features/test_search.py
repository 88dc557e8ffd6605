"""``glob`` and ``grep``: the same answer every time, bounded whatever the folder or the pattern is, and gone when cancelled."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from calling import Files
from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.features.tools import search, walk
from plan_mode_nb.features.tools.walk import GlobPattern, Walk

TREE = {
    "a.py": "import os\nclass A:\n    pass\n",
    "b.txt": "hello\nWorld\nhello world\n",
    "src/c.py": "class C(A):\n    x = 1\n",
    "src/deep/d.py": "x = 2\n",
    "src/deep/e.md": "# Title\n",
    ".hidden/f.py": "x = 3\n",
    ".git/config": "x = 4\n",
    "node_modules/m/i.js": "x = 5\n",
    "venv/pyvenv.cfg": "home = /usr\n",
    "venv/lib/g.py": "x = 6\n",
    "__pycache__/h.pyc": "x = 7\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small project with everything that is left out."""
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", [".hidden/f.py", "a.py", "src/c.py", "src/deep/d.py"]),
        ("*.py", ["a.py"]),
        ("src/*", ["src/c.py", "src/deep/"]),
        ("src/**", ["src/", "src/c.py", "src/deep/", "src/deep/d.py", "src/deep/e.md"]),
        ("**/deep/*.{py,md}", ["src/deep/d.py", "src/deep/e.md"]),
        ("*/", [".git/", ".hidden/", "__pycache__/", "node_modules/", "src/", "venv/"]),
        ("**/[de].*", ["src/deep/d.py", "src/deep/e.md"]),
        ("./src/?.py", ["src/c.py"]),
        ("**/**/**/d.py", ["src/deep/d.py"]),
        ("{a,b}.{py,txt}", ["a.py", "b.txt"]),
        ("a.py", ["a.py"]),
    ],
)
def test_glob_finds_by_pattern_sorted_by_path(tree: Path, pattern: str, found: list[str]) -> None:
    """Version control, caches, node_modules and virtual environments are listed and not entered."""
    assert Files(tree).text("glob", pattern=pattern).splitlines() == found


def test_a_folder_that_is_left_out_can_be_searched_by_naming_it(tree: Path) -> None:
    """The start is always entered."""
    assert Files(tree).text("glob", pattern="*", path=".git") == ".git/config"
    assert Files(tree).text("glob", pattern="**/*.py", path="venv") == "venv/lib/g.py"
    assert Files(tree).text("grep", pattern="x", path=".git") == ".git/config:1:x = 4"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"pattern": ""}, "BAD_ARGUMENTS"),
        ({"pattern": "/etc/*"}, "BAD_ARGUMENTS"),
        ({"pattern": "../*"}, "BAD_ARGUMENTS"),
        ({"pattern": "{a,}"}, "BAD_ARGUMENTS"),
        ({"pattern": "*", "path": "a.py"}, "NOT_A_FOLDER"),
        ({"pattern": "*", "path": "none"}, "NOT_FOUND"),
    ],
)
def test_a_glob_that_cannot_work_is_one_sentence(tree: Path, arguments: dict[str, Any], code: str) -> None:
    """With what to send instead."""
    assert Files(tree).error("glob", **arguments)[1] == code


def test_nothing_found_is_said(tree: Path) -> None:
    """No error."""
    assert Files(tree).text("glob", pattern="*.rs") == "nothing below . matches *.rs"
    assert Files(tree).text("grep", pattern="zzz") == "no line in . matches zzz"


def test_more_paths_than_a_result_holds_are_counted(tmp_path: Path) -> None:
    """The first by name, and the number of the rest."""
    for number in range(search.MAX_PATHS + 7):
        (tmp_path / f"f{number:05}").touch()
    lines = Files(tmp_path).text("glob", pattern="*").splitlines()
    assert lines[0] == "f00000"
    assert lines[-1] == "[7 more paths match; use a narrower pattern]"


names = st.lists(st.sampled_from(["a", "b", "ab", "a.py", ".x"]), min_size=1, max_size=4).map("/".join)
patterns = st.lists(st.sampled_from(["a", "*", "?", "**", "a*", "*.py", "[ab]"]), min_size=1, max_size=4).map("/".join)


def matches_slowly(pattern: list[str], parts: list[str]) -> bool:
    """The rule said plainly, trying every way."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return matches_slowly(pattern[1:], parts) or (bool(parts) and matches_slowly(pattern, parts[1:]))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and matches_slowly(pattern[1:], parts[1:])


@given(patterns, names)
def test_matching_agrees_with_the_rule_said_plainly(pattern: str, path: str) -> None:
    """And a folder is entered wherever something below it could match."""
    parts, glob = PurePosixPath(path).parts, GlobPattern(pattern)
    assert glob.matches(parts) == matches_slowly(pattern.split("/"), list(parts))
    if glob.matches(parts):
        assert all(glob.may_hold(parts[:depth]) for depth in range(len(parts)))


@pytest.mark.parametrize("pattern", ["**/" * 200 + "x", "*a" * 2_000, "{a,b}" * 60, "{" * 1_000 + ",", "[" * 1_000, "[!" * 300])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Deep stars, braces without end, brackets that never close: pytest's own time limit is the bound."""
    glob = GlobPattern(pattern)
    assert not glob.matches(("a" * 200,) * 50)
    assert glob.may_hold(("a" * 200,) * 50) is pattern.startswith("**")


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_links_are_listed_and_never_entered(tree: Path) -> None:
    """So no loop of links can hold a walk, and nothing is found twice."""
    (tree / "src" / "up").symlink_to("..")
    (tree / "loop").symlink_to("loop")
    tools = Files(tree)
    assert tools.text("glob", pattern="**/c.py") == "src/c.py"
    assert tools.text("glob", pattern="src/u*") == "src/up"
    assert tools.text("grep", pattern="class C") == "src/c.py:1:class C(A):"


def test_a_walk_without_time_says_that_it_is_not_all(tree: Path) -> None:
    """What was found is still there."""
    left = iter([False, False, True])
    walked = Walk(str(tree), spent=lambda: next(left))
    assert [entry.parts for entry in walked] == [(".git",), (".hidden",)]
    assert not walked.complete


def test_a_walk_is_bounded_in_entries(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so in the result."""
    monkeypatch.setattr(walk, "MAX_ENTRIES", 3)
    assert Files(tree).text("glob", pattern="**/*").splitlines()[-1].startswith("[this is not all")


def test_a_tree_deeper_than_a_path_can_be_is_walked_as_far_as_it_can_be(tmp_path: Path) -> None:
    """No recursion, no error."""
    home = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(40):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(home)
    lines = Files(tmp_path).text("glob", pattern="**/").splitlines()
    assert len([line for line in lines if line.startswith("d")]) >= 1
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 200))], check=True)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "^class"}, ["a.py:2:class A:", "src/c.py:1:class C(A):"]),
        ({"pattern": "hello", "path": "b.txt"}, ["b.txt:1:hello", "b.txt:3:hello world"]),
        ({"pattern": "WORLD", "ignore_case": True}, ["b.txt:2:World", "b.txt:3:hello world"]),
        ({"pattern": "x = ", "glob": "*.py"}, [".hidden/f.py:1:x = 3", "src/c.py:2:    x = 1", "src/deep/d.py:1:x = 2"]),
        ({"pattern": "x = ", "glob": "src/*.py"}, ["src/c.py:2:    x = 1"]),
        ({"pattern": "x = ", "path": "src", "glob": "deep/**"}, ["src/deep/d.py:1:x = 2"]),
        ({"pattern": "World", "context": 1}, ["b.txt-1-hello", "b.txt:2:World", "b.txt-3-hello world"]),
        (
            {"pattern": "class", "context": 1},
            [
                "a.py-1-import os",
                "a.py:2:class A:",
                "a.py-3-    pass",
                "--",
                "src/c.py:1:class C(A):",
                "src/c.py-2-    x = 1",
            ],
        ),
    ],
)
def test_grep_shows_hits_and_the_lines_around_them(tree: Path, arguments: dict[str, Any], lines: list[str]) -> None:
    """In the order of paths and lines."""
    assert Files(tree).text("grep", **arguments).splitlines() == lines


def test_context_of_neighbours_is_shown_once(tmp_path: Path) -> None:
    """Groups that touch are one, others are apart."""
    (tmp_path / "a").write_text("".join(f"{'hit' if n in (3, 5, 11) else 'line'} {n}\n" for n in range(1, 14)))
    lines = Files(tmp_path).text("grep", pattern="hit", context=1).splitlines()
    assert [re.sub(r"a[:-](\d+)([:-]).*", r"\1\2", line) for line in lines] == ["2-", "3:", "4-", "5:", "6-", "--", "10-", "11:", "12-"]


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2,1}", "(?P<x>", "\\", "(?<=a+)b", "a{99999999999999}"])
def test_a_pattern_that_is_none_is_one_sentence(tree: Path, pattern: str) -> None:
    """What is wrong, and what to do."""
    sentence, code = Files(tree).error("grep", pattern=pattern)
    assert code == "BAD_PATTERN"
    assert "backslash" in sentence


def test_a_hostile_pattern_is_ended_in_time_and_the_loop_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match that would take years; meanwhile the loop turns, and what was found before it is shown."""
    monkeypatch.setattr(search, "SEARCH_SECONDS", 3)  # for the first file, by a process that has to start
    monkeypatch.setattr(search, "_GRACE", 0.5)
    (tmp_path / "a.txt").write_text("aaa\n")
    (tmp_path / "b.txt").write_text("a" * 64 + "!\n")
    turns = 0

    async def main() -> str:
        nonlocal turns
        call = asyncio.ensure_future(Files(tmp_path).call("grep", pattern="^(a+)+$"))
        while not call.done():
            turns += 1
            await asyncio.sleep(0.01)
        return str(call.result().content[0]["text"])

    text = asyncio.run(main())
    assert text.splitlines()[0] == "a.txt:1:aaa"
    assert "[this is not all: the search was stopped" in text
    assert turns > 20


def test_a_cancelled_search_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: nothing goes on using a processor."""
    (tmp_path / "b.txt").write_text("a" * 64 + "!\n")
    spawned: list[subprocess.Popen[bytes]] = []
    spawn = search._spawn

    def watched() -> subprocess.Popen[bytes]:
        spawned.append(spawn())
        return spawned[-1]

    monkeypatch.setattr(search, "_spawn", watched)

    async def main() -> None:
        call = asyncio.ensure_future(Files(tmp_path).call("grep", pattern="^(a+)+$"))
        while not spawned:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert spawned[0].wait(timeout=10) != 0


def test_binary_long_and_odd_files_are_searched_or_left_out(tmp_path: Path) -> None:
    """No file ends the search."""
    (tmp_path / "a.bin").write_bytes(b"\0needle\n")
    (tmp_path / "b.txt").write_bytes("needle caf\xe9\n".encode("latin-1"))
    (tmp_path / "c.txt").write_bytes("needle\n".encode("utf-16"))
    (tmp_path / "d.txt").write_text("x" * 200_000 + " needle\n")
    (tmp_path / "e.txt").write_text("one\r\nneedle\rthree")
    with (tmp_path / "f.txt").open("wb") as file:
        file.truncate(60_000_000)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "g.txt")
    lines = Files(tmp_path).text("grep", pattern="needle").splitlines()
    assert lines[:2] == ["b.txt:1:needle café", "c.txt:1:needle"]
    assert lines[2].startswith("d.txt:1:xxx")
    assert len(lines[2]) == len("d.txt:1:") + search.LINE_LIMIT + 1
    assert lines[3:] == ["e.txt:2:needle", "[1 larger than 50 MB left out]"]


def test_a_binary_file_searched_by_name_says_that_it_is_no_text(tmp_path: Path) -> None:
    """Rather than that nothing was found."""
    (tmp_path / "a.bin").write_bytes(b"\0needle\n")
    assert Files(tmp_path).text("grep", pattern="needle", path="a.bin").endswith("[the file is no text]")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """One sentence."""
    os.mkfifo(tmp_path / "pipe")
    assert Files(tmp_path).error("grep", pattern="x", path="pipe")[1] == "NOT_A_FILE"


def test_a_notebook_is_searched_as_read_shows_it(tmp_path: Path) -> None:
    """The numbers are those of `read`, and the conversation in its metadata is not searched."""
    cells = [{"cell_type": "code", "execution_count": 1, "source": ["x = 1\n", "needle = 2"], "outputs": []}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"nbformat": 4, "metadata": {"log": ["needle in the log"]}, "cells": cells}))
    tools = Files(tmp_path)
    assert tools.text("grep", pattern="needle") == "n.ipynb:3:needle = 2"
    assert "     3\tneedle = 2" in tools.text("read", path="n.ipynb")


def test_more_hits_than_a_result_holds_are_said(tmp_path: Path) -> None:
    """And exactly as many are not."""
    (tmp_path / "a.txt").write_text("x\n" * search.MAX_HITS)
    assert "more than" not in Files(tmp_path).text("grep", pattern="x")
    (tmp_path / "a.txt").write_text("x\n" * (search.MAX_HITS + 1))
    assert Files(tmp_path).text("grep", pattern="x").endswith("[there are more than 500 hits; use a narrower path, glob or pattern]")


def test_a_long_result_is_capped(tmp_path: Path) -> None:
    """And kept where it says."""
    (tmp_path / "a.txt").write_text((("y" * 300) + "\n") * 400)
    kept: list[str] = []

    def spill(text: str) -> str:
        kept.append(text)
        return "/somewhere/hits.txt"

    text = Files(tmp_path, spill=spill).text("grep", pattern="y")
    assert len(text) <= 30_000
    assert "/somewhere/hits.txt" in text
    assert len(kept) == 1


def test_a_secret_in_a_hit_is_taken_out_before_the_line_is_cut(tmp_path: Path) -> None:
    """No half of it is shown."""
    secret = "S3CRET" * 20
    (tmp_path / "a.txt").write_text("x" * 450 + secret + "y" * 900)
    assert "S3" not in Files(tmp_path, redact=lambda it: it.replace(secret, "[redacted:K]")).text("grep", pattern="y")


def test_a_search_that_cannot_start_says_what_to_do(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded interpreter may have no program of its own."""
    monkeypatch.setattr(sys, "executable", str(tree / "no-python"))
    sentence, code = Files(tree).error("grep", pattern="x")
    assert code == "SEARCH_FAILED"
    assert "with `python` instead" in sentence


def test_the_search_works_from_any_current_folder_and_ignores_modules_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file named like a module of the library must not run."""
    (tree / "json.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tree)
    assert Files(tree).text("grep", pattern="^class C") == "src/c.py:1:class C(A):"
