"""Where no page takes the log, outputs carry it; whichever carrier brings it back, it is the same log."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import nbformat

from plan_mode_nb.document.outputs import EVENTS_MIME
from plan_mode_nb.hosts.cli.collect import collect_command
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.store.notebook import load_document

from .agent_kernel import AgentKernel
from .driver import Cell


def carried(cell: Cell) -> dict[str, Any]:
    """The one piece of the log that a cell's outputs carry."""
    (piece,) = [output["data"][EVENTS_MIME] for output in cell.outputs if EVENTS_MIME in output.get("data", {})]
    assert all("text/plain" in output["data"] for output in cell.outputs if EVENTS_MIME in output.get("data", {}))
    return dict(piece)


def lines(agent: AgentKernel) -> list[str]:
    code = "import json as _j; print(_j.dumps(list(get_ipython()._plan_mode_nb[0].agent().session.lines)))"
    return list(json.loads(agent.kernel.must(code)))


def saved(agent: AgentKernel, *cells: Cell) -> None:
    """The notebook as a front end without any extension of ours saves it."""
    notebook = nbformat.v4.new_notebook()
    for cell in cells:
        outputs = [nbformat.v4.new_output("display_data", data=each["data"]) for each in cell.outputs if "data" in each]
        notebook.cells.append(nbformat.v4.new_code_cell("", outputs=outputs))
    nbformat.write(notebook, agent.notebook)


def test_outputs_carry_the_log_and_give_it_back(monkeypatch: Any) -> None:
    """Each turn's output holds what no other output holds; a cell that runs again takes its piece along, and the next one makes it good."""
    steps = [[say(f"Answer {number}."), usage(1, 1)] for number in range(5)]
    with AgentKernel(sys.executable, steps) as agent:

        def run(code: str, cell: str | None) -> Cell:
            return agent.kernel.wait(agent.kernel.send(code, cell=cell), 30)

        first, second = run("%plan one", "a"), run("%agent two", "b")
        assert (carried(first)["start"], carried(second)["start"]) == (0, len(carried(first)["events"]))
        assert carried(first)["events"] + carried(second)["events"] == lines(agent)
        run("1 + 1", "c")
        again = run("%agent three", "a")
        assert carried(again)["start"] == 0, "the piece of this cell was lost when it ran again"
        third = run("%agent four", "d")
        assert carried(third)["start"] == len(carried(again)["events"])
        before, folded = lines(agent), agent.fold()

        # Another kernel, no journal: the outputs in the file alone.
        saved(agent, again, second, third)
        shutil.rmtree(agent.folder / "runtime" / "plan_mode_nb")
        agent.replace_kernel()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.fold() == folded

        # A front end without cell ids cannot say which piece a cell takes along: each output carries the whole.
        assert carried(run("%agent five", None))["start"] == 0
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(agent.folder / "elsewhere"))
        assert collect_command(agent.notebook) == 0
        document = load_document(agent.notebook)
        assert list(document.sessions[document.agents["main"]].lines) == before
