"""The command line as a person starts it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def command(
    *arguments: object, cwd: Path, environment: Mapping[str, str] | None = None, seconds: float = 170
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m plan_mode_nb``. Keys of whoever runs the tests are not passed on."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(
        [sys.executable, "-m", "plan_mode_nb", *map(str, arguments)],
        cwd=cwd,
        env={**kept, "NO_COLOR": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def private(folder: Path) -> dict[str, str]:
    """An environment in which Jupyter and IPython keep everything under ``folder``."""
    return {
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
