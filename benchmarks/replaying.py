"""``replay_ratio``: recorded notebooks under nbval, beside plain nbval of cells that do and show the same. Time on the wall.

The plain copy has the agent's cells replaced by code that displays their recorded outputs; what the kernel tool ran, runs there too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import NotMeasured, rounded

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
NOTEBOOKS = ("a-dataframe", "a-plot", "todo-list")
ROUNDS = 3
SHOW = """
from IPython.display import display as _show
for _bundle, _metadata in {shown!r}:
    _show(_bundle, raw=True, metadata=_metadata)
"""


def measure() -> dict[str, Any]:
    """``{"replay_ratio": times plain nbval}``.

    Raises:
        NotMeasured: there are no recorded notebooks, or they do not pass.
    """
    found = [GOLDEN / f"{name}.ipynb" for name in NOTEBOOKS if (GOLDEN / f"{name}.ipynb").exists()]
    if not found:
        raise NotMeasured("there is no recorded notebook beside the tests to replay")
    with tempfile.TemporaryDirectory() as folder:
        recorded, plain = Path(folder) / "recorded", Path(folder) / "plain"
        for made in (recorded, plain):
            made.mkdir()
            for data in GOLDEN.glob("*.csv"):
                (made / data.name).write_bytes(data.read_bytes())
        for path in found:
            (recorded / path.name).write_bytes(path.read_bytes())
            (plain / path.name).write_text(json.dumps(as_plain(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
        rounds = [(nbval(recorded), nbval(plain)) for _ in range(ROUNDS)]
    return {"replay_ratio": rounded(statistics.median(ours for ours, _ in rounds) / statistics.median(other for _, other in rounds))}


def as_plain(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without sessions: code in the place of its agent cells."""
    cells = [_plain(cell) for cell in notebook["cells"]]
    python = [code for lines in _chunks(notebook["metadata"]) for line in lines for code in _ran(json.loads(line))]
    first = next((index for index, cell in enumerate(notebook["cells"]) if _is_agents(cell)), 0)
    if python:
        cells.insert(
            first,
            {
                **notebook["cells"][first],
                "source": "\n".join(python),
                "outputs": [],
                "id": "ran",
                "metadata": {"tags": ["nbval-ignore-output"]},
            },
        )
    metadata = {key: value for key, value in notebook["metadata"].items() if not key.startswith("plan_mode_nb")}
    return {**notebook, "metadata": metadata, "cells": cells}


def nbval(folder: Path) -> float:
    """Seconds of ``pytest --nbval`` of a folder's notebooks."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--rootdir", str(folder), str(folder)]
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if ran.returncode != 0:
        raise NotMeasured(f"the {folder.name} notebooks do not pass under nbval: {ran.stdout[-1500:]}")
    return seconds


def _is_agents(cell: dict[str, Any]) -> bool:
    source = "".join(cell["source"])
    return cell["cell_type"] == "code" and source.startswith(("%plan", "%%plan", "%agent", "%%agent", "%load_ext", "%sandbox", "%session"))


def _plain(cell: dict[str, Any]) -> dict[str, Any]:
    if not _is_agents(cell):
        return cell
    kept = [output for output in cell["outputs"] if "data" in output]
    shown = [({mime: _whole(value) for mime, value in output["data"].items()}, output.get("metadata", {})) for output in kept]
    return {**cell, "source": SHOW.format(shown=shown), "outputs": kept}


def _whole(value: Any) -> Any:
    """A text that the file has as a list of its lines."""
    return "".join(value) if isinstance(value, list) and all(isinstance(line, str) for line in value) else value


def _chunks(metadata: dict[str, Any]) -> list[list[str]]:
    return [value for key, value in metadata.items() if key.startswith("plan_mode_nb/") and isinstance(value, list)]


def _ran(event: dict[str, Any]) -> list[str]:
    """The code that the kernel tool ran."""
    if event["type"] != "tool/call" or event["data"]["name"] != "python":
        return []
    return [json.loads(event["data"]["arguments"])["code"]]
