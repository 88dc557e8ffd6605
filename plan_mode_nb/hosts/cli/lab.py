"""A JupyterLab of our own for one notebook: on this machine only, gone with Ctrl-C."""

from __future__ import annotations

import json
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote, urlsplit

import typer

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.hosts.cli.settle import settle

_START_S: Final = 90.0
_STOP_S: Final = 15.0


def serve_lab(notebook: Path, environment: Mapping[str, str], *, open_browser: bool) -> int:
    """Start JupyterLab with the notebook open, print the address with its token, and wait. Ctrl-C stops the server and its kernels.

    Raises:
        StoreError: the server did not start; its last line.
    """
    token = secrets.token_hex(24)
    with tempfile.TemporaryFile() as said:
        server = _start(notebook.parent, {**environment, "JUPYTER_TOKEN": token}, said)
        # Another signal must not leave a server without its owner behind.
        before = signal.signal(signal.SIGTERM, _as_interrupt)
        try:
            address = _address(server, said)
            url = f"{address}lab/tree/{quote(notebook.name)}?token={token}"
            typer.echo(f"{url}\nCtrl-C stops it.")
            if open_browser:
                import webbrowser

                webbrowser.open(url)
            return _ended(server.wait(), said)
        except KeyboardInterrupt:
            return 0
        finally:
            _stop(server)
            signal.signal(signal.SIGTERM, before)
            settle(notebook)


def _start(folder: Path, environment: Mapping[str, str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={folder}"]
    # In a session of its own: the terminal's Ctrl-C is for us, and jupyter would ask whether it is meant.
    return subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        start_new_session=True,
    )


def _address(server: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    """Where it listens, from the file that every Jupyter server writes about itself."""
    from jupyter_core.paths import jupyter_runtime_dir

    info = Path(jupyter_runtime_dir()) / f"jpserver-{server.pid}.json"
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if server.poll() is not None:
            raise StoreError(f"JupyterLab ended at once with status {server.returncode}: {_last_line(said)}")
        with suppress(OSError, ValueError, KeyError):
            url = str(json.loads(info.read_text(encoding="utf-8"))["url"])
            socket.create_connection(("127.0.0.1", urlsplit(url).port or 80), 1).close()
            return url
        time.sleep(0.1)
    raise StoreError(f"JupyterLab did not start within {_START_S:.0f} s: {_last_line(said)}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Let it end its kernels, within bounds. Ctrl-C again must not leave it behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _ended(status: int, said: IO[bytes]) -> int:
    """It ended by itself: by *Shut Down* in its menu, or by a fault."""
    if status:
        typer.echo(f"plan-mode-nb: JupyterLab ended with status {status}: {_last_line(said)}", err=True)
    return 1 if status else 0


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
