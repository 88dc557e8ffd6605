"""The command line as a person starts it: in a process of its own, or in this one, which starts a hundred times as fast."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from plan_mode_nb.hosts.cli.main import main


def process(
    *arguments: object, cwd: Path, environment: Mapping[str, str] | None = None, seconds: float = 170
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m plan_mode_nb``. Keys of whoever runs the tests are not passed on."""
    return subprocess.run(
        [sys.executable, "-m", "plan_mode_nb", *map(str, arguments)],
        cwd=cwd,
        env={**_kept(), "NO_COLOR": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def command(*arguments: object, cwd: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process, with the folder, the environment and the streams that it would have."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, {**_kept(), "NO_COLOR": "1", **(environment or {})}, clear=True),
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main([str(argument) for argument in arguments])
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
    return subprocess.CompletedProcess(arguments, status, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


def private(folder: Path) -> dict[str, str]:
    """An environment in which Jupyter and IPython keep everything under ``folder``."""
    return {
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "IPYTHONDIR": str(folder / "ipython"),
    }


def _kept() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
