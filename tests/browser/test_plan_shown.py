"""A plan as a person sees it in JupyterLab: every character, in the right order, and the same bytes from the call to the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driver import NotebookPage
from playwright.sync_api import Locator, expect

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.loopback import LoopbackServer

pytestmark = pytest.mark.browser

WRITTEN = """\
# Mixed scripts and code

1. safe\rrm -rf ~
2. \x1b[2K\x1b[1A gone, \x1b]0;title\x07
3. access level: \u202eresu\u202c, zero\u200bwidth, \u2066isolated\u2069

これは**「重要」**な計画です。**注意：**必ず読むこと。

- שלום **עולם**
- second, $A and $B, then $x^2$

- مرحبا

````markdown
```python
inner = 1
```
````

```python
outer = "no more"
```

| 列 | value |
|:--|--:|
| **計** | 1,204 |
"""


@pytest.fixture(scope="module")
def plan(shared: NotebookPage) -> Locator:
    """The plan in a live review card."""
    shared.run("from cards_kernel import *")
    shared.run_cell(0, f"written = {WRITTEN!r}; show('review', html=to_html(written), markdown=written)")
    shared.wait_cell(0)
    located = shared.page.locator(".pmnb-card .pmnb-plan")
    expect(located).to_contain_text("1,204")
    return located


def test_what_hides_or_reorders_is_seen_as_a_mark(plan: Locator) -> None:
    """Carriage returns, escapes, bidirectional controls and zero-width characters stand where they stood."""
    text = plan.inner_text()
    for seen in ("safe␍rm -rf ~", "␛[2K␛[1A gone, ␛]0;title␇", "⟦U+202E⟧resu⟦U+202C⟧", "zero⟦U+200B⟧width", "⟦U+2066⟧isolated⟦U+2069⟧"):
        assert seen in text
    assert not set(text) & set("\r\x1b\u202e\u200b\u2066")


def test_a_mark_keeps_its_place_on_the_screen(plan: Locator) -> None:
    """The browser draws what stands behind a bidirectional override behind it, not before."""
    places = plan.evaluate(
        """plan => ['access', 'level', '202E', 'resu'].map(words => {
          const walker = document.createTreeWalker(plan, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const at = walker.currentNode.data.indexOf(words);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + words.length);
            return range.getBoundingClientRect().left;
          }
        })"""
    )
    assert places == sorted(places)
    assert len(set(places)) == 4


def test_chinese_and_japanese_emphasis_beside_punctuation_is_bold(plan: Locator) -> None:
    """Where CommonMark's own rule would leave the asterisks."""
    assert plan.locator("strong").all_inner_texts() == ["「重要」", "注意：", "עולם", "計"]
    assert "**" not in plan.inner_text()


def test_lists_run_in_the_direction_of_their_text(plan: Locator) -> None:
    """Hebrew and Arabic lists from right to left with their bullets on the right, numbers from left to right."""
    directions = plan.locator("ol, ul").evaluate_all("lists => lists.map(list => getComputedStyle(list).direction)")
    assert directions[0] == "ltr"
    assert "rtl" in directions[1:]
    bullets = plan.locator("ul").first.evaluate(
        "list => list.firstElementChild.getBoundingClientRect().right - list.getBoundingClientRect().right"
    )
    assert bullets < 0


def test_nested_fences_are_two_blocks_and_code_is_as_written(plan: Locator) -> None:
    """A fence inside a longer one is its text."""
    blocks = [text.strip() for text in plan.locator("pre").all_inner_texts()]
    assert blocks == ["```python\ninner = 1\n```", 'outer = "no more"']


def test_dollars_are_dollars_and_tables_are_tables(plan: Locator) -> None:
    """JupyterLab's MathJax is on the page and leaves them alone."""
    assert "$A and $B, then $x^2$" in plan.inner_text()
    assert plan.locator("mjx-container").count() == 0
    assert plan.locator("table td").all_inner_texts() == ["計", "1,204"]
    assert plan.locator("table td").last.evaluate("cell => getComputedStyle(cell).textAlign") == "right"


def a_long_plan() -> str:
    """5,000 lines and 200 kB, with wide characters, emoji sequences, tables and line ends of both kinds."""
    rows = [f"| {number} | 列 👩‍💻 | `x` |" for number in range(1_000)]
    steps = [f"{number}. 手順 {number}: **check** 🇩🇪 e\u0301 👨‍👩‍👧" for number in range(1, 4_000)]
    return "# 計画 of 200 kB\r\n\r\n| n | 列 | code |\n|--:|---|---|\n" + "\n".join(rows) + "\n\n" + "\n".join(steps) + "\n"


def test_a_plan_of_200_kb_is_the_same_bytes_from_the_call_to_the_file(
    notebook: Callable[..., NotebookPage], tmp_path: Path, server: Any
) -> None:
    """Submitted = asked = shown in the plain text = downloaded = logged in the saved notebook = written by ``%session plan``."""
    plan = a_long_plan()
    assert len(plan.encode()) > 200_000
    with LoopbackServer([[call("exit_plan_mode", {"plan": plan}), usage(1, 1)], [say("Done."), usage(1, 1)]]) as model:
        load = (
            f"%load_ext plan_mode_nb\n%env OPENAI_BASE_URL={model.url}\n%env OPENAI_API_KEY=none\n%config PlanAgent.model = 'openai-chat:m'"
        )
        page = notebook("%plan work", "%session plan approved.md", own_kernel=True)
        page.run(load)
        page.run_cell(0)
        approve = page.page.get_by_role("button", name="Approve", exact=True)
        expect(approve).to_be_in_viewport()
        expect(page.page.locator(".pmnb-plan")).to_contain_text("手順 3999:")
        with page.page.expect_download() as downloading:
            page.page.get_by_role("button", name="Save plan").click()
        assert downloading.value.path().read_bytes() == plan.encode()
        approve.click()
        page.wait_cell(0)
        page.run_cell(1)
        page.wait_cell(1)
        shown = [output["data"]["text/plain"] for output in page.outputs(0)]
        page.save()
        page.reload()
        expect(page.page.locator(".jp-OutputArea")).to_contain_text(["手順 3999:", "The approved plan is in"])
        assert page.page.get_by_role("button", name="Approve", exact=True).count() == 0
        assert page.page.get_by_text("model not found").count() == 0
    assert any(plan in "".join(text) for text in shown)
    assert (server.root / "approved.md").read_bytes() == plan.encode()
    document = read_metadata(json.loads((server.root / page.name).read_text(encoding="utf-8"))["metadata"])
    events = decode_all(document.sessions[document.agents["main"]].lines)
    made = [event.data["arguments"] for event in events if event.type == "tool/call"]
    blocks = [block for event in events if event.type == "assistant/message" for block in event.data["message"]["content"]]
    assert made == [block["arguments"] for block in blocks if block["type"] == "tool-call"]
    assert json.loads(made[0]) == {"plan": plan}
    assert [event.data["questions"][0]["detail"] for event in events if event.type == "question/asked"] == [plan]
