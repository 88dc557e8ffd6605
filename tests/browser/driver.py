"""A real Jupyter server and a real notebook page in Chromium, for tests.

`JupyterServer` runs JupyterLab or Notebook in folders of its own; `NotebookPage` is one browser page with one notebook. Both
wait for the event they need, within a deadline; nothing sleeps.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import nbformat
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright

App = Literal["lab", "notebook", "server"]

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
START_S = 90
WAIT_MS = 30_000

# The notebook panel of this page, in JupyterLab (several widgets) and in Notebook (one).
_PANEL = "[...window.jupyterapp.shell.widgets('main')].find(w => w.context && w.sessionContext)"


def chromium(playwright: Playwright) -> Browser:
    """A headless Chromium. Raises FileNotFoundError where none is installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise FileNotFoundError("no Chromium on the PATH")
    return playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGS))


class JupyterServer:
    """One server, on a free port, with configuration, data, runtime and notebooks under ``folder``. ``options``: for its command line.

    It loads the lab extension from this source tree, whatever copy is installed, and its kernels can import the helper modules
    that lie beside this file.
    """

    def __init__(self, folder: Path, app: App = "lab", options: Sequence[str] = (), **environment: str) -> None:
        self.app: App = app
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

    def url(self, name: str = "") -> str:
        """Where the notebook ``name`` opens, or the application without one. Each call names a workspace of its own: Lab restores the
        notebooks of one workspace in whatever browser opens it next."""
        page = f"lab/workspaces/{next(self._workspaces)}/tree" if self.app == "lab" else "notebooks"
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
            sys.executable, "-m", "jupyter", self.app, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={self._port}",
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
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        return {**os.environ, **own, "PATH": path, "PYTHONPATH": str(HELPERS), **more}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.append(line)
            if "is running at" in line:
                self._running.set()
        self._running.set()


class NotebookPage:
    """A notebook in a browser page, with its kernel started."""

    def __init__(self, context: BrowserContext, server: JupyterServer, name: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.name = name
        self.console: list[str] = []
        self._server = server
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        self.page.goto(server.url(name))
        self.wait_ready()

    def wait_ready(self) -> None:
        """Until the notebook is shown and its kernel answers."""
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=START_S * 1000)
        self.page.wait_for_function("() => window.jupyterapp !== undefined")
        self.page.evaluate(f"() => {{ Object.defineProperty(window, 'panel', {{ get: () => {_PANEL}, configurable: true }}); }}")
        # The application writes the kernel's language into a notebook that has none; after that it changes nothing by itself.
        self.until("() => !!panel?.context.isReady && !!panel.sessionContext.session?.kernel", START_S * 1000)
        self.until("() => !!panel.context.model.getMetadata('language_info')?.version", START_S * 1000)

    def until(self, predicate: str, timeout: float = WAIT_MS, arg: Any = None) -> None:
        """Wait for a JavaScript predicate, in which ``panel`` is the notebook panel."""
        self.page.wait_for_function(predicate, arg=arg, timeout=timeout)

    def js(self, function: str, arg: Any = None) -> Any:
        """What a JavaScript function returns, in which ``panel`` is the notebook panel."""
        return self.page.evaluate(function, arg)

    def reload(self) -> None:
        """Reload the page; the kernel goes on."""
        self.page.reload()
        self.wait_ready()

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Run a command of the application and wait for it."""
        self.js("([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => undefined)", [name, args or {}])

    def start(self, code: str) -> None:
        """Have the kernel run ``code`` as this page's first cell would; returns at once."""
        self.js(
            """code => {
              const kernel = panel.sessionContext.session.kernel, cell = panel.content.widgets[0].model.sharedModel.id;
              const future = kernel.requestExecute({ code, allow_stdin: true }, false, { cellId: cell });
              const run = (window.lastRun = { text: '', done: false });
              future.onIOPub = ({ header, content }) => {
                if (header.msg_type === 'stream') run.text += content.text;
                if (header.msg_type === 'error') run.text += `${content.ename}: ${content.evalue}`;
              };
              future.done.finally(() => { run.done = true; }).catch(() => {});
            }""",
            code,
        )

    def finish(self, timeout: float = WAIT_MS) -> str:
        """Wait for what `start` began; its printed text, and its error."""
        self.until("() => window.lastRun.done", timeout)
        return str(self.js("() => window.lastRun.text")).strip()

    def run(self, code: str) -> str:
        """`start`, then `finish`."""
        self.start(code)
        return self.finish()

    def value(self, expression: str) -> Any:
        """A Python expression's value in the kernel, by way of JSON."""
        text = self.run(f"import json as _json; print(_json.dumps({expression}))")
        try:
            return json.loads(text)
        except ValueError:
            raise AssertionError(f"{expression}: {text}") from None

    def value_until(self, expression: str, wanted: Callable[[Any], bool], seconds: float = 10) -> Any:
        """Ask the kernel again until its value is ``wanted``."""
        end = time.monotonic() + seconds
        while not wanted(value := self.value(expression)):
            if time.monotonic() > end:
                raise AssertionError(f"{expression} stayed {value!r}")
        return value

    def run_cell(self, index: int = 0, source: str | None = None) -> None:
        """Run a cell as a person does; returns at once. Its outputs land in the notebook."""
        self.js(
            """([index, source]) => {
              const notebook = panel.content;
              if (source !== null) notebook.widgets[index].model.sharedModel.setSource(source);
              notebook.activeCellIndex = index;
              notebook.deselectAll();
              (window.cells ??= {})[index] = false;
              window.jupyterapp.commands.execute('notebook:run-cell').finally(() => { window.cells[index] = true; });
            }""",
            [index, source],
        )

    def wait_cell(self, index: int = 0, timeout: float = WAIT_MS) -> None:
        """Until the cell that `run_cell` began has ended."""
        self.until("index => window.cells?.[index] === true", timeout, index)

    def outputs(self, index: int = 0) -> list[dict[str, Any]]:
        """The cell's outputs as the notebook holds them."""
        return list(self.js("index => panel.content.widgets[index].model.outputs.toJSON()", index))

    def metadata(self) -> dict[str, Any]:
        """The notebook's metadata as the page holds it."""
        return dict(self.js("() => panel.context.model.toJSON().metadata"))

    def dirty(self) -> bool:
        """Whether the page would save a change."""
        return bool(self.js("() => panel.context.model.dirty"))

    def save(self) -> dict[str, Any]:
        """Save, and what the file then holds."""
        self.js("() => panel.context.save()")
        return dict(nbformat.read(self._server.root / self.name, as_version=4))

    def restart(self) -> None:
        """Restart the kernel, and wait until the new one answers."""
        self.js("() => panel.sessionContext.session.kernel.restart()")
        self.run("pass")

    def theme(self, name: Literal["light", "dark"]) -> None:
        """Switch the application's theme."""
        self.command("apputils:change-theme", {"theme": f"JupyterLab {name.capitalize()}"})
        self.until("light => document.body.dataset.jpThemeLight === String(light)", arg=name == "light")

    @property
    def chip(self) -> Locator:
        """The plan chip's button."""
        return self.page.locator(".pmnb-Chip button").first

    def ours(self) -> list[str]:
        """What the console holds of this package, warnings and errors."""
        return [line for line in self.console if "plan-mode-nb" in line or "pmnb" in line]

    def close(self) -> None:
        """End the kernel and close the page."""
        self.js("() => panel.sessionContext.shutdown()")
        self.page.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
