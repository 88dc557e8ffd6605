"""Nobody to click: a review fails closed at once, whoever runs the notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.loopback import LoopbackServer

SECTION = "GUIDANCE: plan first."
SOURCES = ["%load_ext plan_mode_nb", "%plan work", "%session"]
Run = Callable[[Path, Mapping[str, str]], str]


def by_nbclient(notebook: Path, environment: Mapping[str, str]) -> str:
    """In this process, as papermill does too."""
    node = nbformat.read(notebook, as_version=4)
    NotebookClient(node, timeout=60, resources={"metadata": {"path": str(notebook.parent)}}).execute(env=dict(environment))
    nbformat.write(node, notebook)
    return ""


def by_nbval(notebook: Path, environment: Mapping[str, str]) -> str:
    """As cells of a test run."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-cell-timeout=60", notebook.name]
    ran = subprocess.run(command, cwd=notebook.parent, env=dict(environment), capture_output=True, text=True, timeout=150, check=False)
    return ran.stdout if ran.returncode else ""


@pytest.fixture
def model() -> Iterator[LoopbackServer]:
    plan = [say("My plan."), call("exit_plan_mode", {"plan": "# Count\n\n1. Count.\n"}), usage(1, 1)]
    with LoopbackServer([plan, [say("Then I ask here."), usage(1, 1)]]) as server:
        yield server


@pytest.mark.parametrize("run", [by_nbclient, by_nbval])
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
