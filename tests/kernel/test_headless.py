"""Nobody to click: a review fails closed at once, whoever runs the notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.document.outputs import read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.log.codec import decode
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.loopback import LoopbackServer

from .conftest import ELSEWHERE, named_python

SECTION = "GUIDANCE: plan first."
SOURCES = ["%load_ext plan_mode_nb", "%plan work", "%session"]
Run = Callable[[Path, Mapping[str, str]], str]


def by_nbclient(notebook: Path, environment: Mapping[str, str]) -> str:
    """In this process."""
    node = nbformat.read(notebook, as_version=4)
    NotebookClient(node, timeout=60, resources={"metadata": {"path": str(notebook.parent)}}).execute(env=dict(environment))
    nbformat.write(node, notebook)
    return ""


def by_nbconvert(notebook: Path, environment: Mapping[str, str]) -> str:
    """``jupyter nbconvert --execute``, in place."""
    return _ran(["-m", "jupyter", "nbconvert", "--execute", "--to", "notebook", "--inplace", notebook.name], notebook, environment)


def by_papermill(notebook: Path, environment: Mapping[str, str]) -> str:
    """In an environment of its own, the notebook that it writes in the place of the one that it read."""
    python = named_python(ELSEWHERE, "pytest 8, xdist and papermill")
    path = os.pathsep.join([str(Path(python).parent), environment["PATH"]])
    return _ran(["-m", "papermill", notebook.name, notebook.name], notebook, {**environment, "PATH": path}, python)


def _ran(arguments: Sequence[str], notebook: Path, environment: Mapping[str, str], python: str = sys.executable) -> str:
    """What a command said that failed, "" of one that did not."""
    command = [python, *arguments]
    ran = subprocess.run(command, cwd=notebook.parent, env=dict(environment), capture_output=True, text=True, timeout=150, check=False)
    return f"{ran.stdout}{ran.stderr}" if ran.returncode else ""


def by_nbval(notebook: Path, environment: Mapping[str, str]) -> str:
    """As cells of a test run."""
    return _ran(["-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-cell-timeout=60", notebook.name], notebook, environment)


@pytest.fixture
def model() -> Iterator[LoopbackServer]:
    plan = [say("My plan."), call("exit_plan_mode", {"plan": "# Count\n\n1. Count.\n"}), usage(1, 1)]
    with LoopbackServer([plan, [say("Then I ask here."), usage(1, 1)]]) as server:
        yield server


@pytest.mark.parametrize("run", [by_nbclient, by_nbconvert, by_papermill, by_nbval])
def test_a_review_that_nobody_can_answer_ends_at_once_and_is_not_approved(run: Run, model: LoopbackServer, tmp_path: Path) -> None:
    """The cell ends well, the model is told why and what to do, and plan mode is still on."""
    (tmp_path / "config").mkdir()
    settings = {"PlanMode": {"section": SECTION}, "PlanAgent": {"model": "openai-chat:m"}}
    (tmp_path / "config" / "plan_mode_nb.json").write_text(json.dumps(settings))
    cells = [nbformat.v4.new_code_cell(source) for source in SOURCES]
    notebook = tmp_path / "n.ipynb"
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), notebook)
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("RUNTIME", "DATA")}
    environment = {
        **os.environ,
        **folders,
        "JUPYTER_CONFIG_DIR": str(tmp_path / "own"),
        "JUPYTER_CONFIG_PATH": str(tmp_path / "config"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "none",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    assert run(notebook, environment) == ""
    assert len(model.requests) == 2
    assert "nobody is here to answer" in str(model.requests[1].body["messages"][-1]["content"])
    prompts = ["".join(each["content"] for each in request.body["messages"] if each["role"] == "system") for request in model.requests]
    assert all(SECTION in prompt for prompt in prompts)
    if run is not by_nbval:  # which writes no notebook
        written = nbformat.read(notebook, as_version=4)
        document = merge_documents(read_metadata(written.metadata), read_outputs(written.cells))
        (session,) = document.sessions.values()
        types = [decode(line).type for line in session.lines]
        assert "question/answered" in types
        assert types[-1] == "turn/end"
        assert "stored in    what this run saves" in written.cells[2].outputs[0]["text"]
