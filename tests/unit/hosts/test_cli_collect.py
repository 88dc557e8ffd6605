"""``collect`` and ``strip``: what outputs carry goes into the metadata; what is stripped is gone from the file, and stays gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import stored
from commands import command, private

from plan_mode_nb.document.outputs import EVENTS_MIME, events_bundle
from plan_mode_nb.store.notebook import load_document, read_notebook, write_notebook

LINES = stored.lines(3)
SHA, IMAGE = "a" * 64, "QUJD"


def output(start: int, end: int, *, text: str = "1 step", **more: Any) -> dict[str, Any]:
    carried = events_bundle(stored.header("s"), start, LINES[start:end], agent="main", **more)
    return {"output_type": "display_data", "metadata": {}, "data": {EVENTS_MIME: carried, "text/plain": text}}


def written(path: Path, *outputs: dict[str, Any] | None, metadata: dict[str, Any] | None = None) -> Path:
    notebook = stored.notebook(metadata or {}, *(f"%agent {place}" for place, _ in enumerate(outputs)))
    for cell, each in zip(notebook["cells"], outputs, strict=True):
        cell["outputs"] = [] if each is None else [each]
    write_notebook(path, notebook)
    return path


def test_what_outputs_carry_goes_into_the_metadata_and_leaves_the_outputs(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ipynb", output(6, 18), output(0, 6, attachments={SHA: IMAGE}), output(0, 2, text=""))
    done = command("collect", path, cwd=tmp_path, environment=private(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "a.ipynb: collected 18 events of session s.\n", "")
    document = load_document(path)
    assert (list(document.sessions["s"].lines), document.agents, document.attachments) == (LINES, {"main": "s"}, {SHA: IMAGE})
    outputs = [cell["outputs"] for cell in read_notebook(path)["cells"]]
    assert [[list(each["data"]) for each in one] for one in outputs] == [[["text/plain"]], [["text/plain"]], []]
    nbformat.validate(nbformat.read(path, as_version=4))
    before = path.read_bytes()
    again = command("collect", path, cwd=tmp_path, environment=private(tmp_path))
    assert (again.returncode, again.stdout, path.read_bytes()) == (0, "a.ipynb: there was nothing to collect.\n", before)


def test_a_journal_of_this_notebook_is_collected_too_and_goes(tmp_path: Path) -> None:
    """Cleared outputs are no loss on the machine where they were made."""
    path = written(tmp_path / "a.ipynb", None)
    environment = private(tmp_path)
    folder = tmp_path / "runtime" / "plan_mode_nb"
    stored.journal(folder, "s", LINES, kernel="k", path=path).close()
    stored.journal(folder, "other", LINES, kernel="k", path=tmp_path / "b.ipynb").close()
    assert command("collect", path, cwd=tmp_path, environment=environment).returncode == 0
    assert stored.held(read_notebook(path)["metadata"]) == {"s": LINES}
    assert [each.name for each in folder.iterdir()] == ["other.k.journal"]


def test_what_cannot_be_read_stays_in_its_output_and_is_said(tmp_path: Path) -> None:
    gap = output(12, 18)
    path = written(tmp_path / "a.ipynb", output(0, 6), gap)
    done = command("collect", path, cwd=tmp_path, environment=private(tmp_path))
    assert done.returncode == 1
    assert "no cell carries the events before 12" in done.stderr
    assert stored.held(read_notebook(path)["metadata"]) == {"s": LINES[:6]}
    assert read_notebook(path)["cells"][1]["outputs"] == [gap]


def test_a_copy_that_went_on_elsewhere_becomes_a_fork(tmp_path: Path) -> None:
    other = [*LINES[:6], *stored.lines(2, "other")[6:]]
    path = written(tmp_path / "a.ipynb", output(0, 18), metadata=stored.metadata({"s": other}))
    assert command("collect", path, cwd=tmp_path, environment=private(tmp_path)).returncode == 0
    assert sorted(stored.held(read_notebook(path)["metadata"]).values()) == sorted([LINES, other])


def test_strip_leaves_tombstones_alone_also_of_what_only_outputs_carried(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ipynb", output(0, 18, text="hello"), metadata=stored.metadata({"t": stored.lines(1, "secret")}))
    done = command("strip", path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a.ipynb: 2 sessions removed.\n")
    notebook = read_notebook(path)
    assert notebook["metadata"]["plan_mode_nb"] == {"format": 1, "agents": {}, "sessions": {}, "stripped": ["s", "t"]}
    assert "hello" not in path.read_text()
    assert "secret" not in path.read_text()
    assert command("strip", path, cwd=tmp_path).stdout == "a.ipynb: there was no session to remove.\n"
    nbformat.validate(nbformat.read(path, as_version=4))


def test_keep_folded_leaves_a_readable_transcript(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ipynb", None, metadata=stored.metadata({"s": stored.lines(1, "my <b>question</b>")}))
    done = command("strip", path, "--keep-folded", cwd=tmp_path)
    assert done.stdout == "a.ipynb: 1 session removed, kept as a transcript in its last cells.\n"
    told = [(cell["cell_type"], "".join(cell["source"])) for cell in read_notebook(path)["cells"][1:]]
    assert {kind for kind, _ in told} == {"markdown"}
    assert "question" in json.dumps(told)
    assert "Good." in json.dumps(told)
    assert load_document(path).sessions == {}
    nbformat.validate(nbformat.read(path, as_version=4))


def test_keep_folded_refuses_what_it_cannot_tell_and_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ipynb", None, metadata=stored.metadata({"s": ["no event"]}))
    before = path.read_bytes()
    refused = command("strip", path, "--keep-folded", cwd=tmp_path)
    assert (refused.returncode, path.read_bytes()) == (1, before)
    assert "strip without --keep-folded" in refused.stderr
    assert command("strip", path, cwd=tmp_path).returncode == 0
