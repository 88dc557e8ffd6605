"""The cards in real JupyterLab, clicked and typed into as a person does (product.md, Cards)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cards_kernel import LONG, PLAN
from conftest import VIEWPORT
from driver import NotebookPage
from playwright.sync_api import Locator, expect

pytestmark = pytest.mark.browser

KINDS = ("review", "question", "approval", "controls")


class Shown:
    """``shown(kind, content, how=...)``: a page with one new card, by ``show`` or, inside a turn, by ``ask``."""

    def __init__(self, page: NotebookPage) -> None:
        self.page = page
        assert page.run("from cards_kernel import *; acts.clear()") == ""

    def __call__(self, kind: str, content: str = "", *, how: str = "show") -> tuple[NotebookPage, Locator]:
        self.page.run_cell(0, f"{how}({kind!r}, {content})")
        if how == "show":
            self.page.wait_cell(0)
        card = self.page.page.locator(f".pmnb-card[data-kind={kind}]")
        card.wait_for()
        expect(status(card)).to_have_text("Working…" if kind == "controls" else "Waiting for you.")
        return self.page, card


@pytest.fixture
def shown(shared: NotebookPage) -> Shown:
    shared.command("notebook:clear-all-cell-outputs")
    return Shown(shared)


def acts(page: NotebookPage, count: int) -> list[dict[str, Any]]:
    """What the card has sent, once it is ``count`` acts."""
    return list(page.value_until("acts", lambda sent: len(sent) >= count))


def button(card: Locator, name: str) -> Locator:
    return card.get_by_role("button", name=name, exact=True)


def box(card: Locator, name: str) -> Locator:
    return card.get_by_role("textbox", name=name, exact=True)


def status(card: Locator) -> Locator:
    return card.get_by_role("status")


# -- review


def test_approve_sends_one_answer_and_locks_the_card_until_its_state_changes(shown: Shown) -> None:
    page, card = shown("review")
    expect(card.get_by_role("heading", level=3)).to_have_text("Clean up the sales table")
    expect(status(card)).to_have_text("Waiting for you.")
    button(card, "Approve").dblclick()
    expect(status(card)).to_have_text("Sent…")
    button(card, "Discuss").click(force=True)
    assert acts(page, 1) == [{"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Approve"]}]}]
    page.run("cards['review'].state = 'approved'")
    expect(status(card)).to_have_text("Approved. The agent carries the plan out from the next step.")
    expect(card.locator(".pmnb-state")).to_have_text("approved")
    expect(card.get_by_role("region", name="Plan")).to_contain_text("Nothing is written to disk")


def test_a_click_on_a_decided_card_only_says_that_it_is_over(shown: Shown) -> None:
    page, card = shown("review")
    page.run("cards['review'].state = 'interrupted'")
    expect(status(card)).to_have_text("Interrupted; nothing was decided.")
    for name in ("Approve", "Keep planning", "Discuss"):
        button(card, name).click(force=True)
        expect(status(card)).to_have_text("This review is over.")
    assert acts(page, 0) == []


def test_words_disable_approve_make_keep_planning_primary_and_travel_whole(shown: Shown) -> None:
    page, card = shown("review", how="ask", content="state='keep planning'")
    words = "  please add tests first:\n – 「計画」 & <b>\n"
    box(card, "Feedback").press_sequentially(words)
    expect(button(card, "Approve")).to_be_disabled()
    expect(button(card, "Keep planning")).to_have_class(re.compile("pmnb-primary"))
    button(card, "Approve").click(force=True)
    expect(status(card)).to_have_text("Words never approve: send them with Keep planning.")
    button(card, "Keep planning").click()
    page.wait_cell(0)
    assert acts(page, 1) == [{"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Keep planning"], "custom": words}]}]
    expect(status(card)).to_have_text("Keep planning: the agent goes on planning.")
    expect(box(card, "Feedback")).to_have_value(words)


def test_text_typed_and_then_clicked_at_once_arrives_whole(shown: Shown) -> None:
    page, _ = shown("review", how="ask")
    # Without any time in between, where throttled state updates were measured to lose the words.
    page.js(
        """() => {
          const card = document.querySelector('.pmnb-card'), box = card.querySelector('textarea');
          for (const char of 'do not delete the data') { box.value += char; box.dispatchEvent(new InputEvent('input', { bubbles: true })); }
          [...card.querySelectorAll('button')].find(button => button.textContent === 'Keep planning').click();
        }"""
    )
    page.wait_cell(0)
    assert acts(page, 1)[0]["answers"][0]["custom"] == "do not delete the data"


def test_blank_words_are_no_words(shown: Shown) -> None:
    page, card = shown("review")
    box(card, "Feedback").fill(" \n ")
    expect(button(card, "Approve")).to_be_enabled()
    button(card, "Keep planning").click()
    assert acts(page, 1) == [{"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Keep planning"]}]}]


def test_discuss_dismisses(shown: Shown) -> None:
    page, card = shown("review", how="ask", content="state='dismissed'")
    button(card, "Discuss").click()
    page.wait_cell(0)
    assert acts(page, 1) == [{"kind": "dismiss"}]


def test_the_buttons_stay_on_the_screen_however_long_the_plan(shown: Shown, shots: Path) -> None:
    """All of 5,000 lines can be read, and decided about, on a small and on a narrow screen, in light and dark."""
    assert len(LONG.splitlines()) == 5_000
    page, card = shown("review", "html=to_html(LONG), markdown=LONG, title='A long plan', note='The second of two.', diff_html='<p>+</p>'")
    plan = card.get_by_role("region", name="Plan")
    last = plan.get_by_text("The last line of 5,000.")
    page.command("application:toggle-left-area")
    try:
        for theme, width in (("light", 800), ("light", 400), ("dark", 400), ("dark", 800)):
            page.theme(theme)
            page.page.set_viewport_size({"width": width, "height": 720})
            card.scroll_into_view_if_needed()
            for name in ("Approve", "Keep planning", "Discuss", "Save plan"):
                expect(button(card, name)).to_be_in_viewport(ratio=1)
            expect(box(card, "Feedback")).to_be_in_viewport(ratio=1)
            plan.evaluate("plan => { plan.scrollTop = 0; }")
            expect(last).not_to_be_in_viewport()
            plan.press("End")
            expect(last).to_be_in_viewport()
            expect(button(card, "Approve")).to_be_in_viewport(ratio=1)
            page.page.screenshot(path=shots / f"review-long-{width}-{theme}.png")
        button(card, "Approve").press("Enter")
        assert [act["kind"] for act in acts(page, 1)] == ["answer"]
    finally:
        page.page.set_viewport_size(VIEWPORT)
        page.theme("light")
        page.command("application:toggle-left-area")


def test_changes_show_from_the_second_submission_on(shown: Shown) -> None:
    page, card = shown("review")
    expect(button(card, "Changes")).to_be_hidden()
    page.run("cards['review'].diff_html = '<p><ins>+ now with tests</ins></p>'")
    button(card, "Changes").click()
    expect(card.get_by_role("region", name="Changes")).to_have_text("+ now with tests")
    expect(button(card, "Changes")).to_have_attribute("aria-pressed", "true")
    button(card, "Plan").click()
    expect(card.get_by_role("region", name="Plan")).to_contain_text("Rebuild the join")


def test_save_plan_downloads_the_exact_bytes_before_and_after_the_decision(shown: Shown) -> None:
    page, card = shown("review", "markdown='\\ufeff# 計画\\r\\n\\r\\n\\tx \\u202e😀\\n', title='計画: a/b?'")
    for state in ("waiting", "approved"):
        page.run(f"cards['review'].state = {state!r}")
        with page.page.expect_download() as download:
            button(card, "Save plan").click()
        assert download.value.suggested_filename == "計画-a-b.md"
        assert Path(download.value.path()).read_bytes() == "\ufeff# 計画\r\n\r\n\tx \u202e😀\n".encode()


# -- keys


def test_keys_typed_in_the_feedback_box_stay_there_and_decide_nothing(shown: Shown) -> None:
    page, card = shown("review")
    cells = "() => panel.content.widgets.length"
    assert page.js(cells) == 2
    feedback = box(card, "Feedback")
    feedback.click()
    for key in ("d", "d", "a", "b", "x", "m", "Enter", "Shift+Enter", "1", "z", "0", "0", " "):
        page.page.keyboard.press(key)
    expect(feedback).to_have_value("ddabxm\n\n1z00 ")
    for key in ("Escape", "Control+Enter", "Alt+Enter"):
        page.page.keyboard.press(key)
    expect(feedback).to_be_focused()
    assert page.js(cells) == 2
    assert acts(page, 0) == []


def test_keys_on_a_button_are_the_buttons_and_typing_elsewhere_decides_nothing(shown: Shown) -> None:
    page, card = shown("review")
    page.page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
    page.page.keyboard.type("Approve yes\n")
    page.page.keyboard.press("Escape")
    expect(status(card)).to_have_text("Waiting for you.")
    assert acts(page, 0) == []
    button(card, "Keep planning").focus()
    page.page.keyboard.press("d")
    page.page.keyboard.press("d")
    assert page.js("() => panel.content.widgets.length") == 2
    page.page.keyboard.press("Enter")
    assert [act["kind"] for act in acts(page, 1)] == ["answer"]


def test_the_notebook_is_saved_by_its_shortcut_from_within_a_card(shown: Shown) -> None:
    page, card = shown("review")
    box(card, "Feedback").click()
    page.until("() => panel.context.model.dirty")
    page.page.keyboard.press("Control+s")
    page.until("() => !panel.context.model.dirty")
    assert page.file()["cells"][0]["outputs"] != []


def test_a_review_is_reached_and_decided_by_keyboard_alone(shown: Shown) -> None:
    page, card = shown("review")
    card.get_by_role("region", name="Plan").focus()
    order = []
    for _ in range(5):
        page.page.keyboard.press("Tab")
        order.append(page.js("() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"))
    assert order == ["Feedback", "Discuss", "Save plan", "Keep planning", "Approve"]
    page.page.keyboard.press(" ")
    assert acts(page, 1)[0]["answers"][0]["selected"] == ["Approve"]


COMPOSE = """name => {
  const box = [...document.querySelectorAll('.pmnb-card textarea')].find(box => box.getAttribute('aria-label') === name);
  box.focus();
  const enter = { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true };
  const key = (type, more) => box.dispatchEvent(new KeyboardEvent(type, { ...enter, ...more }));
  box.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
  box.value = 'にほんご';
  box.dispatchEvent(new InputEvent('input', { bubbles: true, isComposing: true }));
  key('keydown', { isComposing: true });
  box.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true, data: '日本語' }));
  key('keydown', { isComposing: false });
  key('keyup', {});
}"""


@pytest.mark.parametrize(("kind", "name"), [("review", "Feedback"), ("controls", "Steer"), ("question", "Your answer")])
def test_enter_that_ends_a_composition_sends_nothing(shown: Shown, kind: str, name: str) -> None:
    page, card = shown(kind)
    page.js(COMPOSE, name)
    expect(box(card, name)).to_have_value("にほんご")
    assert acts(page, 0) == []


# -- questions


def test_questions_are_answered_together_with_labels_and_own_words(shown: Shown) -> None:
    page, card = shown("question", how="ask")
    send = button(card, "Send answers")
    card.get_by_label("polars").check()
    send.click()
    expect(status(card)).to_have_text("Question 2 has no answer yet.")
    expect(card.get_by_label("row counts")).to_be_focused()
    card.get_by_label("row counts").check()
    card.get_by_label("duplicate keys").check()
    box(card, "Your own answer").nth(1).fill("a plot, too")
    box(card, "Your answer").press_sequentially("region_fixed")
    send.click()
    page.wait_cell(0)
    answers = [
        {"id": "engine", "selected": ["polars"]},
        {"id": "checks", "selected": ["row counts", "duplicate keys"], "custom": "a plot, too"},
        {"id": "name", "selected": [], "custom": "region_fixed"},
    ]
    assert acts(page, 1) == [{"kind": "answer", "answers": answers}]
    expect(status(card)).to_have_text("Answered.")
    expect(card.get_by_label("row counts")).to_be_disabled()


def test_own_words_replace_the_single_choice_while_theirs_is_chosen(shown: Shown) -> None:
    page, card = shown("question", "questions=QUESTIONS[:1]")
    send = button(card, "Send answer")
    card.get_by_label("pandas").check()
    box(card, "Your own answer").fill("duckdb")
    expect(card.get_by_label("pandas")).not_to_be_checked()
    send.click()
    assert acts(page, 1)[0]["answers"] == [{"id": "engine", "selected": [], "custom": "duckdb"}]


def test_a_choice_made_after_own_words_is_the_answer(shown: Shown) -> None:
    page, card = shown("question", "questions=QUESTIONS[:1]")
    box(card, "Your own answer").fill("duckdb")
    card.get_by_label("pandas").check()
    button(card, "Send answer").click()
    assert acts(page, 1)[0]["answers"] == [{"id": "engine", "selected": ["pandas"]}]


def test_a_question_can_be_dismissed(shown: Shown) -> None:
    page, card = shown("question", how="ask", content="state='dismissed'")
    button(card, "Dismiss").click()
    page.wait_cell(0)
    assert acts(page, 1) == [{"kind": "dismiss"}]


# -- approval


def test_an_approval_shows_the_tool_and_exactly_what_would_run(shown: Shown) -> None:
    hidden = "open('x')\\u202e # \\x1b[2K\\nrm()"
    _, card = shown("approval", f"preview={hidden!r}.encode().decode('unicode_escape')")
    expect(card).to_contain_text("python")
    expect(card.get_by_role("region", name="What would run")).to_have_text("open('x')⟦U+202E⟧ # ␛[2K\nrm()", use_inner_text=True)
    expect(card).to_contain_text("2 lines")


@pytest.mark.parametrize(
    ("name", "state", "said"),
    [("Allow once", "allowed", "Allowed once."), ("Reject", "rejected", "Rejected: it does not run.")],
)
def test_an_approval_sends_the_label(shown: Shown, name: str, state: str, said: str) -> None:
    page, card = shown("approval", how="ask", content=f"state={state!r}")
    button(card, name).click()
    page.wait_cell(0)
    assert acts(page, 1) == [{"kind": "answer", "answers": [{"id": "approval", "selected": [name]}]}]
    expect(status(card)).to_have_text(said)


# -- controls


def test_controls_stop_once(shown: Shown) -> None:
    page, card = shown("controls")
    button(card, "Stop").dblclick()
    expect(status(card)).to_have_text("Stopping…")
    assert acts(page, 1) == [{"kind": "stop"}]
    page.run("cards['controls'].state = 'over'")
    button(card, "Stop").click(force=True)
    expect(status(card)).to_have_text("This turn is over.")


def test_the_plan_switch_shows_the_target_and_that_it_waits_for_the_next_step(shown: Shown) -> None:
    page, card = shown("controls")
    switch = card.get_by_role("switch", name="Plan mode", exact=True)
    expect(switch).to_be_checked()
    switch.click()
    expect(switch).not_to_be_checked()
    expect(card).to_contain_text("from the next step")
    switch.click()
    expect(switch).to_be_checked()
    assert acts(page, 2) == [{"kind": "plan", "active": False}, {"kind": "plan", "active": True}]
    page.run("cards['controls'].plan = {'active': False, 'pending': True}")
    expect(switch).to_be_checked()
    expect(card).to_contain_text("from the next step")
    page.run("cards['controls'].plan = {'active': False, 'pending': None}")
    expect(switch).not_to_be_checked()
    expect(card).not_to_contain_text("from the next step")


def test_enter_steers_shift_enter_is_a_line_and_the_box_is_cleared(shown: Shown) -> None:
    page, card = shown("controls")
    steer = box(card, "Steer")
    steer.press_sequentially("use polars")
    steer.press("Shift+Enter")
    steer.press_sequentially("please")
    steer.press("Enter")
    expect(steer).to_have_value("")
    expect(status(card)).to_have_text("Sent: it joins the next step.")
    steer.press("Enter")
    steer.fill("and a plot")
    button(card, "Steer").click()
    assert acts(page, 2) == [{"kind": "steer", "text": "use polars\nplease"}, {"kind": "steer", "text": "and a plot"}]


def test_while_python_holds_the_kernel_the_card_says_what_acts(shown: Shown) -> None:
    page, card = shown("controls")
    expect(status(card)).to_have_text("Working…")
    page.run("cards['controls'].busy = True")
    expect(status(card)).to_have_text("Only the kernel’s stop button acts while Python runs.")
    page.run("cards['controls'].busy = False")
    expect(status(card)).to_have_text("Working…")


# -- all of them

CONTRAST = """root => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const paint = (under, color, opacity = 1) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.globalAlpha = opacity; canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); canvas.globalAlpha = 1;
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgb(${r},${g},${b})`;
  };
  const ground = element => {
    const below = element.parentElement ? ground(element.parentElement) : 'white';
    return paint(below, getComputedStyle(element).backgroundColor);
  };
  const light = color => {
    const [r, g, b] = color.match(/\\d+/g).map(n => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  for (const element of root.querySelectorAll('*')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    const hint = element.placeholder && !element.value;
    if (!(own || hint) || !element.checkVisibility() || element.closest('[aria-disabled=true], .highlight, pre')) continue;
    const { color, opacity } = getComputedStyle(element, hint ? '::placeholder' : null);
    const under = ground(element), ink = paint(under, color, hint ? Number(opacity) : 1);
    const [a, b] = [light(under), light(ink)].sort();
    const ratio = (b + 0.05) / (a + 0.05);
    if (ratio < 4.5) poor.push(`${element.className || element.tagName} ${element.textContent.slice(0, 20)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_card_is_readable_in_both_themes(shown: Shown, theme: Any, shots: Path) -> None:
    page = shown.page
    page.theme(theme)
    page.run("from plan_mode_nb.render.diff import plan_diff_html; changes = plan_diff_html(PLAN, PLAN.replace('repair', 'mend'))")
    try:
        for kind in KINDS:
            _, card = shown(kind, "diff_html=changes")
            assert card.evaluate(CONTRAST) == []
            page.page.screenshot(path=shots / f"{kind}-{theme}.png")
            if kind == "review":
                button(card, "Changes").click()
                expect(card.get_by_role("region", name="Changes")).to_contain_text("mend")
                assert card.evaluate(CONTRAST) == []
                page.page.screenshot(path=shots / f"changes-{theme}.png")
    finally:
        page.theme("light")


def test_a_card_is_live_again_after_a_page_reload(shown: Shown) -> None:
    page, card = shown("review", how="ask")
    page.save()
    page.reload()
    card.wait_for()
    expect(status(card)).to_have_text("Waiting for you.")
    button(card, "Approve").click()
    assert acts(page, 1)[0]["kind"] == "answer"


def test_a_card_whose_kernel_is_gone_says_so(shown: Shown) -> None:
    page, card = shown("review")
    page.restart()
    button(card, "Approve").click()
    expect(status(card)).to_have_text("This review is over: its kernel is gone.")


def test_two_views_of_one_card_lock_together(shown: Shown) -> None:
    page, card = shown("review")
    page.run_cell(1, "display(cards['review'])")
    page.wait_cell(1)
    expect(card).to_have_count(2)
    button(card.nth(0), "Approve").click()
    expect(status(card.nth(1))).to_have_text("Sent…")
    button(card.nth(1), "Keep planning").click(force=True)
    assert len(acts(page, 1)) == 1


def test_nothing_is_reported_by_the_page(shown: Shown) -> None:
    page, card = shown("review")
    button(card, "Approve").click()
    acts(page, 1)
    assert PLAN.splitlines()[0].removeprefix("# ") in card.inner_text()
    assert [line for line in page.console if line.startswith("error") and "card" in line.lower()] == []
