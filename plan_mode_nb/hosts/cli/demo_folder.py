"""The demo's files in a folder of their own, and the environment in which Jupyter finds that folder's configuration."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.store.files import reason

NOTEBOOK: Final = "penguins.ipynb"
CONFIG: Final = "plan_mode_nb.json"
_JUPYTERS: Final = frozenset({".ipynb_checkpoints", ".virtual_documents"})
"""What Jupyter itself leaves in a folder."""


def demo_files() -> dict[str, bytes]:
    """The packaged files, name -> bytes."""
    folder = files("plan_mode_nb") / "demo"
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir(), key=lambda each: each.name) if each.is_file()}


def make_folder(folder: Path | None) -> Path:
    """Copy the demo's files into ``folder``, or into a new scratch folder. A folder that holds exactly them is used as it is.

    Raises:
        StoreError: the folder holds something else, or cannot be made.
    """
    wanted = demo_files()
    if folder is None:
        made = Path(tempfile.mkdtemp(prefix="plan-mode-nb-demo-"))
    else:
        made = folder.absolute()
        there = _names(made)
        if there == wanted.keys():
            return made
        if there:
            raise StoreError(f"{folder} is not empty; name a new folder with --dir, or leave --dir out for a scratch folder")
    try:
        made.mkdir(parents=True, exist_ok=True)
        for name, data in wanted.items():
            (made / name).write_bytes(data)
    except OSError as error:
        raise StoreError(f"{made} cannot be written ({reason(error)}); name another folder with --dir") from error
    return made


def with_config(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with the folder's own ``plan_mode_nb.json`` ahead of every other."""
    others = environ.get("JUPYTER_CONFIG_PATH")
    return {**environ, "JUPYTER_CONFIG_PATH": os.pathsep.join([str(folder), *([others] if others else [])])}


def _names(folder: Path) -> set[str]:
    try:
        return {entry.name for entry in os.scandir(folder)} - _JUPYTERS
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise StoreError(f"{folder} is no folder that can be used ({reason(error)}); name another with --dir") from error
