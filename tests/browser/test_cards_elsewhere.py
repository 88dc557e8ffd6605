"""The cards' front end in a page that gives it nothing: no theme of JupyterLab or VS Code, only the system's colours."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from cards_kernel import PLAN, PREVIEW, QUESTIONS, REVIEW
from playwright.sync_api import Browser
from test_cards import CONTRAST

from plan_mode_nb.hosts.kernel.cards.card import Card
from plan_mode_nb.render.markdown import to_html

pytestmark = pytest.mark.browser

CARDS = [
    Card("controls", on_act=print, plan={"active": True, "pending": False}),
    Card("review", on_act=print, title="Clean up", html=to_html(PLAN), markdown=PLAN, questions=REVIEW, diff_html="<ins>x</ins>"),
    Card("question", on_act=print, title="Before I go on", questions=QUESTIONS),
    Card("approval", on_act=print, tool="python", preview=PREVIEW, reason="This call changes a file."),
    Card("review", on_act=print, title="Clean up", html=to_html(PLAN), markdown=PLAN, state="approved"),
]
RENDER = """async ([source, cards]) => {
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  const { default: widget } = await import(url);
  for (const traits of cards) {
    const model = { get: name => traits[name], set() {}, send() {}, on() {}, off() {} };
    const el = document.body.appendChild(document.createElement('div'));
    widget.render({ model, el });
  }
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_card_is_readable_with_the_systems_colours(browser: Browser, scheme: Literal["light", "dark"], shots: Path) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 700, "height": 900})
    style = f"<style>{CARDS[0]._css} :root {{ color-scheme: light dark; }} body {{ font: 14px sans-serif; }}</style>"
    page.set_content(f"<!doctype html>{style}<body></body>")
    traits = [{name: value for name, value in card.get_state().items() if not name.startswith("_")} for card in CARDS]
    page.evaluate(RENDER, [str(CARDS[0]._esm), traits])
    cards = page.locator(".pmnb-card")
    assert cards.count() == len(CARDS)
    assert [cards.nth(i).evaluate(CONTRAST) for i in range(len(CARDS))] == [[]] * len(CARDS)
    page.screenshot(path=shots / f"elsewhere-{scheme}.png", full_page=True)
    page.close()
