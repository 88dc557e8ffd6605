"""The log reaches the notebook's file whatever happens to pages, kernels and names meanwhile: real JupyterLab, the real extension."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from applications import START_S, JupyterServer
from driver import WAIT_MS, NotebookPage
from playwright.sync_api import Browser

from plan_mode_nb.document.document import Document
from plan_mode_nb.hosts.cli.strip import strip_command
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.store.notebook import load_document
from plan_mode_nb.testing.faults import Slow
from plan_mode_nb.testing.loopback import LoopbackServer

pytestmark = pytest.mark.browser
LINES = "list(get_ipython()._plan_mode_nb[0].agent().session.lines)"
ID = "get_ipython()._plan_mode_nb[0].agent().session.id"


@pytest.fixture(scope="module")
def model() -> Iterator[LoopbackServer]:
    server = LoopbackServer().start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, model: LoopbackServer) -> Iterator[JupyterServer]:
    folder = tmp_path_factory.mktemp("carriers")
    (folder / "own").mkdir()
    settings = {"PlanMode": {"section": "Plan first."}, "PlanAgent": {"model": "openai-chat:scripted"}}
    (folder / "own" / "plan_mode_nb.json").write_text(json.dumps(settings))
    environment = {"JUPYTER_CONFIG_PATH": str(folder / "own"), "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
    server = JupyterServer(folder, **environment)
    yield server
    server.stop()


class Desk:
    """Pages on one server, and what the files hold."""

    def __init__(self, browser: Browser, lab: JupyterServer, model: LoopbackServer, kind: type[NotebookPage] = NotebookPage) -> None:
        self.browser, self.lab, self.model, self.kind = browser, lab, model, kind

    def open(self, name: str) -> NotebookPage:
        """The notebook in a window of its own."""
        if not (self.lab.root / name).exists():
            self.lab.write(name, "%load_ext plan_mode_nb", "", "")
        return self.kind(self.browser.new_context(viewport={"width": 1200, "height": 800}), self.lab, name)

    def turn(self, page: NotebookPage, code: str = "%agent go on", index: int = 1) -> None:
        """One turn in a cell, to its end."""
        self.model.add([say("Answer."), usage(1, 1)])
        page.run_cell(index, code)
        page.wait_cell(index)

    def slow_turn(self, page: NotebookPage, index: int = 1) -> None:
        """A turn that has begun to answer, and goes on answering."""
        count = len(self.model.requests)
        self.model.add([Slow(0.05), say("word " * 60), usage(1, 1)])
        page.run_cell(index, "%agent slowly")
        assert self.model.wait_for_requests(count + 1, WAIT_MS / 1000)

    def file(self, name: str) -> Document:
        document = load_document(self.lab.root / name)
        assert document.problems == ()
        return document

    def lines(self, name: str) -> dict[str, list[str]]:
        return {id: list(session.lines) for id, session in self.file(name).sessions.items()}


@pytest.fixture(scope="module")
def desk(browser: Browser, lab: JupyterServer, model: LoopbackServer) -> Desk:
    return Desk(browser, lab, model)


def held(page: NotebookPage, session: str) -> list[str]:
    """The lines of a session in the page's model."""
    chunks = [(key, value) for key, value in page.metadata().items() if key.startswith(f"plan_mode_nb/{session}/")]
    return [line for _, lines in sorted(chunks) for line in lines]


def ended(page: NotebookPage, session: str, turns: int) -> None:
    """Wait until the page's model holds the end of so many turns."""
    page.until(
        """([session, turns]) => Object.entries(panel.context.model.toJSON().metadata)
          .filter(([key]) => key.startsWith(`plan_mode_nb/${session}/`))
          .flatMap(([, lines]) => lines).filter(line => line.startsWith('{"type":"turn/end"')).length >= turns""",
        WAIT_MS,
        [session, turns],
    )


def test_one_page_through_everything_that_can_happen_to_it(desk: Desk) -> None:
    """Clear All Outputs, rename in mid-turn, reload in mid-turn, kernel restart without journals, `%session use`, strip."""
    page = desk.open("one.ipynb")
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page, "%plan one")
    session = page.value(ID)
    page.command("notebook:clear-all-cell-outputs")
    assert held(page, session) == page.value(LINES), "Clear All Outputs leaves the log"

    desk.slow_turn(page)
    page.js("() => panel.context.rename('two.ipynb')")
    page.wait_cell(1)
    ended(page, session, 2)
    page.name = "two.ipynb"
    page.save()
    assert not (desk.lab.root / "one.ipynb").exists()
    assert desk.lines("two.ipynb") == {session: page.value(LINES)}
    assert "the metadata of two.ipynb" in page.run("%session")

    desk.slow_turn(page)
    page.js("() => panel.context.save()")
    page.reload()
    ended(page, session, 3)
    assert held(page, session) == page.value(LINES), "what happened during the reload is there"
    page.save()

    for journal in desk.lab.runtime.rglob("*.journal"):
        journal.unlink()
    page.restart()
    page.run_cell(0)
    page.wait_cell(0)
    assert not page.dirty() or held(page, session) == desk.lines("two.ipynb")[session]
    desk.turn(page)
    assert page.value(ID) == session, "a kernel that finds no journal goes on from the notebook"
    ended(page, session, 4)

    page.run("%session new")
    desk.turn(page)
    second = page.value(ID)
    page.run(f"%session use {session}")
    page.until("session => panel.context.model.getMetadata('plan_mode_nb').agents.main === session", arg=session)
    page.save()
    page.save()
    assert desk.file("two.ipynb").agents == {"main": session}, "going back survives the next saves"
    assert desk.lines("two.ipynb").keys() == {session, second}

    strip_command(desk.lab.root / "two.ipynb", keep_folded=False)
    page.js("() => panel.context.revert()")
    desk.turn(page)
    texts = json.dumps(page.outputs(1))
    assert "a new one begins" in texts, texts
    third = page.value(ID)
    page.save()
    assert desk.lines("two.ipynb") == {third: page.value(LINES)}, "stripped sessions stay away from a live kernel"
    assert desk.file("two.ipynb").stripped == {session, second}
    assert page.ours() == []
    page.close()


def test_two_windows_and_a_console_make_one_log(desk: Desk) -> None:
    """The console speaks first, a second window is open, and the first one closes in mid-turn."""
    page = desk.open("windows.ipynb")
    desk.model.add([say("To the console."), usage(1, 1)])
    page.js(
        """code => { const other = panel.sessionContext.session.kernel.clone({ username: 'console', handleComms: false });
          other.requestExecute({ code, allow_stdin: true }); }""",
        "%load_ext plan_mode_nb\n%agent from the console",
    )
    page.until("() => !!panel.context.model.getMetadata('plan_mode_nb')?.agents.main")
    session = page.metadata()["plan_mode_nb"]["agents"]["main"]
    ended(page, session, 1)
    page.save()
    other = desk.open("windows.ipynb")
    desk.turn(page)
    ended(page, session, 2)
    page.save()
    desk.slow_turn(page)
    page.page.close()
    ended(other, session, 3)
    lines = other.value(LINES)
    assert held(other, session) == lines
    desk.turn(other)
    other.js("() => { panel.context.save(); }")
    other.page.get_by_role("button", name="Overwrite").click()  # the first window saved since this one was opened
    other.until("() => !panel.context.model.dirty")
    assert desk.lines("windows.ipynb") == {session: other.value(LINES)}, "one log, no fork"
    other.close()


def test_a_second_notebook_on_one_kernel_is_refused_and_a_duplicate_goes_its_own_way(desk: Desk) -> None:
    page = desk.open("first.ipynb")
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page)
    session = page.value(ID)
    page.save()
    before = page.value(LINES)
    desk.lab.write("second.ipynb")
    page.show("second.ipynb", beside=True)
    refused = page.run("%agent from another notebook")
    assert "This kernel keeps the conversation of first.ipynb" in refused, refused
    assert "second.ipynb" in refused
    assert page.value("1 + 1") == 2
    page.save()
    assert desk.lines("second.ipynb") == {}
    page.show("first.ipynb", beside=True)
    assert page.value(LINES) == before
    desk.turn(page)
    page.save()

    (desk.lab.root / "copy.ipynb").write_bytes((desk.lab.root / "first.ipynb").read_bytes())
    before = page.value(LINES)
    page.show("copy.ipynb", own_kernel=True, beside=True)
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page)
    assert page.value(ID) == session
    page.show("first.ipynb", beside=True)
    desk.turn(page)
    grown = page.value(LINES)
    page.show("copy.ipynb", beside=True)
    page.save()
    page.show("first.ipynb", beside=True)
    page.save()
    page.show("copy.ipynb", beside=True)
    page.save()
    original, duplicate = desk.lines("first.ipynb"), desk.lines("copy.ipynb")
    assert original == {session: grown}
    assert duplicate == {session: page.value(LINES)}
    common = len(before)
    assert original[session][:common] == duplicate[session][:common] == before
    assert original[session][-1] != duplicate[session][-1]
    page.page.context.close()


def test_a_notebook_that_is_restored_moved_copied_and_saved_as_another_keeps_its_log(desk: Desk) -> None:
    """A checkpoint is put back, the file is moved and copied in mid-turn, and Save As goes on in another file with another kernel."""
    page = desk.open("kept.ipynb")
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page, "%plan one")
    session = page.value(ID)
    page.js("() => panel.context.save().then(() => panel.context.createCheckpoint())")
    desk.turn(page)
    page.save()
    page.js("() => panel.context.restoreCheckpoint().then(() => panel.context.revert())")
    assert len(held(page, session)) < page.value(f"len({LINES})"), "the checkpoint knows less"
    page.save()
    assert desk.lines("kept.ipynb") == {session: page.value(LINES)}, "and takes nothing away"

    (desk.lab.root / "sub").mkdir()
    desk.slow_turn(page)
    contents = "const contents = window.jupyterapp.serviceManager.contents; return contents"
    page.js(f"() => {{ {contents}.rename('kept.ipynb', 'sub/kept.ipynb').then(() => contents.copy('sub/kept.ipynb', 'sub')); }}")
    page.wait_cell(1)
    ended(page, session, 3)
    page.until("() => panel.context.path === 'sub/kept.ipynb'")
    page.name = "sub/kept.ipynb"
    page.save()
    lines = page.value(LINES)
    assert desk.lines("sub/kept.ipynb") == {session: lines}
    (copied,) = desk.lines("sub/kept-Copy1.ipynb").values()
    assert copied == lines[: len(copied)]

    page.js("() => { window.jupyterapp.commands.execute('docmanager:save-as'); }")
    page.page.locator(".jp-Dialog input").fill("sub/another.ipynb")
    page.page.locator(".jp-Dialog .jp-mod-accept").click()
    page.until("() => window.panel?.context?.path === 'sub/another.ipynb'")
    page.wait_ready()
    page.name = "sub/another.ipynb"
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page)
    page.save()
    assert page.value(LINES)[: len(lines)] == lines
    assert desk.lines("sub/another.ipynb") == {session: page.value(LINES)}
    assert desk.lines("sub/kept.ipynb") == {session: lines}, "the first file is as it was"
    assert page.ours() == []
    page.close()


def test_a_kernel_that_shares_no_disk_has_the_whole_conversation_from_the_page(
    browser: Browser, tmp_path: Path, model: LoopbackServer
) -> None:
    """A second server, as a gateway is one, runs the kernel: log, images and the other agents come back from the notebook alone."""
    settings = {"PlanMode": {"section": "Plan first."}, "PlanAgent": {"model": "openai-chat:scripted"}}
    far = tmp_path / "far"
    far.mkdir()
    (far / "plan_mode_nb.json").write_text(json.dumps(settings))
    picture = far / "grey.png"
    picture.write_bytes((Path(__file__).parents[1] / "golden" / "grey.png").read_bytes())
    gateway = JupyterServer(far, "server", JUPYTER_CONFIG_PATH=str(far), OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none")
    here = JupyterServer(tmp_path / "here", options=[f"--GatewayClient.url={gateway.address}", "--GatewayClient.auth_token=t"])
    try:
        desk = Desk(browser, here, model, FarPage)
        page = desk.open("far.ipynb")
        _far_away(desk, page, gateway, picture)
        assert page.ours() == []
    finally:
        here.stop()
        gateway.stop()


class FarPage(NotebookPage):
    """A page whose kernel a gateway runs."""

    def connect(self) -> None:
        """A gateway may take several connections before one stands, and one may stand that nothing comes through: then as a person
        does it, by the menu's Reconnect."""
        self.js(
            """async deadline => {
              while (Date.now() < deadline) {
                const kernel = panel.sessionContext.session?.kernel;
                const answered = kernel?.requestKernelInfo().then(() => true, () => false);
                const late = new Promise(resolve => setTimeout(() => resolve(false), 10000));
                if (kernel && await Promise.race([answered, late])) return;
                await kernel?.reconnect().catch(() => {});
              }
              throw new Error('no connection to the kernel');
            }""",
            (time.time() + START_S) * 1000,
        )


def _far_away(desk: Desk, page: NotebookPage, gateway: JupyterServer, picture: Path) -> None:
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page, f"%%agent --image {picture}\nwhat is this?")
    desk.turn(page, "%%agent --as aide\nhello")
    main, aide = (page.value(f"get_ipython()._plan_mode_nb[0].agents.get({name!r}).session.id") for name in ("main", "aide"))
    page.run("%session new")
    desk.turn(page, "%plan another")
    page.run(f"%session use {main}")
    page.save()
    saved = desk.file("far.ipynb")
    base64 = b64encode(picture.read_bytes()).decode()
    assert list(saved.attachments.values()) == [base64]
    assert saved.agents == {"main": main, "aide": aide}
    assert len(saved.sessions) == 3
    assert not list(desk.lab.runtime.rglob("*.journal"))

    for journal in gateway.runtime.rglob("*.journal"):
        journal.unlink()
    page.js("() => panel.sessionContext.changeKernel({ name: 'python3' }).then(() => undefined)")
    page.connect()
    page.run_cell(0)
    page.wait_cell(0)
    desk.turn(page, "%agent and now?")
    assert base64 in json.dumps(desk.model.requests[-1].body), "the model is shown the image again"
    desk.turn(page, "%%agent --as aide\nand you?")
    assert "hello" in json.dumps(desk.model.requests[-1].body)
    page.save()
    grown = desk.file("far.ipynb")
    assert (grown.agents, grown.attachments, grown.sessions.keys()) == (saved.agents, saved.attachments, saved.sessions.keys())
    for id, session in saved.sessions.items():
        assert list(grown.sessions[id].lines[: len(session.lines)]) == list(session.lines)
    assert [len(grown.sessions[id].lines) > len(saved.sessions[id].lines) for id in (main, aide)] == [True, True]
    page.close()
