"""Running a recorded notebook again in a kernel that replays: what ``replay`` and ``record --headers`` share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.hosts.cli.carrier import Received
from plan_mode_nb.hosts.cli.cells import Cells
from plan_mode_nb.replay.environment import MODE, NOTEBOOK, REPORT, SANITIZE, TOOLS, Mode, sanitize_patterns
from plan_mode_nb.replay.matching import Matching, NotebookCell, match
from plan_mode_nb.replay.outputs import output_difference
from plan_mode_nb.replay.report import Drift, Note, read_report
from plan_mode_nb.store.notebook import read_notebook


class Replayed(Struct, frozen=True):
    """``difference``: the first one, "" where there is none. ``parts``: how many recorded commands and turns there are."""

    parts: int
    difference: str
    notes: tuple[str, ...]
    drifts: tuple[Drift, ...]


def replay_notebook(
    path: Path, mode: Mode, *, timeout: int | None, kernel: str | None, sanitize: Path | None, all_tools: bool = False
) -> Replayed:
    """Replay a notebook in a kernel of its own. The file is only read.

    ``all_tools``: every tool runs again, in a scratch copy of the notebook's folder.

    Raises:
        StoreError, FormatError: it cannot be read.
        ReplayError: it carries no session, or its cells and its recording do not fit.
    """
    path = path.absolute()
    notebook = read_notebook(path)
    matching = match(notebook)
    if not matching.is_recorded:
        raise ReplayError(f"{path.name} carries no recorded turn; run it in Jupyter or with plan-mode-nb run first")
    problem = matching.problem(path.name)
    if problem:
        raise ReplayError(problem)
    with tempfile.TemporaryDirectory(prefix="plan-mode-nb-replay-") as folder:
        report = Path(folder) / "report.jsonl"
        environment = {**os.environ, MODE: mode, REPORT: str(report), TOOLS: "all" if all_tools else "rebuilds"}
        if all_tools:
            path = Path(shutil.copytree(path.parent, Path(folder) / "copy", symlinks=True)) / path.name
        environment[NOTEBOOK] = str(path)
        if sanitize is not None:
            environment[SANITIZE] = str(sanitize.absolute())
        difference = _run(path, notebook, matching, environment, timeout, kernel)
        said = list(read_report(report))
    return Replayed(
        parts=sum(1 for _ in matching.places),
        difference=difference,
        notes=tuple(each.text for each in said if isinstance(each, Note)),
        drifts=tuple(each for each in said if isinstance(each, Drift)),
    )


def _run(
    path: Path, saved: Mapping[str, Any], matching: Matching, environment: Mapping[str, str], timeout: int | None, kernel: str | None
) -> str:
    import nbformat

    running = nbformat.read(path, as_version=4)
    for cell in matching.cells:
        cell_json = running.cells[cell.number - 1]
        if _fails(matching, cell):
            cell_json.metadata["tags"] = [*cell_json.metadata.get("tags", []), "raises-exception"]
        cell_json.outputs = []
    cells = Cells(running, path.parent, Received())
    cells.run(timeout=timeout, kernel=kernel, environment=environment)
    patterns = sanitize_patterns(environment.get(SANITIZE))
    now = {cell.code: running.cells[cell.number - 1].outputs for cell in matching.cells[: cells.ran + 1]}
    return first_difference(matching, saved, now, patterns) or cells.failure


def first_difference(
    matching: Matching, saved: Mapping[str, Any], now: Mapping[int, Sequence[Mapping[str, Any]]], sanitize: Sequence[tuple[str, str]] = ()
) -> str:
    """The first difference between a notebook's saved outputs and those of its replay (by place among code cells); "" for none."""
    for cell in matching.cells:
        if cell.code in now:
            difference = _cell_difference(matching, cell, saved["cells"][cell.number - 1], now[cell.code], sanitize)
            if difference:
                return difference
    return ""


def _fails(matching: Matching, cell: NotebookCell) -> bool:
    return cell.failed and any(not place.part.ended_well for place in matching.by_cell.get(cell.code, ()))


def _cell_difference(
    matching: Matching,
    cell: NotebookCell,
    saved: Mapping[str, Any],
    now: Sequence[Mapping[str, Any]],
    sanitize: Sequence[tuple[str, str]],
) -> str:
    error = next((output for output in now if output["output_type"] == "error"), None)
    if error is not None and (error["ename"] == "ReplayError" or not _fails(matching, cell)):
        said = str(error["evalue"])
        return said if said.startswith("cell ") else f"{cell}: {error['ename']}: {said}"
    parts = [place.part for place in matching.by_cell.get(cell.code, ())]
    if cell.shows_session or any(part.is_cut for part in parts) or saved.get("execution_count") is None:
        return ""
    difference = output_difference(saved.get("outputs", ()), now, sanitize)
    return f"{cell}: {difference}" if difference else ""
