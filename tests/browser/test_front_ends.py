"""The same lab extension and cards in Jupyter Notebook."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from applications import JupyterServer
from driver import NotebookPage
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser, server: JupyterServer) -> Iterator[NotebookPage]:
    server.write("app.ipynb")
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = NotebookPage(context, server, "app.ipynb", app="notebook")
    yield page
    page.close()
    context.close()


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
