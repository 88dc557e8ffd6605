"""``replay_ratio``: recorded notebooks under nbval, beside plain nbval of cells that do and show the same. Time on the wall.

The plain copy has the agent's cells replaced by code that displays their recorded outputs; what the kernel tool ran, runs there too. A
round is one run of each, one after the other; the ratio is the median of the rounds' ratios. What the rounds were is said on stderr, and
the same in processor time, which other programs disturb less.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import NotMeasured, as_installed, rounded

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
NOTEBOOKS = ("a-dataframe", "a-plot", "todo-list")
ROUNDS = 9
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
        rounds = [one_round(recorded, plain, number) for number in range(ROUNDS + 1)][1:]
    walls, processors = zip(*rounds, strict=True)
    said = ", ".join(f"{ratio:.2f}" for ratio in sorted(walls))
    print(f"replay_ratio: rounds {said}; in processor time {statistics.median(processors):.2f}", file=sys.stderr)
    return {"replay_ratio": rounded(statistics.median(walls))}


def one_round(recorded: Path, plain: Path, number: int) -> tuple[float, float]:
    """Times plain nbval, on the wall and in processor time. Who goes first changes from round to round; round 0 compiles."""
    taken = {folder: nbval(folder) for folder in ((recorded, plain) if number % 2 else (plain, recorded))}
    (wall, processor), (plain_wall, plain_processor) = taken[recorded], taken[plain]
    return wall / plain_wall, processor / plain_processor


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


def nbval(folder: Path) -> tuple[float, float]:
    """Seconds of ``pytest --nbval`` of a folder's notebooks, kernels included: on the wall, and of the processor."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--rootdir", str(folder), str(folder)]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", **as_installed(folder.parent)}
    start, before = time.perf_counter(), _processor_seconds()
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise NotMeasured(f"the {folder.name} notebooks do not pass under nbval: {ran.stdout[-1500:]}")
    return time.perf_counter() - start, _processor_seconds() - before


def _processor_seconds() -> float:
    """Of all processes that were started here and are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
