"""What the browser tests run: a real Jupyter server in folders of its own, and Chromium."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import nbformat
from playwright.sync_api import Browser, Playwright

App = Literal["lab", "notebook"]

EXTENSION = Path(__file__).resolve().parents[2] / "plan_mode_nb" / "hosts" / "lab" / "labextension"
HELPERS = Path(__file__).resolve().parent
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
START_S = 120


def chromium(playwright: Playwright) -> Browser:
    """A headless Chromium. Raises FileNotFoundError where none is installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise FileNotFoundError("no Chromium on the PATH")
    return playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGS))


class JupyterServer:
    """One server, on a free port, with configuration, data, runtime and notebooks under ``folder``. ``options``: for its command line.

    "lab" serves JupyterLab and Notebook, "server" neither. ``python``: of another environment, for its JupyterLab and its kernels.
    It loads the lab extension from this source tree, whatever copy is installed, and its kernels can import the helper modules
    that lie beside this file.
    """

    def __init__(
        self,
        folder: Path,
        program: Literal["lab", "server"] = "lab",
        options: Sequence[str] = (),
        python: str = sys.executable,
        **environment: str,
    ) -> None:
        self._program, self._python = program, python
        self._options = options
        self.root = folder / "notebooks"
        self.runtime = folder / "runtime"
        self.log: list[str] = []
        self._folder = folder
        self._port = _free_port()
        self._workspaces = itertools.count()
        self._running = threading.Event()
        self.root.mkdir(parents=True)
        extensions = folder / "share" / "labextensions"
        extensions.mkdir(parents=True)
        (extensions / "plan-mode-nb").symlink_to(EXTENSION)
        news = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        news.parent.mkdir(parents=True)
        news.write_text('{"fetchNews": "false"}')
        self._process = subprocess.Popen(
            self._command(), env=self._environment(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        threading.Thread(target=self._read, name="jupyter-server-log", daemon=True).start()
        if not self._running.wait(START_S) or self._process.poll() is not None:
            self.stop()
            raise RuntimeError("the Jupyter server did not start:\n" + "".join(self.log[-30:]))

    def url(self, name: str, app: App = "lab") -> str:
        """Where the notebook ``name`` opens. Each call names a workspace of its own: Lab restores the notebooks of one workspace in
        whatever browser opens it next."""
        page = f"lab/workspaces/{next(self._workspaces)}/tree" if app == "lab" else "notebooks"
        return f"{self.address}/{page}/{name}?token=t"

    @property
    def address(self) -> str:
        """The server's own address."""
        return f"http://127.0.0.1:{self._port}"

    def write(self, name: str, *sources: str, metadata: dict[str, Any] | None = None) -> Path:
        """A notebook with these code cells (by default one, empty)."""
        notebook = nbformat.v4.new_notebook(metadata=metadata or {})
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources or ("",)]
        path = self.root / name
        nbformat.write(notebook, path)
        return path

    def stop(self) -> None:
        """End it, and its kernels with it."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(sign)
                try:
                    self._process.wait(15)
                except subprocess.TimeoutExpired:
                    continue

    def _command(self) -> list[str]:
        return [
            self._python, "-m", "jupyter", self._program, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={self._port}",
            "--ServerApp.port_retries=0", "--IdentityProvider.token=t", "--ServerApp.disable_check_xsrf=True",
            f"--ServerApp.root_dir={self.root}", "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
            *self._options,
        ]  # fmt: skip

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
            "JUPYTER_PATH": "share",
        }
        own = {name: str(self._folder / folder) for name, folder in folders.items()}
        path = os.pathsep.join([str(Path(self._python).parent), os.environ.get("PATH", "")])
        modules = os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH")]))
        return {**os.environ, **own, "PATH": path, "PYTHONPATH": modules, **more}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.append(line)
            if "is running at" in line:
                self._running.set()
        self._running.set()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
