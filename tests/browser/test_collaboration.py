"""Two browsers on one notebook with jupyter-collaboration: one document, one log, and an append that costs what it adds.

``pip install 'jupyter-collaboration>=5,<6'`` beside the test environment has these run, and print what an append costs.
PLAN_MODE_NB_MEGABYTES says how long the log is.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from applications import JupyterServer
from conftest import VIEWPORT
from driver import NotebookPage
from playwright.sync_api import Browser, BrowserContext, WebSocket, expect

from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.store.notebook import load_document, save_document
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.loopback import LoopbackServer

pytest.importorskip("jupyter_collaboration", reason="jupyter-collaboration is not installed here")
pytestmark = pytest.mark.browser
MEGABYTES = float(os.environ.get("PLAN_MODE_NB_MEGABYTES", "10"))
WAIT = 120_000
LINES = "get_ipython()._plan_mode_nb[0].agent().session.lines"
# The log itself is more than a server lets a cell print.
TOLD = f"(lambda lines: [len(lines), __import__('hashlib').sha256(''.join(lines).encode()).hexdigest()])({LINES})"
APPENDS = 20
_TIMED = """() => {
  const model = panel.context.model.sharedModel, { transact } = model, taken = (window.taken = []);
  model.transact = (write, undoable, origin) => {
    const before = performance.now();
    transact.call(model, write, undoable, origin);
    if (undoable === false) taken.push(performance.now() - before);
  };
}"""
"""Notes how long the page is busy with writing each append into the document, everything included that listens to it."""


@pytest.fixture(scope="module")
def model() -> Iterator[LoopbackServer]:
    server = LoopbackServer().start()
    yield server
    server.close()


@pytest.fixture(params=["together", "alone"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, model: LoopbackServer) -> Iterator[JupyterServer]:
    """JupyterLab with collaboration, and the same with it switched off."""
    settings = {"PlanMode": {"section": "Plan first."}, "PlanAgent": {"model": "openai-chat:scripted"}}
    (tmp_path / "plan_mode_nb.json").write_text(json.dumps(settings))
    options = [f"--YDocExtension.disable_rtc={request.param == 'alone'}", f"--SQLiteYStore.db_path={tmp_path / 'documents.db'}"]
    environment = {"JUPYTER_CONFIG_PATH": str(tmp_path), "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
    server = JupyterServer(tmp_path / "lab", options=options, **environment)
    yield server
    server.stop()


class Sent:
    """What the pages of one browser sent into shared documents, in bytes a message."""

    def __init__(self, context: BrowserContext) -> None:
        self.sizes: list[int] = []
        context.on("page", lambda page: page.on("websocket", self._watch))

    def _watch(self, socket: WebSocket) -> None:
        if "/collaboration/room/json:notebook:" in socket.url:
            socket.on("framesent", lambda frame: self.sizes.append(len(frame)))


def conversation(megabytes: float) -> Document:
    """A log of about that size."""
    session = logs.new_session("long")
    turn, size = 0, 0
    while size < megabytes * 1_000_000:
        turn += 1
        before = len(session)
        session.append(logs.turn_start(turn), logs.step_start(turn, 1), logs.user(f"question {turn} " + "y" * 300, id=f"u{turn}"))
        session.append(logs.assistant(turn, 1, "An answer. " * 80, id=f"a{turn}"), logs.step_end(turn, 1), logs.turn_end(turn))
        size += sum(map(len, session.lines[before:]))
    return one_session(StoredSession(session.header, list(session.lines)), agent="main")


def told(lines: Sequence[str]) -> list[Any]:
    """How many, and their hash."""
    return [len(lines), sha256("".join(lines).encode()).hexdigest()]


def held(page: NotebookPage) -> list[str]:
    chunks = [(key, value) for key, value in page.metadata().items() if key.startswith("plan_mode_nb/long/")]
    return [line for _, lines in sorted(chunks) for line in lines]


def test_two_browsers_and_a_long_log_are_one_conversation(browser: Browser, lab: JupyterServer, model: LoopbackServer) -> None:
    """Both see the chip and can leave; whoever runs the cell writes; nothing is doubled, and an append sends kilobytes."""
    name = "together.ipynb"
    save_document(lab.write(name, "%load_ext plan_mode_nb", "", ""), conversation(MEGABYTES))
    one, other = browser.new_context(viewport=VIEWPORT), browser.new_context(viewport=VIEWPORT)
    sent = Sent(one)
    page = NotebookPage(one, lab, name)
    page.run_cell(0)
    page.wait_cell(0, WAIT)
    answered(model, page, "%agent go on")
    together = bool(sent.sizes)
    figures = measured(page, sent)
    print(f"\n{MEGABYTES} MB, {'with' if together else 'without'} collaboration: {json.dumps(figures)}")
    if together:
        assert figures["most_bytes_sent"] < 100_000
        mate = NotebookPage(other, lab, name)
        both(model, page, mate)
    page.js("() => panel.context.save()")
    assert list(load_document(lab.root / name).sessions) == ["long"]
    assert told(load_document(lab.root / name).sessions["long"].lines) == page.value(TOLD)
    for context in (one, other):
        context.close()


def answered(model: LoopbackServer, page: NotebookPage, code: str) -> None:
    """One turn in a cell, to its end."""
    model.add([say("Answer."), usage(1, 1)])
    page.run_cell(1, code)
    page.wait_cell(1, WAIT)


def measured(page: NotebookPage, sent: Sent) -> dict[str, Any]:
    """What so many appends of a plan selection cost."""
    page.js(_TIMED)
    before = len(sent.sizes)
    for number in range(APPENDS):
        page.run("%plan off" if number % 2 else "%plan")
        page.until("count => window.taken.length > count", WAIT, number)
    taken = sorted(page.js("() => window.taken"))
    sizes = sent.sizes[before:]
    return {
        "appends": len(taken),
        "median_ms": round(statistics.median(taken), 2),
        "most_ms": round(taken[-1], 2),
        "most_bytes_sent": max(sizes, default=0),
        "events": page.value(f"len({LINES})"),
    }


def both(model: LoopbackServer, page: NotebookPage, mate: NotebookPage) -> None:
    """Two browsers, one after the other."""
    page.run("%plan")
    for each in (page, mate):
        expect(each.chip).to_have_text("Plan ×")
    mate.chip.click()
    for each in (page, mate):
        expect(each.chip).to_be_hidden()
    answered(model, page, "%agent from the first browser")
    answered(model, mate, "%agent from the second browser")
    wanted = mate.value(TOLD)
    for each in (page, mate):
        each.until(
            """wanted => Object.entries(panel.context.model.toJSON().metadata).filter(([key]) => key.startsWith('plan_mode_nb/long/'))
              .reduce((sum, [, lines]) => sum + lines.length, 0) === wanted""",
            WAIT,
            wanted[0],
        )
        assert told(held(each)) == wanted
    assert (page.ours(), mate.ours()) == ([], [])
