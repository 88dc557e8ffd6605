"""The pytest plugin and the command line on real notebooks: what nbval does with them, and what it is left to do alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel.conftest import ELSEWHERE, named_python

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.log.codec import decode
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.loopback import LoopbackServer

from .test_golden import HERE, nbval, read

pytestmark = pytest.mark.kernel
SECTION = "plan:policy"


def copied(stem: str, folder: Path, edit: Callable[[dict[str, Any]], None] = lambda notebook: None) -> Path:
    """A story in a folder of its own, changed by ``edit``."""
    notebook = read(HERE / f"{stem}.ipynb")
    edit(notebook)
    path = folder / f"{stem}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def cli(*arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plan_mode_nb", *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=170, check=False)


def section_of(path: Path) -> list[str]:
    """The system prompts that a notebook's sessions recorded."""
    sessions = read_metadata(read(path)["metadata"]).sessions.values()
    events = [decode(line) for session in sessions for line in session.lines]
    return [event.data["header"].get("system", "") for event in events if event.type == "request/header"]


def with_section(folder: Path, text: str) -> str:
    """A configuration folder whose guidance is another."""
    folder.mkdir()
    (folder / "plan_mode_nb.json").write_text(json.dumps({"PlanMode": {"section": text}}))
    return str(folder)


def test_a_notebook_without_sessions_is_nbval_s_alone_and_one_that_does_not_fit_is_one_failure(tmp_path: Path) -> None:
    """In one run, with ``--nbval-lax`` and a sanitize file: green, listed once, and outputs that nbval itself compares."""
    plain = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    source = "import os\nprint(os.environ.get('PLAN_MODE_NB_REPLAY'), 12)  # NBVAL_CHECK_OUTPUT"
    output = {"output_type": "stream", "name": "stdout", "text": "None 99\n"}
    cell = {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}, "outputs": [output], "source": source}
    (tmp_path / "plain.ipynb").write_text(json.dumps({**plain, "cells": [cell]}))
    (tmp_path / "sanitize.cfg").write_text("[numbers]\nregex: \\d+\nreplace: NUMBER\n")
    copied("two-agents", tmp_path)

    broken = copied("dismiss-and-talk", tmp_path, lambda notebook: notebook["cells"].pop(3))
    broken.rename(tmp_path / "broken.ipynb")
    ran = nbval("--nbval-lax", "--nbval-sanitize-with", tmp_path / "sanitize.cfg", tmp_path)
    assert "6 passed, 5 skipped, 1 error" in ran.stdout, ran.stdout
    # pytest's short summary repeats a message, cut to the terminal's width, and whole in CI.
    assert ran.stdout.partition("short test summary")[0].count("do not fit") == 1
    assert "plan-mode-nb record broken.ipynb" in ran.stdout
    assert "has no cell" in ran.stdout


def test_notebooks_replay_side_by_side_one_worker_a_file(tmp_path: Path) -> None:
    """xdist with ``--dist loadfile``, and the other major version of pytest."""
    python = named_python(ELSEWHERE, "pytest 8, xdist and papermill")
    for stem in ("two-agents", "limits", "steer-and-toggle"):
        copied(stem, tmp_path)
    ran = nbval("-n", "2", "--dist", "loadfile", "-v", tmp_path, python=python)
    assert ran.returncode == 0, ran.stdout
    assert "pytest-8." in ran.stdout
    assert "created: 2/2 workers" in ran.stdout


def test_drift_is_named_and_taken_in_offline_and_then_the_notebook_replays(tmp_path: Path) -> None:
    """``replay`` exits 1 and names the section with both texts; ``record --headers`` writes the new one; nothing else changes."""
    path = copied("off-during-review", tmp_path)
    config = with_section(tmp_path / "config", "Explore, then hand in one plan.")
    told = cli("replay", path, JUPYTER_CONFIG_PATH=config)
    assert told.returncode == 1
    assert f"section {SECTION} of the system prompt" in told.stderr
    assert "+Explore, then hand in one plan." in told.stderr
    before = read(path)
    taken = cli("record", "--headers", path, JUPYTER_CONFIG_PATH=config)
    assert taken.returncode == 0, taken.stderr
    assert any("Explore, then hand in one plan." in system for system in section_of(path))
    assert [cell["outputs"] for cell in read(path)["cells"][1:]] == [cell["outputs"] for cell in before["cells"][1:]]
    assert cli("replay", path, JUPYTER_CONFIG_PATH=config).stdout.endswith("no difference.\n")


def test_headers_are_not_taken_in_where_more_differs(tmp_path: Path) -> None:
    """The file is left as it is, and the first difference is named."""

    def other(notebook: dict[str, Any]) -> None:
        notebook["cells"][-1]["outputs"][0]["data"]["text/plain"] = "41"

    path = copied("interrupt-and-go-on", tmp_path, other)
    bytes_before = path.read_bytes()
    told = cli("record", "--headers", path, JUPYTER_CONFIG_PATH=with_section(tmp_path / "config", "Explore."))
    assert told.returncode == 1
    assert "was left as it is" in told.stderr
    assert path.read_bytes() == bytes_before


def test_recording_again_asks_the_model_gives_the_recorded_answers_and_shows_what_changed(tmp_path: Path) -> None:
    """The new session takes the place of the old one, whose id does not come back; then it replays."""
    path = copied("limits", tmp_path)
    old = set(read_metadata(read(path)["metadata"]).sessions)
    answers = [[say("Just this."), usage(1, 1)], [say("And that."), usage(1, 1)]]
    with LoopbackServer(answers) as server:
        config = tmp_path / "config"
        config.mkdir()
        (config / "plan_mode_nb.json").write_text(json.dumps({"PlanAgent": {"model": "openai-chat:other"}}))
        environment = {"JUPYTER_CONFIG_PATH": str(config), "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        told = cli("record", path, JUPYTER_RUNTIME_DIR=str(tmp_path / "runtime"), **environment)
        assert told.returncode == 0, told.stderr
    assert "+" in told.stdout
    assert "Just this." in told.stdout
    document = read_metadata(read(path)["metadata"])
    assert not old & set(document.sessions)
    assert old <= document.stripped
    assert cli("replay", path).returncode == 0


def test_recording_again_without_an_answer_fails_and_leaves_the_file(tmp_path: Path) -> None:
    """A plan that the old recording has no answer for is nobody's to approve."""
    path = copied("limits", tmp_path)
    with LoopbackServer([[call("python", {"code": "1"})], [say("Done."), usage(1, 1)], [say("On."), usage(1, 1)]]) as server:
        config = tmp_path / "config"
        config.mkdir()
        (config / "plan_mode_nb.json").write_text(json.dumps({"PlanAgent": {"model": "openai-chat:other"}}))

        environment = {"JUPYTER_CONFIG_PATH": str(config), "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        notebook = read(path)
        notebook["cells"][2]["source"] = "%sandbox workspace-write"
        path.write_text(json.dumps(notebook))
        bytes_before = path.read_bytes()
        told = cli("record", path, JUPYTER_RUNTIME_DIR=str(tmp_path / "runtime"), **environment)
    assert told.returncode == 1
    assert "has no decision for this call of python" in told.stderr
    assert path.read_bytes() == bytes_before


def test_every_notebook_of_the_repository_replays() -> None:
    """The guide and the demo's notebook; the stories are replayed by test_golden."""
    ran = nbval(HERE.parents[1] / "notebooks")
    assert ran.returncode == 0, ran.stdout
