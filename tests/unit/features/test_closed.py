"""What Jupyter keeps to itself is read by none of the tools that read in the kernel's process, by whatever way they are sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calling import Files

from plan_mode_nb.compose import Surroundings, compose, notebook
from plan_mode_nb.features.tools import read
from plan_mode_nb.features.tools.closed import Closed
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.testing.shells import PlainShell

KEY = "the-key-of-a-kernel"


@pytest.fixture
def tools(tmp_path: Path) -> Files:
    """A workspace beside a runtime folder with a connection file, a journal, and a result that was kept for the model."""
    runtime = tmp_path / "runtime"
    for folder in ("plan_mode_nb", "plan_mode_nb/results"):
        (runtime / folder).mkdir(parents=True, exist_ok=True)
    (runtime / "kernel-1.json").write_text(f'{{"key": "{KEY}"}}\n')
    (runtime / "plan_mode_nb" / "s.journal").write_text(f"{KEY}\n")
    (runtime / "plan_mode_nb" / "results" / "long.txt").write_text("a long result\n")
    root = tmp_path / "ws"
    root.mkdir()
    (root / "mine.txt").write_text("mine, with the word key\n")
    return Files(root, closed=Closed((str(runtime),), (str(root), str(runtime / "plan_mode_nb" / "results"))))


def a_link(root: Path, runtime: Path) -> str:
    (root / "link.json").symlink_to(runtime / "kernel-1.json")
    return "link.json"


def a_linked_folder(root: Path, runtime: Path) -> str:
    (root / "linked").symlink_to(runtime)
    return "linked/kernel-1.json"


def a_chain_of_links(root: Path, runtime: Path) -> str:
    (root / "second").symlink_to(runtime)
    (root / "first").symlink_to("second")
    return "first/plan_mode_nb/../kernel-1.json"


WAYS: list[Callable[[Path, Path], str]] = [
    lambda root, runtime: str(runtime / "kernel-1.json"),
    lambda root, runtime: str(runtime / "plan_mode_nb" / "s.journal"),
    lambda root, runtime: "../runtime/kernel-1.json",
    lambda root, runtime: f"/proc/self/root{runtime}/kernel-1.json",
    lambda root, runtime: f"/proc/{os.getpid()}/cwd/{os.path.relpath(runtime)}/kernel-1.json",
    lambda root, runtime: str(runtime / "plan_mode_nb" / "results" / ".." / "s.journal"),
    lambda root, runtime: str(runtime / "not-there.json"),
    a_link,
    a_linked_folder,
    a_chain_of_links,
]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_to_a_connection_file_or_a_journal(way: Callable[[Path, Path], str], tools: Files) -> None:
    """Read and searched alike, with one sentence; whether the file exists is not told."""
    path = way(tools.root, tools.root.parent / "runtime")
    for name, more in (("read", {}), ("grep", {"pattern": "key"})):
        sentence, code = tools.error(name, path=path, **more)
        assert code == "CLOSED"
        assert "was not read: it belongs to what Jupyter keeps to itself" in sentence
        assert KEY not in sentence


@pytest.mark.parametrize("below", ["", "plan_mode_nb"])
@pytest.mark.parametrize(("name", "more"), [("glob", {"pattern": "**"}), ("grep", {"pattern": "key"})])
def test_a_search_that_begins_there_is_refused(name: str, more: dict[str, Any], below: str, tools: Files) -> None:
    """The folder and what lies in it."""
    assert tools.error(name, path=str(tools.root.parent / "runtime" / below), **more)[1] == "CLOSED"


def test_a_search_around_it_passes_it_over(tools: Files) -> None:
    """Everything else is found."""
    found = tools.text("grep", pattern="key", path="..")
    assert "mine.txt:1:" in found
    assert KEY not in found
    listed = tools.text("glob", pattern="**/*", path="..").splitlines()
    assert "mine.txt" in listed
    assert not any("kernel-1" in line or "journal" in line for line in listed)


def test_results_that_were_kept_for_the_model_are_read(tools: Files) -> None:
    """They lie in the middle of it, and a result says where."""
    assert "a long result" in tools.text("read", path=str(tools.root.parent / "runtime" / "plan_mode_nb" / "results" / "long.txt"))


def test_a_workspace_that_lies_there_is_open(tools: Files) -> None:
    """Where the user works, the user's files are read."""
    runtime = tools.root.parent / "runtime"
    root = runtime / "work"
    root.mkdir()
    (root / "mine.txt").write_text("mine")
    inside = Files(root, closed=Closed((str(runtime),), (str(root),)))
    assert "mine" in inside.text("read", path="mine.txt")
    assert inside.error("read", path="../kernel-1.json")[1] == "CLOSED"


def test_a_link_put_in_the_way_after_the_check_is_noticed(tools: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was really opened counts."""
    swapped = tools.root / "mine.txt"

    def swap(path: str, flags: int) -> int:
        swapped.unlink()
        swapped.symlink_to(tools.root.parent / "runtime" / "kernel-1.json")
        return os.open(path, flags)

    monkeypatch.setattr(read, "_without_waiting", swap)
    assert tools.error("read", path="mine.txt")[1] == "CLOSED"


def test_a_composition_closes_what_its_host_hides(tmp_path: Path) -> None:
    """The same folders that confined programs see empty."""
    runtime = tmp_path / "runtime"
    (runtime / "results").mkdir(parents=True)
    (runtime / "kernel-1.json").write_text(KEY)
    (runtime / "results" / "long.txt").write_text("a long result")
    tools = Files(tmp_path / "elsewhere")
    around = Surroundings(hidden=(runtime,), results=runtime / "results")
    seams = type(tools.seams).create()
    compose(seams, notebook(PlanModeConfig("Only look."), "", PlainShell(), tmp_path, surroundings=around))
    tools.seams = seams
    assert tools.error("read", path=str(runtime / "kernel-1.json"))[1] == "CLOSED"
    assert "a long result" in tools.text("read", path=str(runtime / "results" / "long.txt"))
