"""Replays in one warm kernel, many after another: what a notebook's own kernel does under nbval, without the seconds of starting it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from kernel.driver import Kernel

from plan_mode_nb.hosts.cli.replaying import first_difference
from plan_mode_nb.replay.matching import match

CELL_S = 60.0
PREPARE = """
import os, sys
if 'plan_mode_nb' in get_ipython().extension_manager.loaded:
    get_ipython().run_line_magic('unload_ext', 'plan_mode_nb')
for settings in ('PlanAgent', 'PlanMode'):
    get_ipython().config.pop(settings, None)
get_ipython().reset(new_session=False)
import os
os.environ.update(PLAN_MODE_NB_REPLAY={mode!r}, PLAN_MODE_NB_NOTEBOOK={notebook!r})
os.chdir({folder!r})
del os
"""


class WarmReplays:
    """Use as a context manager. No model, no key and no network: the kernel's environment names none."""

    def __init__(self, python: str = sys.executable) -> None:
        """``python``: whose ipykernel replays."""
        self.folder = Path(tempfile.mkdtemp(prefix="warm-replays-"))
        own = {name: str(self.folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
        self._kernel = Kernel(python, env=own)

    def replay(self, path: Path, notebook: dict[str, Any]) -> str:
        """The first difference, "" for none. ``path``: where the kernel finds the notebook; ``notebook``: the same as JSON."""
        matching = match(notebook)
        problem = matching.problem(path.name)
        if problem:
            return problem
        self._kernel.must(PREPARE.format(notebook=str(path), folder=str(path.parent), mode="strict"), CELL_S)
        now: dict[int, list[dict[str, Any]]] = {}
        for cell in matching.cells:
            ran = self._kernel.run(cell.source, CELL_S, allow_stdin=False, store_history=False)
            now[cell.code] = ran.outputs
            difference = first_difference(matching, notebook, {cell.code: ran.outputs})
            if difference:
                return difference
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kernel.close()
        shutil.rmtree(self.folder, ignore_errors=True)
