"""One server and one browser for all tests of this folder; a notebook of its own for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driver import JupyterServer, NotebookPage, chromium
from playwright.sync_api import Browser, BrowserContext, sync_playwright

Open = Callable[..., NotebookPage]


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


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    yield context
    context.close()


@pytest.fixture
def notebook(server: JupyterServer, context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Open]:
    """``notebook(*sources, metadata=None)`` opens a new notebook; ``notebook(name=...)`` a written one, again."""
    opened: list[NotebookPage] = []
    stem = "".join(char if char.isalnum() else "-" for char in request.node.name)

    def open_notebook(*sources: str, metadata: dict[str, Any] | None = None, name: str | None = None) -> NotebookPage:
        if name is None:
            name = f"{stem}-{len(opened)}.ipynb"
            server.write(name, *sources, metadata=metadata)
        opened.append(NotebookPage(context, server, name))
        return opened[-1]

    yield open_notebook
    for page in opened:
        if not page.page.is_closed():
            page.close()


@pytest.fixture(scope="module")
def shared(server: JupyterServer, browser: Browser) -> Iterator[NotebookPage]:
    """One notebook of two cells for a module's tests; what a test shows in it replaces what the one before showed."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    server.write("shared.ipynb", "", "2 + 2")
    page = NotebookPage(context, server, "shared.ipynb")
    yield page
    page.close()
    context.close()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go: the folder that PLAN_MODE_NB_SCREENSHOTS names, else the test's own."""
    folder = Path(os.environ.get("PLAN_MODE_NB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
