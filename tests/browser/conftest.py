"""One server and one browser for all tests of this folder; a notebook of its own for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from applications import JupyterServer, chromium
from driver import WAIT_MS, NotebookPage
from playwright.sync_api import Browser, BrowserContext, ViewportSize, expect, sync_playwright

expect.set_options(timeout=WAIT_MS)
Open = Callable[..., NotebookPage]
VIEWPORT: ViewportSize = {"width": 1300, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several of these deadlines fit into one test, on a machine that does other things meanwhile."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What the pages showed when a test failed."""
    report = yield
    if report.failed:
        for page in NotebookPage.opened:
            if not page.page.is_closed():
                report.sections.append((f"page {page.name}", page.story()))
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = chromium(playwright)
        except FileNotFoundError as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"the browser tests must run here, but there is {error}")
            pytest.skip(f"there is {error}")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    server = JupyterServer(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def lab_page(server: JupyterServer, browser: Browser) -> Iterator[NotebookPage]:
    """The page in which the notebooks below are opened, one after another."""
    context = browser.new_context(viewport=VIEWPORT)
    server.write("first.ipynb")
    page = NotebookPage(context, server, "first.ipynb")
    yield page
    context.close()


@pytest.fixture
def notebook(server: JupyterServer, lab_page: NotebookPage, request: pytest.FixtureRequest) -> Open:
    """``notebook(*sources, metadata=None, own_kernel=False)`` opens a new notebook in the shared page, as its only one."""
    stem = "".join(char if char.isalnum() else "-" for char in request.node.name)
    count = itertools.count()

    def open_notebook(*sources: str, metadata: dict[str, Any] | None = None, own_kernel: bool = False) -> NotebookPage:
        name = f"{stem}-{next(count)}.ipynb"
        server.write(name, *sources, metadata=metadata)
        lab_page.show(name, own_kernel=own_kernel)
        assert lab_page.run("import carrier_kernel; carrier_kernel.forget()") == ""
        return lab_page

    return open_notebook


@pytest.fixture
def window(server: JupyterServer, browser: Browser) -> Iterator[Callable[[str], NotebookPage]]:
    """``window(name)`` opens a written notebook in a page of its own."""
    contexts: list[BrowserContext] = []

    def open_window(name: str) -> NotebookPage:
        contexts.append(browser.new_context(viewport=VIEWPORT))
        return NotebookPage(contexts[-1], server, name)

    yield open_window
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def shared(server: JupyterServer, lab_page: NotebookPage, request: pytest.FixtureRequest) -> NotebookPage:
    """One notebook of two cells for a module's tests; what a test shows in it replaces what the one before showed."""
    name = f"{request.module.__name__}.ipynb"
    server.write(name, "", "2 + 2")
    lab_page.show(name)
    return lab_page


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go: the folder that PLAN_MODE_NB_SCREENSHOTS names, else the test's own."""
    folder = Path(os.environ.get("PLAN_MODE_NB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
