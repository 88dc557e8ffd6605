"""Children of a notebook on the command line: which child of whom, how it ended, and what it did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.hosts.cli.reading import fold_command, log_command
from plan_mode_nb.hosts.cli.strip import strip_command

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "a-child.ipynb"


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN, tmp_path))


@pytest.fixture
def sessions(notebook: Path) -> dict[str, str]:
    """Ids by what they are."""
    headers = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["plan_mode_nb"]["sessions"]
    kinds = {"main": "origin", "forked": "seedLength"}
    found = {"main": next(id for id, header in headers.items() if kinds["main"] not in header)}
    found["forked"] = next(id for id, header in headers.items() if kinds["forked"] in header)
    found["spawned"] = next(id for id in headers if id not in found.values())
    return found


def test_a_fold_and_a_timeline_list_the_children_and_a_childs_name_its_parent(
    notebook: Path, sessions: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """In words; ``fold --json`` is as it was."""

    def told(command: str, session: str | None = None) -> str:
        if command == "fold":
            fold_command(notebook, as_json=False, at=None, session=session)
        else:
            log_command(notebook, session=session)
        return " ".join(capsys.readouterr().out.split())

    for command in ("fold", "log"):
        assert f"child {sessions['spawned']} “count the orders” (spawned): completed, 2 steps" in told(command)
        assert f"child {sessions['forked']} “Outline the report.” (forked): completed, 2 steps" in told(command)
        assert f"child of {sessions['main']} “Outline the report.” (forked): completed" in told(command, sessions["forked"])
    active = {}
    for kind, id in sessions.items():
        fold_command(notebook, as_json=True, at=None, session=id)
        active[kind] = json.loads(capsys.readouterr().out)["plan"]["active"]
    assert active == {"main": False, "spawned": False, "forked": True}


def test_a_session_that_is_not_there_is_refused_with_those_that_are(notebook: Path, sessions: dict[str, str]) -> None:
    """Children among them."""
    with pytest.raises(FormatError, match=sessions["spawned"]):
        log_command(notebook, session="nobody")


def test_a_kept_transcript_tells_a_child_once_without_what_it_was_forked_with(notebook: Path, sessions: dict[str, str]) -> None:
    """Under a line that says whose it is; the task is no word of the person's."""
    strip_command(notebook, keep_folded=True)
    cells = ["".join(cell["source"]) for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]]
    assert cells.count("**You**\n\nreport the orders") == 1
    assert cells.count("**Task**\n\nOutline the report.") == 1
    assert any(cell.startswith("*Child agent “Outline the report.” (forked): completed") for cell in cells)
    assert "*turn ends: interrupted*" not in cells
    stripped = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["plan_mode_nb"]["stripped"]
    assert set(stripped) == set(sessions.values())
