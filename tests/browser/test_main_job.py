"""The main job in real JupyterLab: plan, review, act, save, reopen. Once with the demo's recording, once with a model server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from applications import JupyterServer
from driver import NotebookPage
from playwright.sync_api import Browser, Page, expect

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.log.codec import decode_all

DEMO = Path(__file__).resolve().parents[2] / "plan_mode_nb" / "demo"
FEEDBACK = "do not judge the rule on the birds it was made from, and do not delete the data"
PLAN_CELL, RESULT_CELL, SESSION_CELL = 7, 9, 10

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """JupyterLab in a copy of the demo's folder, configured by that folder."""
    folder = tmp_path_factory.mktemp("demo")
    server = JupyterServer(folder, JUPYTER_CONFIG_PATH=str(folder / "notebooks"))
    for file in DEMO.iterdir():
        shutil.copy(file, server.root)
    yield server
    server.stop()


@contextmanager
def serving(script: Path) -> Iterator[str]:
    """A model server in another process, answering from a script; its base URL. It ends with its standard input."""
    command = [sys.executable, "-m", "plan_mode_nb.testing.loopback", "--script", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


@pytest.fixture(scope="module")
def page(browser: Browser, lab: JupyterServer) -> Iterator[NotebookPage]:
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    opened = NotebookPage(context, lab, "penguins.ipynb")
    yield opened
    context.close()


def run_all(notebook: NotebookPage) -> None:
    notebook.js("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")


def keep_planning(page: Page, words: str) -> None:
    """Type and press at once: nothing of the text may be lost on the way."""
    box = page.get_by_label("Feedback")
    box.wait_for()
    box.click()
    page.keyboard.type(words, delay=0)
    page.get_by_role("button", name="Keep planning").click()


def approve_revision(page: Page) -> None:
    expect(page.get_by_text("with that bird left out of the means")).to_be_visible()
    page.get_by_role("button", name="Approve").click()


def folded(file: Path) -> dict[str, Any]:
    """What the log in a notebook's metadata amounts to, without times of reading."""
    document = read_metadata(json.loads(file.read_text())["metadata"])
    assert document.problems == ()
    stored = document.sessions[document.agents["main"]]
    return fold_summary(stored.header, decode_all(stored.lines))


def shot(notebook: NotebookPage, folder: Path, name: str) -> None:
    notebook.page.screenshot(path=folder / f"{name}.png")


def check_outputs(saved: dict[str, Any]) -> None:
    """Static, complete, in order: no widget, the plan with its outcome, the figure, and the cells behind ran after it."""
    cells = nbformat.from_dict(saved).cells
    outputs = cells[PLAN_CELL].outputs
    assert all("application/vnd.jupyter.widget-view+json" not in output.get("data", {}) for output in outputs)
    texts = [output.data["text/plain"] for output in outputs if "data" in output]
    assert re.fullmatch(r"7 steps · [\d,]+ tokens in · [\d,]+ out", texts[0])
    kept, approved = (text for text in texts if text.startswith("Plan review: "))
    assert kept.startswith("Plan review: not approved, keep planning")
    assert kept.rstrip().endswith(FEEDBACK)
    assert approved.startswith("Plan review: approved")
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "bill_length_mm & flipper_length_mm    0.956" in cells[RESULT_CELL].outputs[0]["data"]["text/plain"]
    assert "plan mode    off" in cells[SESSION_CELL].outputs[0]["text"]
    counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
    assert counts == sorted(counts)


def reopen_without_kernel_and_journals(lab: JupyterServer, notebook: NotebookPage) -> None:
    notebook.js("() => panel.sessionContext.shutdown()")
    for journal in lab.runtime.rglob("*.journal"):
        journal.unlink()
    notebook.console.clear()
    notebook.reload()


def test_the_demo_is_reviewed_acts_and_survives_reopening(lab: JupyterServer, page: NotebookPage, shots: Path) -> None:
    """With the recording: feedback arrives whole, the approved plan is carried out, and a fresh kernel folds to what was there."""
    run_all(page)
    page.page.get_by_label("Feedback").wait_for()
    shot(page, shots, "review")
    keep_planning(page.page, FEEDBACK)
    expect(page.page.get_by_text("with that bird left out of the means")).to_be_visible()
    shot(page, shots, "revision")
    approve_revision(page.page)
    page.until(f"() => panel.content.widgets[{SESSION_CELL}].model.executionCount !== null")
    page.page.locator(".jp-OutputArea-output img").last.evaluate("image => image.scrollIntoView({ block: 'center' })")
    shot(page, shots, "result")
    saved = page.save()
    check_outputs(saved)
    file = lab.root / page.name
    before = folded(file)
    assert before["plan"] == {"active": False, "pending": None}
    assert before["turns"] == [{"turn": 1, "steps": 7, "end": {"kind": "completed"}}]
    assert f"their feedback: {FEEDBACK}" in json.dumps(before["messages"])
    reopen_without_kernel_and_journals(lab, page)
    assert page.dirty() is False
    assert page.ours() == []
    code = (
        "from plan_mode_nb.folds.summary import fold_summary; h = get_ipython()._plan_mode_nb[0]; s = h.agent().session; "
        "folded = h.on_agent(lambda: fold_summary(s.header, s.events))"
    )
    assert page.run(f"%load_ext plan_mode_nb\n{code}") == ""
    assert page.value("folded") == before
    assert "restored with" in page.run("%session")
    assert folded(file) == before


def test_the_same_over_a_model_server_in_another_process(lab: JupyterServer, page: NotebookPage) -> None:
    """Over HTTP: the same conversation from a live server, chosen by ``%config`` in the notebook."""
    with serving(DEMO / "script.json") as url:
        notebook = nbformat.read(DEMO / "penguins.ipynb", as_version=4)
        notebook.cells[1].source += f'\n%env OPENAI_BASE_URL={url}\n%config PlanAgent.model = "openai-chat:demo-script"'
        nbformat.write(notebook, lab.root / "live.ipynb")
        page.show("live.ipynb", own_kernel=True)
        run_all(page)
        keep_planning(page.page, FEEDBACK)
        approve_revision(page.page)
        page.until(f"() => panel.content.widgets[{SESSION_CELL}].model.executionCount !== null")
        check_outputs(page.save())
    after = folded(lab.root / "live.ipynb")
    assert after["header"]["config"]["model"] == "demo-script"
    assert after["turns"][0]["end"] == {"kind": "completed"}


STOPPED = {
    "stream": [{"type": "slow", "seconds": 0.05}, {"type": "say", "text": "word " * 2_000}],
    "tool": [{"type": "call", "name": "python", "arguments": json.dumps({"code": "import time\nprint('going')\ntime.sleep(600)"})}],
    "review": [{"type": "call", "name": "exit_plan_mode", "arguments": json.dumps({"plan": "# Plan\n\nDo it."})}],
}
"""Where a person presses stop: what the model answers."""


def test_the_stop_button_of_the_kernel_ends_the_turn(lab: JupyterServer, page: NotebookPage, tmp_path: Path) -> None:
    """In the stream, in a tool and in a review: KeyboardInterrupt, a closed log, no live card, and the next cell works."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(list(STOPPED.values())))
    with serving(script) as url:
        model = "%config PlanAgent.model = 'openai-chat:scripted'"
        load = f"%load_ext plan_mode_nb\n%env OPENAI_BASE_URL={url}\n{model}\n%sandbox danger-full-access"
        lab.write("stop.ipynb", load, *["%plan work", "print('queued')", "print('after')"] * len(STOPPED))
        page.show("stop.ipynb", own_kernel=True)
        page.run_cell(0)
        page.wait_cell(0)
        for number, where in enumerate(STOPPED):
            work, queued, after = range(3 * number + 1, 3 * number + 4)
            page.run_cell(work)
            page.run_cell(queued)
            approve = page.page.get_by_role("button", name="Approve")
            if where == "review":
                approve.wait_for()
            else:
                shown = {"stream": "word word", "tool": "going\\n"}[where]
                page.until("([at, shown]) => JSON.stringify(panel.content.widgets[at].model.outputs).includes(shown)", arg=[work, shown])
            page.js("() => { window.jupyterapp.commands.execute('notebook:interrupt-kernel'); }")
            stopped = "at => panel.content.widgets[at].model.outputs.toJSON().some(output => output.ename === 'KeyboardInterrupt')"
            page.until(stopped, arg=work)
            page.wait_cell(queued)
            assert approve.count() == 0
            assert page.outputs(queued) == []
            page.run_cell(after)
            page.wait_cell(after)
            assert page.outputs(after)[0]["text"] == "after\n"
            page.save()
            turns = folded(lab.root / "stop.ipynb")["turns"]
            assert len(turns) == number + 1
            assert turns[-1]["end"] == {"kind": "aborted", "reason": {"kind": "user"}}


def test_screenshots_of_the_readme_are_there() -> None:
    """The README's pictures exist; they are made by running these tests with PLAN_MODE_NB_SCREENSHOTS=docs/images."""
    readme = Path(__file__).resolve().parents[2] / "README.md"
    named = re.findall(r"\((docs/images/[^)]+)\)", readme.read_text())
    assert named or os.environ.get("PLAN_MODE_NB_SCREENSHOTS")
    assert [name for name in named if not (readme.parent / name).is_file()] == []
