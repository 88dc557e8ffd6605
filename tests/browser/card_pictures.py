"""Pictures of every card, taken of real turns in JupyterLab: ``python tests/browser/card_pictures.py docs/images``.

Each is what a person has before them at that moment: the outputs of one cell, as wide as a notebook beside its file list.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from applications import JupyterServer, chromium
from cards_kernel import LONG
from driver import NotebookPage
from PIL import Image
from playwright.sync_api import Locator, expect, sync_playwright

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.faults import Slow
from plan_mode_nb.testing.loopback import LoopbackServer

WAIT_MS: Final = 60_000
COLOURS: Final = 64
PLAN: Final = """\
# Find the rows that lost their region

**1,204 of 84,120 rows** have no region. The join in cell 3 drops them.

1. Profile `sales.region` by source file.
2. Rebuild the join on `customer_id`:

   ```python
   fixed = sales.merge(customers, on="customer_id", how="left")
   ```

3. Write `regions.csv`.

| check | before | after |
|---|---:|---:|
| without region | 1,204 | 0 |
"""
REVISED: Final = PLAN.replace('how="left")', 'how="left", validate="m:1")').replace(
    "3. Write `regions.csv`.", "3. Compare totals before and after.\n4. Write `regions.csv`, once you have seen them."
)
LOOK: Final = "fixed = sales.merge(customers, on='customer_id', how='left', validate='m:1')\nfixed.region.isna().sum()"
UNITS: Final = {
    "id": "unit",
    "header": "Currency",
    "question": "Which currency are the amounts in?",
    "options": [
        {"label": "Euro", "description": "What the column names say."},
        {"label": "Swiss franc", "description": "What the invoices say."},
    ],
}
CHECKS: Final = {
    "id": "checks",
    "question": "Which checks should run afterwards?",
    "multi_select": True,
    "options": [{"label": "row counts"}, {"label": "totals by region"}, {"label": "duplicate keys"}],
}
NAME: Final = {"id": "name", "question": "What shall the new column be called?"}
TODOS: Final = [
    {"content": "Profile the regions", "status": "completed"},
    {"content": "Rebuild the join", "status": "in_progress"},
    {"content": "Write regions.csv", "status": "pending"},
]
STEPS: Final = [
    [say("I have looked at the three files. Here is my plan."), call("exit_plan_mode", {"plan": PLAN}), usage(9_200, 410)],
    [say("With the comparison, and a check of the join."), call("exit_plan_mode", {"plan": REVISED}), usage(9_800, 460)],
    [call("todo_write", {"todos": TODOS}), call("python", {"code": LOOK}), usage(10_100, 120)],
    [call("bash", {"command": "cut -d, -f3 sales.csv | sort | uniq -c > /srv/regions.txt"}), usage(10_400, 60)],
    [
        call("write", {"path": "regions.csv", "content": "region,rows\nnorth,41210\nsouth,41706\n"}),
        call("edit", {"path": "regions.csv", "old": "41706", "new": "42910"}),
        call("write", {"path": "/etc/regions.csv", "content": "region,rows\n"}),
        usage(10_900, 80),
    ],
    [say("`regions.csv` is there; nothing was written outside this folder."), usage(11_000, 30)],
    [call("ask_user_question", {"questions": [UNITS]}), usage(11_100, 50)],
    [call("ask_user_question", {"questions": [CHECKS, NAME]}), usage(11_200, 60)],
    [say("Noted."), usage(11_300, 5)],
    [say("This takes longer."), call("exit_plan_mode", {"plan": LONG}), usage(11_400, 2_900)],
    [say("As you like."), usage(14_000, 5)],
    [Slow(0.05), say("I go through the invoices one by one, and compare each with the ledger. " * 40), usage(14_100, 900)],
]


class Pictures:
    """The camera: one notebook, its cells in order. ``folder``: where pictures go."""

    def __init__(self, notebook: NotebookPage, folder: Path) -> None:
        self.notebook = notebook
        self.page = notebook.page
        self._folder = folder

    def outputs(self, cell: int) -> Locator:
        """The outputs of a cell."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(cell).locator(".jp-OutputArea").first

    def card(self, cell: int, kind: str) -> Locator:
        """The card of a kind that waits in a cell."""
        found = self.outputs(cell).locator(f".pmnb-card[data-kind={kind}]")
        found.first.wait_for(timeout=WAIT_MS)
        return found.last

    def take(self, name: str, what: Locator, below: Locator | None = None) -> None:
        """A picture of an element, in few colours. ``below``: where in it the picture begins."""
        self.page.mouse.move(1, 1)
        what.scroll_into_view_if_needed()
        image = Image.open(io.BytesIO(what.screenshot(animations="disabled"))).convert("RGB")
        if below is not None:
            whole, part = what.bounding_box(), below.bounding_box()
            assert whole is not None
            assert part is not None
            image = image.crop((0, int(part["y"] - whole["y"]), image.width, image.height))
        path = self._folder / f"card-{name}.png"
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path}: {path.stat().st_size:,} bytes, {image.width}x{image.height}")

    def press(self, where: Locator, button: str) -> None:
        """Click a button of a card."""
        where.get_by_role("button", name=button, exact=True).click()

    def themed(self, theme: Literal["light", "dark"], then: Callable[[], None]) -> None:
        """Do something in another theme."""
        self.notebook.theme(theme)
        then()
        self.notebook.theme("light")


def reviewed(pictures: Pictures) -> None:
    """A plan, sent back, changed, approved; approvals; the turn when it is over."""
    pictures.notebook.run_cell(1)
    review = pictures.card(1, "review")
    pictures.take("review", review)
    pictures.themed("dark", lambda: pictures.take("review-dark", review))
    review.get_by_label("Feedback").fill("compare the totals first, and check that the join is many to one")
    pictures.press(review, "Keep planning")
    expect(pictures.page.get_by_text("once you have seen them")).to_be_visible(timeout=WAIT_MS)
    revision = pictures.card(1, "review")
    revision.get_by_text("Changes", exact=True).click()
    pictures.take("revision", revision)
    pictures.press(revision, "Approve")
    approval = pictures.card(1, "approval")
    pictures.take("approval-python", approval)
    pictures.press(approval, "Allow once")
    expect(pictures.page.get_by_text("cut -d, -f3").last).to_be_visible(timeout=WAIT_MS)
    approval = pictures.card(1, "approval")
    pictures.take("approval-sandbox", approval)
    pictures.themed("dark", lambda: pictures.take("approval-dark", approval))
    pictures.press(approval, "Reject")
    pictures.notebook.wait_cell(1)
    pictures.take("static", pictures.outputs(1))
    changed = pictures.outputs(1).locator("details").filter(has_text="north,41210")
    for card in pictures.outputs(1).locator("details").all():
        card.evaluate("card => { card.open = /^\\s*(write|edit)/.test(card.textContent); }")
    pictures.take("tools", pictures.outputs(1), changed.first)


def asked(pictures: Pictures) -> None:
    """One question, then two with several choices and words."""
    pictures.notebook.run_cell(2)
    question = pictures.card(2, "question")
    pictures.take("question", question)
    question.get_by_label("Swiss franc").check()
    pictures.press(question, "Send answer")
    expect(pictures.page.get_by_text("Which checks should run afterwards?").last).to_be_visible(timeout=WAIT_MS)
    questions = pictures.card(2, "question")
    questions.get_by_label("row counts").check()
    questions.get_by_label("totals by region").check()
    questions.get_by_label("Your answer", exact=True).fill("region_fixed")
    pictures.take("questions", questions)
    pictures.press(questions, "Send answers")
    pictures.notebook.wait_cell(2)


def long_and_stopped(pictures: Pictures) -> None:
    """A plan of 5,000 lines; the controls while an answer streams."""
    pictures.notebook.run_cell(3)
    review = pictures.card(3, "review")
    pictures.take("review-long", review)
    pictures.press(review, "Discuss")
    pictures.notebook.wait_cell(3)
    pictures.notebook.run_cell(4)
    controls = pictures.card(4, "controls")
    expect(pictures.outputs(4).get_by_text("compare each with the ledger").first).to_be_visible(timeout=WAIT_MS)
    controls.get_by_role("switch", name="Plan mode").click()
    expect(controls.get_by_text("from the next step")).to_be_visible(timeout=WAIT_MS)
    controls.get_by_role("textbox", name="Steer").fill("only those of March, please")
    pictures.take("controls", controls)
    pictures.press(controls, "Stop")
    pictures.notebook.wait_cell(4)


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    setup = (
        "%load_ext plan_mode_nb\n%env OPENAI_BASE_URL={url}\n%env OPENAI_API_KEY=none\n"
        "%config PlanAgent.model = 'openai-chat:storyteller'\nimport pandas as pd\n"
        "customers = pd.DataFrame({{'customer_id': [1, 2], 'region': ['north', 'south']}})\n"
        "sales = pd.DataFrame({{'customer_id': [1, 2, 2], 'amount': [19.5, 7.25, 40.0]}})"
    )
    cells = ["%plan find the rows that lost their region", "%agent what do you need to know?", "%plan the archive", "%agent the invoices"]
    steps: list[Any] = list(STEPS)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, LoopbackServer(steps) as model:
        server = JupyterServer(Path(scratch))
        try:
            (server.root / "sales.csv").write_text("customer_id,amount,region\n1,19.5,north\n2,7.25,south\n")
            server.write("cards.ipynb", setup.format(url=model.url), *cells)
            context = chromium(playwright).new_context(viewport={"width": 1080, "height": 2_600})
            notebook = NotebookPage(context, server, "cards.ipynb")
            notebook.run_cell(0)
            notebook.wait_cell(0)
            pictures = Pictures(notebook, folder)
            for scene in (reviewed, asked, long_and_stopped):
                scene(pictures)
            notebook.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
