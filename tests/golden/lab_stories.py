"""Stories told in real JupyterLab by real clicks: ``cd tests && python -m golden.lab_stories [NAME…]``. The page saves the notebook."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.faults import Slow
from plan_mode_nb.testing.loopback import LoopbackServer

from .stories import FREE, LOAD, ORDERS, plan, python, todos
from .telling import CONFIG, FOLDER_OF_ADA, here

sys.path.insert(0, str(here().parent / "browser"))
from applications import JupyterServer, chromium
from driver import NotebookPage

Act = Callable[[NotebookPage], None]
CLICK_MS = 60_000
Cell = tuple[str, Sequence[Act]]


def button(name: str) -> Act:
    """Click the button of that name, once it is there."""
    return lambda notebook: notebook.page.get_by_role("button", name=name, exact=True).click(timeout=CLICK_MS)


def typed(label: str, words: str) -> Act:
    """Type into the box of that label, as fast as a test can."""

    def act(notebook: NotebookPage) -> None:
        box = notebook.page.get_by_role("textbox", name=label, exact=True)
        box.click(timeout=CLICK_MS)
        notebook.page.keyboard.type(words, delay=0)

    return act


def shown(text: str) -> Act:
    """Wait until the page shows this text."""
    return lambda notebook: notebook.page.get_by_text(text).first.wait_for(timeout=CLICK_MS)


def toggle(notebook: NotebookPage) -> None:
    """The plan toggle of the controls."""
    notebook.page.get_by_role("switch", name="Plan mode", exact=True).click(timeout=CLICK_MS)


REVIEWED: tuple[Sequence[Any], list[Cell]] = (
    [
        [say("I look at the file."), call("read", {"path": "orders.csv"}), usage(800, 20)],
        [say("Here is my plan."), plan("# Sum the amounts\n\n1. Read `orders.csv`.\n2. Sum.\n"), usage(900, 40)],
        [say("With the mean, too."), plan("# Sum the amounts\n\n1. Read `orders.csv`.\n2. Sum, **and the mean**.\n"), usage(1000, 50)],
        [
            todos(("Sum", "in_progress"), ("Mean", "pending")),
            python("import csv\namounts = [float(row['amount']) for row in csv.DictReader(open('orders.csv'))]\nsum(amounts)"),
            usage(1100, 60),
        ],
        [python("mean = sum(amounts) / len(amounts)\nmean"), todos(("Sum", "completed"), ("Mean", "completed")), usage(1150, 30)],
        [say("The sum is 79.5, the mean **19.875**."), usage(1200, 20)],
    ],
    [
        (LOAD, ()),
        (FREE, ()),
        (
            "%plan sum the amounts of orders.csv",
            (
                typed("Feedback", 'and the mean, please: "do not" round it'),
                button("Keep planning"),
                shown("and the mean"),
                button("Approve"),
            ),
        ),
        ("mean", ()),
    ],
)
STEERED: tuple[Sequence[Any], list[Cell]] = (
    [
        [Slow(0.03), say("I list them all: " + "item, " * 60), python("items = 60"), usage(500, 100)],
        [say("Only the count, then: 60."), usage(600, 10)],
        [Slow(0.03), say("Again from the top: " + "item, " * 200), usage(620, 300)],
        [say("Stopped."), usage(700, 5)],
    ],
    [
        (LOAD, ()),
        (FREE, ()),
        (
            "%agent list the items",
            (shown("item, item"), typed("Steer", "only the count"), lambda notebook: notebook.page.keyboard.press("Enter"), toggle),
        ),
        ("%agent list them again", (shown("item, item, item, item"), button("Stop"))),
        ("%agent are you there?", ()),
        ("items", ()),
    ],
)
APPROVED: tuple[Sequence[Any], list[Cell]] = (
    [
        [say("I would run this."), python("answer = 6 * 7\nanswer"), usage(400, 20)],
        [say("Then not."), usage(450, 5)],
        [python("answer = 6 * 7\nanswer"), usage(470, 20)],
        [say("It is 42."), usage(500, 5)],
        [say("Here is my plan."), plan("# Answer again\n\n1. Multiply.\n"), usage(520, 20)],
        [say("We talk first."), usage(550, 5)],
    ],
    [
        (LOAD, ()),
        ("%agent what is six times seven?", (button("Reject"),)),
        ("%agent then ask me again", (button("Allow once"),)),
        ("answer", ()),
        ("%plan answer again", (button("Discuss"),)),
    ],
)
LAB_STORIES = {"lab-reviewed": REVIEWED, "lab-steered-and-stopped": STEERED, "lab-approved-and-discussed": APPROVED}
TITLES = {
    "lab-reviewed": "# In JupyterLab: a plan, feedback, approval",
    "lab-steered-and-stopped": "# In JupyterLab: steered, toggled, stopped",
    "lab-approved-and-discussed": "# In JupyterLab: code refused, code allowed, a plan set aside",
}


@contextmanager
def lab(folder: Path, url: str) -> Iterator[JupyterServer]:
    """JupyterLab whose agents speak to this model server."""
    config = folder / "agent"
    config.mkdir()
    (config / "plan_mode_nb.json").write_text(json.dumps(CONFIG))
    server = JupyterServer(folder, JUPYTER_CONFIG_PATH=str(config), OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    try:
        yield server
    finally:
        server.stop()


def tell(name: str, folder: Path) -> Path:
    """Tell one story and save its notebook into ``folder``."""
    answers, cells = LAB_STORIES[name]
    with tempfile.TemporaryDirectory(prefix="lab-story-") as scratch, LoopbackServer(answers) as model, sync_playwright() as playwright:
        browser = chromium(playwright)
        with lab(Path(scratch), model.url) as server:
            (server.root / "orders.csv").write_bytes(ORDERS)
            server.write(f"{name}.ipynb", *(source for source, _ in cells))
            notebook = NotebookPage(browser.new_context(viewport={"width": 1300, "height": 1000}), server, f"{name}.ipynb")
            for index, (_, acts) in enumerate(cells):
                notebook.run_cell(index)
                for act in acts:
                    act(notebook)
                notebook.wait_cell(index, CLICK_MS)
            saved = notebook.save()
            notebook.close()
            text = json.dumps(saved, ensure_ascii=False, indent=1).replace(str(server.root), FOLDER_OF_ADA)
        browser.close()
    path = folder / f"{name}.ipynb"
    path.write_text(_titled(text, name) + "\n", encoding="utf-8")
    return path


def _titled(text: str, name: str) -> str:
    notebook = json.loads(re.sub(r"/tmp/lab-story-\w+", FOLDER_OF_ADA, text))
    title = {"cell_type": "markdown", "id": f"{name}-title"[-64:], "metadata": {}, "source": TITLES[name]}
    notebook["cells"] = [title, *notebook["cells"]]
    notebook["metadata"]["language_info"] = {"name": "python"}
    return json.dumps(notebook, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    for each in sys.argv[1:] or LAB_STORIES:
        print(tell(each, here()).name)
