"""The tools for files, which look and never change anything: ``read``, ``glob`` and ``grep``."""

from __future__ import annotations

from pathlib import Path

from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.features.tools.cap import Results, Spill
from plan_mode_nb.features.tools.closed import NOTHING, Closed
from plan_mode_nb.features.tools.paths import Workspace
from plan_mode_nb.features.tools.read import read_tool
from plan_mode_nb.features.tools.search import glob_tool, grep_tool


def install(seams: Seams, root: Path, spill: Spill | None = None, *, closed: Closed = NOTHING) -> Undo:
    """Register the three tools. ``root``: the workspace, where relative paths start. Returns the undo.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    workspace, results = Workspace(root.absolute(), closed), Results(seams.redactions.text, spill)
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        for tool in (read_tool(workspace, results, seams.attachments), glob_tool(workspace, results), grep_tool(workspace, results)):
            undos.append(seams.tools.register(tool))
    except ValueError:
        undo()
        raise
    return undo
