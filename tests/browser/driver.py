"""A real notebook page in Chromium, as a person has it. Whatever waits, waits for its event, within a deadline; nothing sleeps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import nbformat
from applications import START_S, App, JupyterServer
from playwright.sync_api import BrowserContext, Error, Locator, Page

WAIT_MS = 120_000
"""For an event that comes at once on a machine with nothing else to do."""

# The notebook panel of this page: the one shown last, or the only one, whatever it is called by now.
_PANEL = """(panels => panels.find(each => each.context.path === window.shown) ?? panels[0])(
  [...window.jupyterapp.shell.widgets('main')].filter(each => each.context && each.sessionContext))"""


class NotebookPage:
    """A notebook in a browser page, with its kernel started. A page costs seconds to load, so it can show one notebook after another."""

    opened: ClassVar[list[NotebookPage]] = []

    def __init__(self, context: BrowserContext, server: JupyterServer, name: str, app: App = "lab") -> None:
        self.opened.append(self)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.name = name
        self.console: list[str] = []
        self._server, self._app = server, app
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        self.page.goto(server.url(name, app))
        self.wait_ready()
        self._home = self.js("() => panel.sessionContext.session.kernel.id")

    def wait_ready(self) -> None:
        """Until the notebook is shown and its kernel answers."""
        self.page.locator(".jp-Notebook .jp-CodeCell:visible").first.wait_for(timeout=START_S * 1000)
        self.page.wait_for_function("() => window.jupyterapp !== undefined")
        self.page.evaluate(f"() => {{ Object.defineProperty(window, 'panel', {{ get: () => {_PANEL}, configurable: true }}); }}")
        # The application writes the kernel's language into a notebook that has none; after that it changes nothing by itself.
        self.until("() => !!panel?.context.isReady && !!panel.sessionContext.session?.kernel", START_S * 1000)
        self.connect()
        self.until("() => !!panel.context.model.getMetadata('language_info')?.version", START_S * 1000)

    def connect(self) -> None:
        """Until the kernel is connected: by itself, here."""

    def show(self, name: str, *, own_kernel: bool = False, beside: bool = False) -> None:
        """Close what is open, unsaved, and open this notebook in the same application: with the kernel of this page, or with one of
        its own, which ends with the next notebook. ``beside``: nothing is closed, and a notebook that is open comes to the front.
        """
        self.name = name
        self.console.clear()
        self.js(
            """async ([path, home, ownKernel, beside]) => {
              const app = window.jupyterapp, kernel = panel.sessionContext.session?.kernel;
              if (!beside && kernel && kernel.id !== home) await panel.sessionContext.shutdown();
              if (!beside) for (const widget of [...app.shell.widgets('main')]) if (widget.context) widget.dispose();
              window.cells = {};
              window.shown = path;
              await app.commands.execute('docmanager:open', { path, ...(!ownKernel && { kernel: { id: home } }) });
            }""",
            [name, self._home, own_kernel, beside],
        )
        self.wait_ready()
        self.until("() => window.jupyterapp.shell.currentWidget === panel")

    def until(self, predicate: str, timeout: float = WAIT_MS, arg: Any = None) -> None:
        """Wait for a JavaScript predicate, in which ``panel`` is the notebook panel."""
        self.page.wait_for_function(predicate, arg=arg, timeout=timeout)

    def js(self, function: str, arg: Any = None) -> Any:
        """What a JavaScript function returns, in which ``panel`` is the notebook panel."""
        return self.page.evaluate(function, arg)

    def reload(self) -> None:
        """Load the page anew, with this notebook alone; the kernel goes on. JupyterLab's own restoring would be of an earlier moment."""
        self.page.goto(self._server.url(self.name, self._app))
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

    def value_until(self, expression: str, wanted: Callable[[Any], bool], seconds: float = WAIT_MS / 1000) -> Any:
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
        return self.file()

    def file(self) -> dict[str, Any]:
        """What the file holds."""
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

    def story(self) -> str:
        """For people who read why a test failed: outputs, and the console's last lines."""
        outputs = (
            "() => window.panel?.content.widgets.map(cell => JSON.stringify(cell.model.outputs?.toJSON())?.slice(0, 3000)).join('\\n')"
        )
        try:
            return "\n".join([str(self.js(outputs)), *self.console[-20:]])
        except Error as error:
            return f"the page does not answer: {error}"

    def ours(self) -> list[str]:
        """What the console holds of this package, warnings and errors."""
        return [line for line in self.console if "plan-mode-nb" in line or "pmnb" in line]

    def close(self) -> None:
        """End the kernel and close the page."""
        self.js("() => panel.sessionContext.shutdown()")
        self.page.close()
