"""``export`` and ``import``: nothing is lost on the way, nothing is written over, and the source stays as it is."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import nbformat
import pytest
import stored
from commands import command

from plan_mode_nb.document.strip import strip_metadata
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.messages import text_block
from plan_mode_nb.log.vocabulary import surface
from plan_mode_nb.store.jsonl import load_jsonl, save_jsonl
from plan_mode_nb.store.notebook import load_document, read_notebook, write_notebook
from plan_mode_nb.testing import logs

LINES = stored.lines(2)
PICTURE = b"a picture's bytes"
SHA = hashlib.sha256(PICTURE).hexdigest()
TEXT = base64.b64encode(PICTURE).decode()


def with_image() -> list[str]:
    """A conversation that shows an image."""
    session = logs.new_session()
    image = {
        "type": "image",
        "attachment": {"attachmentId": f"sha256:{SHA}", "mediaType": "image/png", "bytes": 3, "width": 1, "height": 1},
    }
    session.append(logs.turn_start(1))
    message = {"content": [image, text_block("look")], "source": {"kind": "user"}, "role": "user", "id": "u"}
    session.append(surface("user/message", message), logs.turn_end(1))
    return list(session.lines)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.zstd"])
def test_what_is_exported_and_imported_again_is_the_same_session(tmp_path: Path, name: str) -> None:
    write_notebook(tmp_path / "from.ipynb", stored.notebook(stored.metadata({"s": LINES, "t": stored.lines(1)})))
    before = (tmp_path / "from.ipynb").read_bytes()
    exported = command("export", "from.ipynb", name, cwd=tmp_path)
    opens = f"deepseek-harness opens it as sessions/_no-cwd/s/session{name.removeprefix('out')} in its home (DSH_HOME, or ~/.dsh).\n"
    assert (exported.returncode, exported.stdout, exported.stderr) == (0, f"12 events of session s are in {name}.\n{opens}", "")
    assert (tmp_path / "from.ipynb").read_bytes() == before
    log = (tmp_path / name).read_bytes()
    imported = command("import", name, "to.ipynb", cwd=tmp_path)
    assert (imported.returncode, imported.stderr) == (0, "")
    assert imported.stdout == "Session s with 12 events is in to.ipynb.\n"
    assert (tmp_path / name).read_bytes() == log, "the source is never written"
    document = load_document(tmp_path / "to.ipynb")
    assert document.sessions["s"].header == stored.header("s")
    assert (list(document.sessions["s"].lines), document.agents) == (LINES, {"main": "s"})


def test_an_export_into_deepseek_harnesss_home_needs_no_word_of_where_it_goes(tmp_path: Path) -> None:
    place = tmp_path / "sessions" / "_no-cwd" / "s" / "session.jsonl"
    place.parent.mkdir(parents=True)
    write_notebook(tmp_path / "from.ipynb", stored.notebook(stored.metadata({"s": LINES})))
    assert command("export", "from.ipynb", place, cwd=tmp_path).stdout == f"12 events of session s are in {place}.\n"


def test_a_notebook_that_is_made_is_valid_and_loads_the_extension(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "s.jsonl", stored.header("s"), LINES)
    assert command("import", "s.jsonl", "new.ipynb", cwd=tmp_path).returncode == 0
    notebook = nbformat.read(tmp_path / "new.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == ["%load_ext plan_mode_nb"]


def test_an_import_keeps_the_cells_and_sessions_that_are_there_and_goes_on_with_the_new_one(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "t.jsonl", stored.header("t"), stored.lines(3))
    write_notebook(tmp_path / "to.ipynb", stored.notebook(stored.metadata({"s": LINES}), "1", "2"))
    cells = read_notebook(tmp_path / "to.ipynb")["cells"]
    done = command("import", "t.jsonl", "to.ipynb", cwd=tmp_path)
    assert done.stdout == "Session t with 18 events is in to.ipynb. Its agent goes on with it; session s stays beside it.\n"
    assert read_notebook(tmp_path / "to.ipynb")["cells"] == cells
    assert stored.held(read_notebook(tmp_path / "to.ipynb")["metadata"]) == {"s": LINES, "t": stored.lines(3)}
    assert load_document(tmp_path / "to.ipynb").agents == {"main": "t"}


def test_a_child_session_is_nobodys_agent(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "c.jsonl", Header(id=SessionId("c"), created_at=1, delegation_depth=1, origin="subagent"), LINES)
    write_notebook(tmp_path / "to.ipynb", stored.notebook(stored.metadata({"s": LINES})))
    assert command("import", "c.jsonl", "to.ipynb", cwd=tmp_path).returncode == 0
    assert load_document(tmp_path / "to.ipynb").agents == {"main": "s"}


def test_images_travel_from_notebook_to_notebook(tmp_path: Path) -> None:
    pictures = {SHA: TEXT, "b" * 64: "BBBB"}
    write_notebook(tmp_path / "from.ipynb", stored.notebook(stored.metadata({"s": with_image()}, attachments=pictures)))
    done = command("import", "from.ipynb", "to.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_document(tmp_path / "to.ipynb").attachments == {SHA: TEXT}, "only those that the session shows"


def test_an_export_puts_images_where_an_import_finds_them_again(tmp_path: Path) -> None:
    """Beside the log, in the folders that deepseek-harness has in its home."""
    (tmp_path / "sent").mkdir()
    write_notebook(tmp_path / "from.ipynb", stored.notebook(stored.metadata({"s": with_image()}, attachments={SHA: TEXT})))
    done = command("export", "from.ipynb", "sent/s.jsonl", cwd=tmp_path)
    assert done.stdout.endswith(f"The image that it shows is in {tmp_path}/sent/attachments.\n")
    assert (tmp_path / "sent/attachments/v1/objects" / SHA[:2] / SHA).read_bytes() == PICTURE
    assert command("import", "sent/s.jsonl", "to.ipynb", cwd=tmp_path).stderr == ""
    document = load_document(tmp_path / "to.ipynb")
    assert (list(document.sessions["s"].lines), document.attachments) == (with_image(), {SHA: TEXT})


def test_an_image_that_is_nowhere_is_said_to_be_missing_and_the_session_is_imported(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "s.jsonl", stored.header("s"), with_image())
    done = command("import", "s.jsonl", "to.ipynb", cwd=tmp_path, environment={"DSH_HOME": str(tmp_path / "none")})
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("note: an image that the session shows is not here")
    assert "beside the log" in done.stderr
    home = tmp_path / "home" / "attachments/v1/objects" / SHA[:2]
    home.mkdir(parents=True)
    (home / SHA).write_bytes(PICTURE)
    assert command("import", "s.jsonl", "again.ipynb", cwd=tmp_path, environment={"DSH_HOME": str(tmp_path / "home")}).stderr == ""
    assert load_document(tmp_path / "again.ipynb").attachments == {SHA: TEXT}


@pytest.mark.parametrize("there", [LINES, stored.lines(1), stored.lines(3), stored.lines(2, "else")])
def test_an_id_that_is_there_is_refused_and_nothing_changes(tmp_path: Path, there: list[str]) -> None:
    save_jsonl(tmp_path / "s.jsonl", stored.header("s"), LINES)
    write_notebook(tmp_path / "to.ipynb", stored.notebook(stored.metadata({"s": there})))
    before = (tmp_path / "to.ipynb").read_bytes()
    done = command("import", "s.jsonl", "to.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "plan-mode-nb: to.ipynb holds session s already; import into another notebook to keep both\n"
    assert (tmp_path / "to.ipynb").read_bytes() == before


def test_a_journal_adds_what_its_notebook_lacks(tmp_path: Path) -> None:
    stored.journal(tmp_path / "journals", "s", LINES, kernel="k", path=tmp_path / "moved.ipynb").close()
    journal = next((tmp_path / "journals").iterdir())
    write_notebook(tmp_path / "to.ipynb", stored.notebook(stored.metadata({"s": stored.lines(1)})))
    assert command("import", journal, "to.ipynb", cwd=tmp_path).returncode == 0
    assert stored.held(read_notebook(tmp_path / "to.ipynb")["metadata"]) == {"s": LINES}
    again = command("import", journal, "to.ipynb", cwd=tmp_path)
    assert again.returncode == 1, "and what adds nothing is refused"
    assert journal.exists(), "the source is never written"


def refused(tmp_path: Path, metadata: dict[str, object]) -> str:
    """Import into a notebook of this metadata, which must stay as it is; what was said."""
    save_jsonl(tmp_path / "s.jsonl", stored.header("s"), LINES)
    (tmp_path / "to.ipynb").write_text(json.dumps(stored.notebook(metadata)))
    before = (tmp_path / "to.ipynb").read_bytes()
    done = command("import", "s.jsonl", "to.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert (tmp_path / "to.ipynb").read_bytes() == before
    return done.stderr


def test_a_stripped_session_does_not_come_back(tmp_path: Path) -> None:
    assert "was stripped from to.ipynb" in refused(tmp_path, strip_metadata(stored.metadata({"s": LINES})))


def test_a_notebook_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    assert "upgrade plan_mode_nb" in refused(tmp_path, {"plan_mode_nb": {"format": 2}})


def test_an_unreadable_session_of_that_id_is_left_alone(tmp_path: Path) -> None:
    metadata = stored.metadata({"s": LINES})
    metadata["plan_mode_nb"]["sessions"]["s"]["version"] = 9
    assert "in a form that cannot be read" in refused(tmp_path, metadata)


def test_a_damaged_source_makes_no_notebook(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("no log\n")
    done = command("import", "s.jsonl", "new.ipynb", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "new.ipynb").exists()) == (1, False)


@pytest.mark.parametrize(
    "arguments", [("export", "from.ipynb", "from.ipynb"), ("export", "from.ipynb", "out.txt"), ("import", "from.ipynb", "s.jsonl")]
)
def test_swapped_names_overwrite_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_notebook(tmp_path / "from.ipynb", stored.notebook(stored.metadata({"s": LINES})))
    save_jsonl(tmp_path / "s.jsonl", stored.header("s"), LINES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_export_takes_any_source_and_names_the_session(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "s.jsonl.zstd", stored.header("s"), LINES)
    assert command("export", "s.jsonl.zstd", "plain.jsonl", "--session", "s", cwd=tmp_path).returncode == 0
    assert load_jsonl(tmp_path / "plain.jsonl").lines == LINES
    assert command("export", "s.jsonl.zstd", "plain.jsonl", "--session", "t", cwd=tmp_path).returncode == 1
