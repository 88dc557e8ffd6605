"""The lab extension in real JupyterLab: the log in notebook metadata, and the plan chip."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Open
from driver import NotebookPage
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

LOAD = "from carrier_kernel import Link, plan_mode, chained; link = Link()"


def loaded(notebook: Open, *sources: str, **more: Any) -> NotebookPage:
    page = notebook(*sources, **more)
    assert page.run(LOAD) == ""
    return page


def append(page: NotebookPage, code: str) -> dict[str, Any]:
    """Append by ``code`` and wait for the page's answer."""
    page.run(f"n = link.append({code})")
    answer = page.value_until("link.answer(n)", lambda value: value is not None)
    return {key: answer[key] for key in ("length", "want", "diverged") if key in answer}


def hellos(page: NotebookPage, count: int) -> list[dict[str, Any]]:
    """The hellos that the kernel has had, once they are ``count``."""
    return list(page.value_until("link.of('hello')", lambda hellos: len(hellos) >= count))


def test_the_log_lands_in_the_notebooks_metadata_and_in_the_saved_file(notebook: Open) -> None:
    page = loaded(notebook)
    assert append(page, 'plan_mode(0, True), \'{"é":"計😀"}\'') == {"length": 2}
    wanted = {
        "plan_mode_nb": {"format": 1, "agents": {"main": "s1"}, "sessions": {"s1": {"version": 0, "id": "s1"}}},
        "plan_mode_nb/s1/0000000": page.value("link.lines"),
    }
    assert wanted.items() <= page.metadata().items()
    assert wanted.items() <= page.save()["metadata"].items()
    assert page.ours() == []


def test_batches_continue_chunks_and_repeats_change_nothing(notebook: Open) -> None:
    page = loaded(notebook)
    page.run('big = [\'{"n":%d,"text":"%s"}\' % (i, \'😀\' * (37 * i % 900)) for i in range(150)]')
    assert append(page, "*big[:40]") == {"length": 40}
    assert append(page, "*big[40:]") == {"length": 150}
    before = page.metadata()
    assert append(page, "start=0, events=link.lines, prev=chained('s1', [])") == {"length": 150}
    assert page.metadata() == before
    chunks = [value for key, value in sorted(before.items()) if key.startswith("plan_mode_nb/s1/")]
    assert [line for chunk in chunks for line in chunk] == page.value("big")
    assert all(sum(map(len, chunk[:-1])) < 16_384 <= sum(map(len, chunk)) for chunk in chunks[:-1])


def test_a_gap_is_asked_for_and_a_difference_is_never_written_over(notebook: Open) -> None:
    page = loaded(notebook)
    append(page, "plan_mode(0, True)")
    before = page.metadata()
    assert append(page, "start=5, events=['{}']") == {"want": 1}
    assert append(page, "start=0, events=['{}']") == {"diverged": 0}
    assert append(page, "start=1, events=['{}'], prev='0' * 64") == {"diverged": 1}
    assert page.metadata() == before


def test_only_the_page_that_the_kernel_names_writes(notebook: Open) -> None:
    page = loaded(notebook)
    page.run("link.append(plan_mode(0, True), to='another page')")
    assert append(page, "start=0, events=[plan_mode(0, True)], prev=chained('s1', [])") == {"length": 1}
    assert [message["n"] for message in page.value("link.of('ack')")] == [2]


def test_a_page_reads_the_log_back_to_the_kernel_in_pages(notebook: Open) -> None:
    page = loaded(notebook)
    page.run("big = ['\"%s\"' % ('y' * 300_000) for i in range(5)]")
    append(page, "*big")
    got: list[str] = []
    while len(got) < 5:
        page.run(f"link.send(op='get', n={100 + len(got)}, to=link.home(), start={len(got)})")
        answer = page.value_until(f"link.answer({100 + len(got)})", lambda value: value is not None)
        assert (answer["path"], answer["session"], answer["length"]) == (page.name, "s1", 5)
        assert sum(map(len, answer["events"])) <= 1_000_000
        got += answer["events"]
    assert got == page.value("big")
    assert answer["index"]["agents"] == {"main": "s1"}


def test_a_page_that_is_reloaded_speaks_when_it_holds_a_log_or_hears_the_kernel_and_not_before(notebook: Open) -> None:
    page = notebook("1 + 1")
    # The kernel's log would get a warning for a message to a comm that is not there.
    page.run("from carrier_kernel import Warnings; seen = Warnings()")
    page.save()
    page.reload()
    assert page.value("[text for text in seen.texts if 'plan_mode_nb' in text]") == [], "without plan mode it sends nothing"
    assert not page.dirty(), "and stays clean"
    expect(page.chip).to_be_hidden()

    page.run(LOAD)
    first = hellos(page, 1)[0]
    assert (first["path"], first["session"], first["length"]) == (page.name, "", 0), "the kernel's hello is answered"
    page.save()
    page.reload()  # nothing in the metadata, so it stays silent
    page.run("link.plan(False)")
    second = hellos(page, 2)[1]
    assert first["from"] != second["from"] == page.value("link.home()"), "it says hello as soon as it hears a kernel that does not know it"

    append(page, "plan_mode(0, True), plan_mode(1, False)")
    page.save()
    page.reload()
    again = hellos(page, 3)[-1]
    assert (again["path"], again["session"], again["length"]) == (page.name, "s1", 2), "with a log it says hello by itself"
    assert again["from"] != second["from"]


def test_opening_a_notebook_with_a_log_shows_its_state_and_does_not_make_it_dirty(notebook: Open) -> None:
    line = '{"type":"plan/mode","seq":0,"time":1,"data":{"active":true}}'
    index = {"format": 1, "agents": {"main": "s1"}, "sessions": {"s1": {}}}
    page = notebook("1", metadata={"plan_mode_nb": index, "plan_mode_nb/s1/0000000": [line]})
    page.save()  # JupyterLab adds the kernel's own entries
    page.show(page.name)
    expect(page.chip).to_have_text("Plan ×")
    assert not page.dirty()


def test_metadata_from_a_stranger_hides_the_chip_and_is_left_as_it_is(notebook: Open) -> None:
    foreign = {"plan_mode_nb": {"format": 99, "agents": "x"}, "plan_mode_nb/s1/0000000": {"not": "a list"}}
    page = loaded(notebook, metadata=foreign)
    page.save()
    expect(page.chip).to_be_hidden()
    assert append(page, "plan_mode(0, True)") == {"diverged": 0}
    assert foreign.items() <= page.metadata().items()
    page.run("for junk in [{'start': -1}, {'events': [1]}, {'header': None}, {'session': 'a/b'}]: link.append('{}', **junk)")
    page.run("link.send(op='nonsense'); link.send(op='plan', active='yes', pending=None)")
    assert append(page, "plan_mode(0, True)") == {"diverged": 0}
    assert not page.dirty()
    assert [line for line in page.console if line.startswith("error: plan-mode-nb:")] != []


def test_a_stripped_session_never_returns(notebook: Open) -> None:
    index = {"format": 1, "agents": {}, "sessions": {}, "stripped": ["s1"]}
    page = loaded(notebook, metadata={"plan_mode_nb": index})
    page.save()
    assert append(page, "plan_mode(0, True)") == {"diverged": 0}
    assert not page.dirty()


def test_the_chip_leaves_plan_mode_on_click_and_says_what_is_pending(notebook: Open) -> None:
    page = loaded(notebook)
    expect(page.chip).to_be_hidden()
    page.run("link.plan(True)")
    expect(page.chip).to_have_text("Plan ×")
    expect(page.chip).to_have_accessible_name("Plan mode on. Leave plan mode")
    page.run("link.plan(False, True)")
    expect(page.chip).to_have_text("Plan (on from next step) ×")
    page.run("link.plan(True, False)")
    expect(page.chip).to_have_text("Plan (off from next step)")
    page.run("link.plan(True)")
    page.chip.click()
    expect(page.chip).to_be_hidden()
    page.run("link.plan(True)")
    page.chip.focus()
    page.page.keyboard.press("Enter")
    expect(page.chip).to_be_hidden()
    assert [message["active"] for message in page.value("link.of('select')")] == [False, False]


def test_during_an_ordinary_cell_the_chip_says_when(notebook: Open) -> None:
    page = loaded(notebook)
    page.run("link.plan(True); import pathlib, time")
    page.start("while not pathlib.Path('go').exists(): time.sleep(.05)")
    page.until("() => panel.sessionContext.session.kernel.status === 'busy'")
    page.chip.click()
    expect(page.chip).to_have_text("Plan (off when this cell ends)")
    (page._server.root / "go").touch()
    expect(page.chip).to_be_hidden()
    page.finish()


def test_the_chip_is_right_after_a_kernel_restart_from_the_log_alone(notebook: Open) -> None:
    page = loaded(notebook)
    append(page, 'plan_mode(0, True), \'{"type":"plan/selected","seq":1,"time":1,"data":{"active":false,"narrate":true}}\'')
    page.run("link.plan(False)")  # what is pushed is ahead of the log, and goes with the kernel
    expect(page.chip).to_be_hidden()
    page.restart()
    expect(page.chip).to_have_text("Plan (off from next step)")
    expect(page.chip).to_have_attribute("title", "Run %load_ext plan_mode_nb in this notebook to change plan mode.")


def test_a_push_stays_in_force_when_an_older_batch_lands(notebook: Open) -> None:
    page = loaded(notebook)
    append(page, "plan_mode(0, True)")
    page.run("link.plan(True, False)")
    append(page, '\'{"type":"step/end","seq":1,"time":1,"data":{}}\'')
    expect(page.chip).to_have_text("Plan (off from next step)")


def test_a_second_window_shows_the_same_and_can_leave(notebook: Open, window: Callable[[str], NotebookPage]) -> None:
    page = loaded(notebook)
    append(page, "plan_mode(0, True)")
    page.save()
    other = window(page.name)
    expect(other.chip).to_have_text("Plan ×")
    page.value_until("link.of('hello')", lambda hellos: len({hello["from"] for hello in hellos}) >= 2)  # it hears the kernel
    page.run("link.plan(True, False)")
    expect(other.chip).to_have_text("Plan (off from next step)")
    page.run("link.plan(True)")
    other.chip.click()
    expect(page.chip).to_be_hidden()
    expect(other.chip).to_be_hidden()


def test_a_push_for_another_session_is_not_about_this_notebook(notebook: Open) -> None:
    page = loaded(notebook)
    append(page, "plan_mode(0, True)")
    page.run("link.send(op='plan', active=False, pending=None, session='of another notebook')")
    expect(page.chip).to_have_text("Plan ×")


def test_a_kernel_without_plan_mode_is_named_and_asked_in_vain_only_once(notebook: Open) -> None:
    page = notebook("1")
    page.command("plan-mode-nb:toggle")
    expect(page.chip).to_have_text("Plan (on …) ×")
    expect(page.chip).to_be_hidden()


def test_palette_menu_and_shortcut_toggle(notebook: Open) -> None:
    page = loaded(notebook)
    page.page.locator(".jp-Notebook .jp-Cell").first.click()
    page.page.keyboard.press("Control+Alt+p")
    expect(page.chip).to_have_text("Plan ×")
    page.page.keyboard.press("Control+Shift+c")
    page.page.locator(".lm-CommandPalette-input").fill("plan mode")
    item = page.page.locator(".lm-CommandPalette-item").filter(has_text="Plan Mode").first
    expect(item).to_be_visible()
    item.click()
    expect(page.chip).to_be_hidden()
    page.page.locator(".lm-MenuBar-item").filter(has_text="Kernel").click()
    page.page.locator(".lm-Menu-item[data-command='plan-mode-nb:toggle']").click()
    expect(page.chip).to_have_text("Plan ×")


def test_the_setting_decides_when_the_chip_shows(notebook: Open, window: Callable[[str], NotebookPage]) -> None:
    put = """value => fetch('/lab/api/settings/plan-mode-nb:plugin?token=t',
      { method: 'PUT', body: JSON.stringify({ raw: JSON.stringify({ chip: value }) }) }).then(answer => answer.status)"""
    page = loaded(notebook)
    try:
        assert page.js(put, "always") == 204
        other = window(page.name)
        expect(other.chip).to_have_text("Plan")
        other.chip.click()
        expect(other.chip).to_have_text("Plan ×")
        assert page.js(put, "never") == 204
        other.reload()
        other.run("link.plan(True)")
        expect(page.chip).to_have_text("Plan ×")
        expect(other.chip).to_be_hidden()
    finally:
        page.js(put, "when-active")


def test_renaming_the_notebook_tells_the_kernel_its_new_path(notebook: Open) -> None:
    page = loaded(notebook)
    hellos(page, 1)
    page.js("() => panel.context.rename('renamed-here.ipynb')")
    last = page.value_until("link.of('hello')", lambda hellos: hellos[-1]["path"] != page.name)[-1]
    assert last["path"] == "renamed-here.ipynb"


def test_two_views_of_one_notebook_answer_once(notebook: Open) -> None:
    page = loaded(notebook)
    page.command("docmanager:clone")
    page.until("() => document.querySelectorAll('.jp-NotebookPanel').length === 2")
    append(page, "plan_mode(0, True)")
    assert append(page, "plan_mode(1, False)") == {"length": 2}
    assert [message["n"] for message in page.value("link.of('ack')")] == [1, 2]


def test_undo_in_a_cell_does_not_take_the_log_back(notebook: Open) -> None:
    page = loaded(notebook)
    append(page, "plan_mode(0, True)")
    page.js("() => { panel.content.widgets[0].model.sharedModel.setSource('typed'); panel.context.model.sharedModel.undo(); }")
    assert "plan_mode_nb/s1/0000000" in page.metadata()


# -- with the kernel's own carrier


def logged(page: NotebookPage) -> list[Any]:
    """The events in the page's metadata of the main session, as (type, data)."""
    metadata = page.metadata()
    session = metadata["plan_mode_nb"]["agents"]["main"]
    chunks = [metadata[key] for key in sorted(metadata) if key.startswith(f"plan_mode_nb/{session}/")]
    events = [json.loads(line) for chunk in chunks for line in chunk]
    return [(event["type"], event["data"]) for event in events]


def test_selecting_by_magic_and_leaving_by_chip_is_one_log_in_the_notebook_and_survives_the_kernel(notebook: Open) -> None:
    page = notebook("%load_ext plan_mode_nb\n%plan", "%session", own_kernel=True)
    page.run_cell(0)
    page.wait_cell(0)
    expect(page.chip).to_have_text("Plan ×")
    page.until("() => panel.context.model.getMetadata('plan_mode_nb') !== undefined")
    page.chip.click()
    expect(page.chip).to_be_hidden()
    page.until("""() => Object.entries(panel.context.model.toJSON().metadata).some(([key, lines]) =>
      key.startsWith('plan_mode_nb/') && lines.some(line => line.includes('"plan/mode"') && line.includes('"active":false')))""")
    assert [data["active"] for type, data in logged(page) if type == "plan/mode"] == [True, False]
    page.command("plan-mode-nb:toggle")
    expect(page.chip).to_have_text("Plan ×")
    page.until("() => JSON.stringify(panel.context.model.toJSON().metadata).split('plan/mode').length === 4")
    before = logged(page)
    saved = page.save()["metadata"]
    page.restart()
    expect(page.chip).to_have_text("Plan ×")
    page.run_cell(0, "%load_ext plan_mode_nb")
    page.wait_cell(0)
    page.run_cell(1)
    page.wait_cell(1)
    assert "plan mode    on" in page.outputs(1)[0]["text"]
    assert logged(page) == before
    assert {key: saved[key] for key in saved if key.startswith("plan_mode_nb")}.items() <= page.metadata().items()
    assert page.ours() == []
