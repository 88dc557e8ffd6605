"""Cards in a kernel: shown as they are, or awaited inside a real turn of a cell."""

from __future__ import annotations

import asyncio
from typing import Any

from IPython import get_ipython
from IPython.display import display

from plan_mode_nb.hosts.kernel import thread
from plan_mode_nb.hosts.kernel.cards import Act
from plan_mode_nb.hosts.kernel.cards.card import Card
from plan_mode_nb.hosts.kernel.turn import CellTurn
from plan_mode_nb.render.markdown import to_html

PLAN = """\
# Clean up the sales table

Find out why **1,204 rows** lost their region, then repair the join and say what changed.

## Steps

1. Profile `sales.region` for missing values, by source file.
2. Rebuild the join on `customer_id`:

   ```python
   fixed = sales.merge(customers, on="customer_id", how="left", validate="m:1")
   assert fixed.region.notna().all()
   ```

3. Compare totals before and after.

| check | before | after |
|---|---:|---:|
| rows | 84,120 | 84,120 |
| without region | 1,204 | 0 |

> Nothing is written to disk before you have seen the comparison.

- [x] read the files
- [ ] repair the join
"""
PART = """\
## Part {n} of the plan

Why part {n} matters, in **bold** words, with `code` and a [link](https://example.org/{n}).

1. Step {n}.1 reads the data before anything happens.
2. Step {n}.2:

   ```python
   frame = frame.merge(other, on="id", how="left")  # {n}
   assert frame.notna().all().all()
   ```

- [ ] check {n}

| check | before | after |
|---|---:|---:|
| rows | {n} | {n} |

"""
_PARTS = "".join(PART.replace("{n}", str(n)) for n in range(1, 278))
LONG = "# A long plan\n\n" + _PARTS + "Then the same again.\n" * 11 + "The last line of 5,000."
REVIEW = [{"id": "plan-review", "question": "Approve this plan?", "options": [{"label": "Approve"}, {"label": "Keep planning"}]}]
QUESTIONS = [
    {
        "id": "engine",
        "header": "Engine",
        "question": "Which engine should read the files?",
        "options": [
            {"label": "pandas", "description": "Already imported in this notebook."},
            {"label": "polars", "description": "Faster on files of this size, but a new dependency."},
        ],
    },
    {
        "id": "checks",
        "question": "Which checks should run afterwards?",
        "multiSelect": True,
        "options": [{"label": "row counts"}, {"label": "totals by region"}, {"label": "duplicate keys"}],
    },
    {"id": "name", "question": "What should the new column be called?", "options": []},
]
PREVIEW = """\
import pandas as pd

sales = pd.read_parquet("sales.parquet")
sales.loc[sales.region.isna(), "region"] = "unknown"
sales.to_parquet("sales.parquet")
"""

acts: list[Act] = []
cards: dict[str, Card] = {}


def card(kind: Any, on_act: Any = acts.append, **content: Any) -> Card:
    """A card with content fit for its kind."""
    defaults: dict[str, dict[str, Any]] = {
        "review": {"title": "Clean up the sales table", "markdown": PLAN, "html": to_html(PLAN), "questions": REVIEW},
        "question": {"title": "Before I go on", "questions": QUESTIONS},
        "approval": {"tool": "python", "preview": PREVIEW, "reason": "This call changes a file in your folder."},
        "controls": {"plan": {"active": True, "pending": None}},
    }
    cards[kind] = Card(kind, on_act=on_act, **{**defaults[kind], **content})
    return cards[kind]


def show(kind: Any, **content: Any) -> None:
    """Display a card; what is done with it goes to ``acts``."""
    acts.clear()
    display(card(kind, **content))


class _NoView:
    def open(self, turn: object) -> None: ...

    def flush(self) -> None: ...

    def close(self, reason: object) -> None: ...


def ask(kind: Any, state: Any = "answered", **content: Any) -> Act:
    """Display a card inside a turn and block the cell until it acts."""
    agent = thread.get(get_ipython())

    async def body(turn: CellTurn[Act]) -> Act:
        acted: asyncio.Future[Act] = agent.loop.create_future()

        def on_act(act: Act) -> None:
            acts.append(act)
            agent.call(lambda: acted.done() or acted.set_result(act))

        await turn.on_main(lambda: display(card(kind, on_act, **content)))
        act = await acted
        await turn.on_main(lambda: setattr(cards[kind], "state", state))
        return act

    acts.clear()
    return CellTurn(get_ipython(), agent, body, _NoView()).run()
