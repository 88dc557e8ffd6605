"""The same lab extension and cards in Jupyter Notebook, and in the oldest JupyterLab and Notebook that are supported."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from applications import App, JupyterServer
from driver import NotebookPage
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser

OLDEST = "PLAN_MODE_NB_LAB_44"
"""Names a Python with JupyterLab 4.4.0 and Notebook 7.4.0; CI builds it."""


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    python = os.environ.get(OLDEST)
    if python is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the oldest front ends must be tried here, but {OLDEST} names no Python")
        pytest.skip(f"{OLDEST} names no Python with the oldest front ends")
    server = JupyterServer(tmp_path_factory.mktemp("oldest"), python=python)
    yield server
    server.stop()


@pytest.fixture(scope="module", params=["notebook", "oldest notebook", "oldest lab"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[NotebookPage]:
    server: JupyterServer = request.getfixturevalue("oldest" if request.param.startswith("oldest") else "server")
    app: App = "lab" if request.param.endswith("lab") else "notebook"
    server.write(f"{request.param}.ipynb")
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = NotebookPage(context, server, f"{request.param}.ipynb", app)
    yield page
    page.close()
    context.close()


def test_the_versions_are_those_that_are_supported(page: NotebookPage) -> None:
    version = page.js("() => window.jupyterapp.version")
    assert page.name.startswith("oldest") == (version in ("4.4.0", "7.4.0")), version


def test_the_log_lands_in_the_metadata_and_the_chip_leaves_plan_mode(page: NotebookPage) -> None:
    page.run("from carrier_kernel import Link, plan_mode; link = Link()")
    page.run("n = link.append(plan_mode(0, True))")
    page.value_until("link.answer(n)", lambda answer: answer is not None and answer["length"] == 1)
    assert page.save()["metadata"]["plan_mode_nb/s1/0000000"] == page.value("link.lines")
    expect(page.chip).to_have_text("Plan ×")
    page.chip.click()
    expect(page.chip).to_be_hidden()
    page.page.locator(".jp-Notebook .jp-Cell").first.click()
    page.page.keyboard.press("Control+Alt+p")
    expect(page.chip).to_have_text("Plan ×")


def test_a_review_waits_in_a_running_cell_and_is_decided_by_a_click(page: NotebookPage) -> None:
    page.run("from cards_kernel import *")
    page.run_cell(0, "ask('review', 'approved')")
    card = page.page.locator(".pmnb-card")
    card.get_by_role("button", name="Approve", exact=True).click()
    page.wait_cell(0)
    expect(card.get_by_role("status")).to_have_text("Approved. The agent carries the plan out from the next step.")
    assert page.value("acts") == [{"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Approve"]}]}]
