"""``demo``: the demo notebook in JupyterLab, or headless with everything that happened printed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import typer

from plan_mode_nb.exceptions import ConfigError, StoreError
from plan_mode_nb.hosts.cli.demo_folder import CONFIG, NOTEBOOK, make_folder, with_config
from plan_mode_nb.hosts.cli.execute import Executed, execute
from plan_mode_nb.hosts.cli.run import events_of
from plan_mode_nb.store.files import read_bytes, replace

CELL_S: Final = 300
"""A cell of the demo takes seconds; one that hangs must not hang whoever tries this out."""
_QUIET: Final = ("%load_ext", "%sandbox")


def serve(folder: Path | None, *, open_browser: bool) -> int:
    """Start JupyterLab on the demo notebook, print its address, and stay until it ends or Ctrl-C.

    Raises:
        ConfigError: something that the demo needs is not installed.
        StoreError: the folder cannot be used.
    """
    from plan_mode_nb.hosts.cli.lab import serve_lab

    require("jupyterlab", "pandas", "matplotlib")
    made = make_folder(folder)
    typer.echo(f"The demo is in {made}. Its model is a recording, so no key is needed; the notebook says how to choose a live one.")
    return serve_lab(made / NOTEBOOK, with_config(made, os.environ), open_browser=open_browser)


def run_headless(folder: Path | None) -> int:
    """Run the demo notebook with the recorded answers, in a scratch folder unless one is named; 1 where a cell failed.

    Raises:
        ConfigError, StoreError: as :func:`serve`.
    """
    require("pandas", "matplotlib")
    made = make_folder(folder)
    with tempfile.TemporaryDirectory(prefix="plan-mode-nb-private-") as private, answers_from_recording(made / CONFIG):
        # Nothing of the person's is used or written: their settings, their histories, their journals.
        folders = {"JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}
        with environment({name: os.path.join(private, each) for name, each in folders.items()}):
            executed = execute(made / NOTEBOOK, timeout=CELL_S, kernel=None, environment=with_config(made, os.environ))
    for line in _happened(executed):
        typer.echo(line)
    if executed.failure:
        typer.echo(f"plan-mode-nb: {NOTEBOOK}: {executed.failure}", err=True)
        return 1
    typer.echo(f"\nThe notebook with all of this is {made / NOTEBOOK}.")
    return 0


def require(*modules: str) -> None:
    """Check that what the demo needs is installed.

    Raises:
        ConfigError: naming what is not, and the command that installs it.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the demo needs {', '.join(missing)}: pip install 'plan-mode-nb[demo]'")


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, this process has these variables too: looking for kernels already writes to IPython's folder."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def answers_from_recording(config: Path) -> Iterator[None]:
    """While this lasts, the folder's configuration has the recorded person answer: nobody is there to click.

    Raises:
        StoreError: the configuration cannot be read or written.
    """
    before = read_bytes(config)
    try:
        settings = json.loads(before)
        settings.setdefault("PlanAgent", {})["answers"] = "recording"
    except (ValueError, AttributeError) as error:
        raise StoreError(f"{config} cannot be used ({error}); leave --dir out for a scratch folder") from None
    replace(config, json.dumps(settings, ensure_ascii=False).encode())
    try:
        yield
    finally:
        replace(config, before)


def _happened(executed: Executed) -> Iterator[str]:
    from plan_mode_nb.render.transcript import timeline

    yield "A recorded session, run again: its answers are the recording's, its tools ran here."
    for cell in executed.notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.startswith(_QUIET):
            yield from ("", *(f"In: {line}" for line in source.splitlines()), *_outputs(cell["outputs"]))
    for session in executed.sessions:
        yield from ("", f"The log of session {session}:", timeline(events_of(executed.document, session)))


def _outputs(outputs: list[Mapping[str, Any]]) -> Iterator[str]:
    for output in outputs:
        data = output.get("data", {})
        if any(kind.startswith("image/") for kind in data):
            yield "[a figure was drawn]"
        elif "text/plain" in data:
            yield "".join(data["text/plain"])
        elif output["output_type"] == "stream":
            yield "".join(output["text"]).rstrip("\n")
