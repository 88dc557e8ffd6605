"""``merge``: git merges two notebooks that grew apart; sessions never conflict, cells may, and the result is a valid notebook."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
import stored
from commands import command, process

from plan_mode_nb.document.strip import strip_metadata
from plan_mode_nb.document.threeway import merge_cells
from plan_mode_nb.store.notebook import load_document, read_notebook, write_notebook

BASE = stored.lines(2)
OURS, THEIRS = [*BASE, *stored.lines(3, "ours")[12:]], [*BASE, *stored.lines(3, "theirs")[12:]]


def sides(folder: Path, *contents: dict[str, Any]) -> tuple[Path, ...]:
    paths = tuple(folder / f"{name}.ipynb" for name in ("base", "ours", "theirs"))
    for path, content in zip(paths, contents, strict=True):
        write_notebook(path, content)
    return paths


def cells(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read_notebook(path)["cells"]]


def edited(notebook: dict[str, Any], **sources: str) -> dict[str, Any]:
    """The notebook with the sources of cells (``cell_0``) replaced, new cells appended."""
    changed = json.loads(json.dumps(notebook))
    for name, source in sources.items():
        key = name.replace("_", "-")
        there = next((cell for cell in changed["cells"] if cell["id"] == key), None)
        if there is None:
            changed["cells"].append({**changed["cells"][0], "id": key, "source": source})
        else:
            there["source"] = source
    return changed


def test_git_merges_two_notebooks_that_grew_apart(tmp_path: Path) -> None:
    """Both branches of the conversation are kept, one as a fork; both sides' cells are there; git sees no conflict."""

    def git(*words: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    path = tmp_path / "work.ipynb"
    first = stored.notebook(stored.metadata({"s": BASE}), "%load_ext plan_mode_nb", "%plan one")
    git("init", "-q", "-b", "main")
    git("config", "merge.plan-mode-nb.driver", f"{sys.executable} -m plan_mode_nb merge %O %A %B %P")
    (tmp_path / ".gitattributes").write_text("*.ipynb merge=plan-mode-nb\n")
    write_notebook(path, first)
    git("add", ".")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "theirs")
    write_notebook(path, edited({**first, "metadata": stored.metadata({"s": THEIRS})}, theirs="%agent theirs"))
    git("commit", "-qam", "theirs")
    git("checkout", "-q", "main")
    write_notebook(path, edited({**first, "metadata": stored.metadata({"s": OURS})}, ours="%agent ours"))
    git("commit", "-qam", "ours")
    git("merge", "-q", "theirs", "-m", "merged")
    assert git("status", "--porcelain") == ""
    nbformat.validate(nbformat.read(path, as_version=4))
    assert cells(path) == ["%load_ext plan_mode_nb", "%plan one", "%agent ours", "%agent theirs"]
    held = stored.held(read_notebook(path)["metadata"])
    assert sorted(map(len, held.values())) == [18, 18]
    assert sorted(held.values()) == sorted([OURS, THEIRS])
    assert load_document(path).problems == ()


def test_cells_that_conflict_stand_twice_and_the_exit_status_is_1(tmp_path: Path) -> None:
    first = stored.notebook(stored.metadata({"s": BASE}), "x = 1", "y = 1")
    base, ours, theirs = sides(tmp_path, first, edited(first, cell_0="x = 2"), edited(first, cell_0="x = 3", cell_1="y = 2"))
    environment = {"PYTHONPATH": str(without_nbdime(tmp_path))}
    merged = process("merge", base, ours, theirs, "work.ipynb", cwd=tmp_path, environment=environment)
    assert (merged.returncode, merged.stdout) == (1, "")
    assert merged.stderr == "work.ipynb: cell cell-0: changed on both sides; ours stands first, theirs after it\n"
    nbformat.validate(nbformat.read(ours, as_version=4))
    assert cells(ours) == ["x = 2", "x = 3", "y = 2"]


def without_nbdime(folder: Path) -> Path:
    """A folder for PYTHONPATH in which nbdime, wherever it is installed, is not found."""
    hidden = folder / "hidden"
    hidden.mkdir()
    hide = "u.find_spec = lambda name, *more: None if name == 'nbdime' else find(name, *more)"
    (hidden / "sitecustomize.py").write_text(f"import importlib.util as u\nfind = u.find_spec\n{hide}\n")
    return hidden


def test_nbdime_merges_within_a_cell_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("nbdime", reason="nbdime is optional and not installed here")
    first = stored.notebook(stored.metadata({"s": BASE}), "a = 1\nb = 1\nc = 1\nd = 1\n", "y = 1")
    one = edited({**first, "metadata": stored.metadata({"s": OURS})}, cell_0="a = 2\nb = 1\nc = 1\nd = 1\n")
    two = edited({**first, "metadata": stored.metadata({"s": THEIRS})}, cell_0="a = 1\nb = 1\nc = 1\nd = 2\n")
    base, ours, theirs = sides(tmp_path, first, one, two)
    assert command("merge", base, ours, theirs, cwd=tmp_path).returncode == 0
    assert cells(ours) == ["a = 2\nb = 1\nc = 1\nd = 2\n", "y = 1"]
    write_notebook(ours, edited(first, cell_1="y = 2"))
    write_notebook(theirs, edited(first, cell_1="y = 3"))
    conflicting = command("merge", base, ours, theirs, cwd=tmp_path)
    assert conflicting.returncode == 1
    assert "changed on both sides" in conflicting.stderr
    nbformat.validate(nbformat.read(ours, as_version=4))
    assert {"y = 2", "y = 3"} <= set("\n".join(cells(ours)).splitlines())


def test_an_empty_base_is_two_notebooks_that_were_both_added(tmp_path: Path) -> None:
    base, ours, theirs = sides(tmp_path, *[stored.notebook(stored.metadata({id: BASE}), "x = 1") for id in ("s", "s", "t")])
    base.write_text("")
    assert command("merge", base, ours, theirs, cwd=tmp_path).returncode == 0
    assert stored.held(read_notebook(ours)["metadata"]) == {"s": BASE, "t": BASE}
    assert cells(ours) == ["x = 1"]


def test_a_stripped_session_stays_stripped_in_a_merge(tmp_path: Path) -> None:
    first = stored.notebook(stored.metadata({"s": BASE}), "x = 1")
    published = {**first, "metadata": strip_metadata(first["metadata"])}
    base, ours, theirs = sides(tmp_path, first, published, {**first, "metadata": stored.metadata({"s": OURS})})
    assert command("merge", base, ours, theirs, cwd=tmp_path).returncode == 0
    assert load_document(ours).sessions == {}
    assert load_document(ours).stripped == {"s"}


@pytest.mark.parametrize("fault", ["{", "[]", "", '{"nbformat": 3}'])
def test_a_side_that_cannot_be_read_is_refused_and_ours_stays(tmp_path: Path, fault: str) -> None:
    first = stored.notebook(stored.metadata({"s": BASE}), "x = 1")
    base, ours, theirs = sides(tmp_path, first, first, first)
    theirs.write_text(fault)
    before = ours.read_bytes()
    refused = command("merge", base, ours, theirs, "work.ipynb", cwd=tmp_path)
    assert (refused.returncode, refused.stdout, ours.read_bytes()) == (1, "", before)
    assert refused.stderr.startswith("plan-mode-nb: work.ipynb (theirs) is ")
    assert refused.stderr.count("\n") == 1


def test_sessions_of_a_newer_format_are_refused_and_ours_stays(tmp_path: Path) -> None:
    first = stored.notebook(stored.metadata({"s": BASE}), "x = 1")
    newer = {**first, "metadata": {"plan_mode_nb": {"format": 2}}}
    base, ours, theirs = sides(tmp_path, first, first, newer)
    before = ours.read_bytes()
    refused = command("merge", base, ours, theirs, cwd=tmp_path)
    assert (refused.returncode, ours.read_bytes()) == (1, before)
    assert "upgrade plan_mode_nb" in refused.stderr


def test_merged_cells_lose_nothing_that_a_side_wrote() -> None:
    """Seeded: every source that a side changed or added is in the merge, no id stands twice, and merging with oneself changes nothing."""
    chance = random.Random(5)

    def grown(cells: list[dict[str, Any]], side: str) -> list[dict[str, Any]]:
        result = [dict(cell) for cell in cells if chance.random() < 0.8]
        for number in range(chance.randrange(3)):
            place = chance.randrange(len(result) + 1)
            result.insert(place, {"cell_type": "code", "id": f"{side}{number}", "metadata": {}, "source": f"{side} {number}"})
        for cell in result:
            if chance.random() < 0.3:
                cell["source"] = chance.choice([f"{side} {cell['source']}", "both"])
        if chance.random() < 0.3:
            chance.shuffle(result)
        return result

    for _ in range(500):
        base = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": f"base {n}"} for n in range(chance.randrange(6))]
        ours, theirs = grown(base, "ours"), grown(base, "theirs")
        merged = merge_cells(base, ours, theirs).cells
        ids = [cell["id"] for cell in merged]
        assert len(ids) == len(set(ids))
        before = {cell["source"] for cell in base}
        wrote = {cell["source"] for side in (ours, theirs) for cell in side} - before
        assert wrote <= {cell["source"] for cell in merged}
        assert merge_cells(base, ours, ours).cells == ours
        assert merge_cells(base, ours, base).cells == ours
        assert merge_cells(base, base, theirs).cells == theirs
