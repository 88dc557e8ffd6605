"""Loading the extension is felt by everybody, also by those who never run a turn: what it imports is bounded by name, not by a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LATER = {
    "anthropic",
    "anywidget",
    "jupyter_server",
    "linkify_it",
    "markdown_it",
    "nbclient",
    "nbformat",
    "openai",
    "plan_mode_nb.hosts.kernel.display",
    "plan_mode_nb.hosts.kernel.rerecording",
    "plan_mode_nb.hosts.kernel.strict",
    "plan_mode_nb.replay.replay",
    "pydantic_ai",
    "typer",
    "zstandard",
}
"""What a turn, a card, a replay or the command line needs."""
LOAD = """
import json, sys
import ipykernel.ipkernel, ipykernel.zmqshell, ipywidgets
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
{first}
import plan_mode_nb.hosts.kernel.front_end
shell.run_line_magic("load_ext", "plan_mode_nb")
assert hasattr(shell, "_plan_mode_nb")
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(folder: Path, first: str = "") -> set[str]:
    """The modules that ``%load_ext`` brings into a process that has IPython, ipykernel and ipywidgets. ``first``: run before it."""
    environment = {"PATH": "", "HOME": str(folder), "IPYTHONDIR": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
    code = LOAD.format(first=first)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_loading_imports_nothing_that_only_a_turn_needs(tmp_path: Path) -> None:
    """Widgets, markdown, model clients, replays and notebook files are imported by whoever uses them first."""
    assert loaded(tmp_path) & LATER == set()


def test_an_eager_import_is_noticed(tmp_path: Path) -> None:
    """The guard can fail."""
    eager = {"anywidget", "plan_mode_nb.hosts.kernel.display"}
    assert eager <= loaded(tmp_path, "import anywidget, plan_mode_nb.hosts.kernel.display") & LATER
