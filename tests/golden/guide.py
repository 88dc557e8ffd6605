"""The notebooks of ``notebooks/``, told like the stories: ``cd tests && python -m golden.guide [NAME…]``."""

from __future__ import annotations

import sys

import msgspec

from plan_mode_nb.models.script import say, usage
from plan_mode_nb.testing.faults import ServerPart

from .stories import FREE, LOAD, approve, keep, plan, python
from .telling import Teller, here

ROOT = here().parents[1]
DEMO = ROOT / "plan_mode_nb" / "demo"
DATA = "../plan_mode_nb/demo/penguins.csv"
FEEDBACK = "do not judge the rule on the birds it was made from, and do not delete the data"
TOLD = (
    "*Told by a scripted model server, with a person's answers; the conversation is in this notebook's metadata, and"
    " `pytest --nbval` runs all of it again without a model. To go on with a model of your own: `%config PlanAgent.model ="
    ' "openai-chat:NAME"` (see the README).*'
)


def penguins() -> Teller:
    """The demo's task, run against a server that answers from the demo's script."""
    answers = msgspec.json.decode((DEMO / "script.json").read_bytes(), type=list[list[ServerPart]])
    data = {"plan_mode_nb/demo/penguins.csv": (DEMO / "penguins.csv").read_bytes()}
    tell = Teller("penguins", answers, data, subfolder="notebooks")
    tell.text(f"# Plan mode, on real data\n\nWhich two measurements tell three species of penguins apart best?\n\n{TOLD}")
    tell.cell(LOAD)
    tell.text("The data: [Palmer penguins](https://allisonhorst.github.io/palmerpenguins/) (CC0), 344 birds of three species.")
    tell.cell(f'import pandas as pd\n\npenguins = pd.read_csv("{DATA}")\npenguins.head()')
    tell.text(
        "The agent's Python runs in this kernel, with all your variables, and code in a kernel cannot be confined. So by default each such"
        " call asks first. This notebook runs harmless code on a copy of the data, so it switches that question off."
    )
    tell.cell(f"{FREE}\n%matplotlib inline")
    tell.text("The first plan went back with words, the second was approved. Both stay below with what became of them.")
    tell.cell("%plan Which two measurements tell the three penguin species apart best? Show it in one figure.", keep(FEEDBACK), approve)
    tell.text("What the agent made is yours: it worked in your kernel.")
    tell.cell("separation")
    return tell


def guide() -> Teller:
    """Every magic once."""
    answers = [
        [say("Plan mode is on, so I look first."), python("prices"), usage(700, 20)],
        [say("Here is my plan."), plan("# Raise the prices\n\n1. Multiply each price by 1.1.\n2. Round to cents.\n"), usage(780, 40)],
        [python("prices = {name: round(price * 1.1, 2) for name, price in prices.items()}\nprices"), usage(860, 40)],
        [say("All three prices are **ten percent** higher."), usage(930, 10)],
        [say("Tea is at 3.3, the cheapest of the three."), usage(990, 10)],
    ]
    tell = Teller("guide", answers)
    tell.text(f"# A guide to plan mode\n\n{TOLD}")
    tell.cell(LOAD)
    tell.text("You have something, and you want the agent to change it; but you want to see its plan first.")
    tell.cell("prices = {'tea': 3.0, 'coffee': 4.2, 'cake': 5.5}")
    tell.text(
        "`%sandbox` and `%approval` say what may run, independently of plan mode. In this notebook code runs without asking each time;"
        " by default each call of the agent's `python` shows you the code and waits."
    )
    tell.cell(FREE)
    tell.text(
        "`%plan MESSAGE` selects plan mode and sends the message. The agent explores, then hands in one plan. *Approve* lets it act;"
        " *Keep planning* sends the plan back, with your words; *Discuss* puts it aside so that you can talk or run cells."
    )
    tell.cell("%plan raise the prices by ten percent", approve)
    tell.cell("prices")
    tell.text("`%agent MESSAGE` is another turn; plan mode stays as it is (the approval ended it).")
    tell.cell("%agent which is the cheapest now?")
    tell.text("Plan mode can be selected and left at any time, without saying anything. A selection alone asks the model nothing.")
    tell.cell("%plan")
    tell.cell("%plan off")
    tell.text(
        "`%session` says what the conversation is and where it is kept, `%session log` how it went. After a kernel restart your variables"
        " are gone; `%session replay on`, and *Run All*, makes what the agent made again, without asking a model."
    )
    tell.cell("%session log")
    return tell


NOTEBOOKS = {"guide": guide, "penguins": penguins}

if __name__ == "__main__":
    for name in sys.argv[1:] or NOTEBOOKS:
        with NOTEBOOKS[name]() as told:
            print(told.save(ROOT / "notebooks").name)
