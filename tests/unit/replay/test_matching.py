"""Cells and recorded parts find each other before anything runs, and what has no counterpart is listed once."""

from __future__ import annotations

import asyncio
from typing import Any

from leading import Conversation

from plan_mode_nb.models.script import say, usage
from plan_mode_nb.replay.matching import Matching, NotebookCell, code_cells, match


def recorded(*cells: str) -> dict[str, Any]:
    """A notebook whose cells were run once each, in order."""
    conversation = Conversation(*[[say("Yes."), usage(1, 1)]] * len(cells))

    async def body() -> None:
        for cell in cells:
            await conversation.run(cell)

    asyncio.run(body())
    return conversation.notebook()


def cell(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": [], "metadata": {}, **more}


def did(found: Matching) -> dict[int, list[str]]:
    return {place: [str(each) for each in places] for place, places in found.by_cell.items()}


def test_a_cell_takes_its_command_and_its_turn_and_free_cells_take_nothing() -> None:
    notebook = recorded("%plan go", "%agent on")
    notebook["cells"].insert(1, cell("x = 1"))
    notebook["cells"].insert(0, {"cell_type": "markdown", "source": "%agent is no code here", "metadata": {}})
    found = match(notebook)
    assert did(found) == {0: ["command %plan go", "turn 1 (go)"], 2: ["turn 2 (on)"]}
    assert [each.number for each in found.cells] == [2, 3, 4]
    assert found.problem("n.ipynb") == ""


def test_a_turn_whose_cell_is_gone_and_a_cell_that_was_never_run_are_one_list_that_names_record() -> None:
    notebook = recorded("%agent one", "%agent two")
    notebook["cells"] = [notebook["cells"][0], cell("%agent three")]
    assert match(notebook).problem("n.ipynb").splitlines() == [
        "n.ipynb and its recording do not fit: run the notebook again with `plan-mode-nb record n.ipynb`",
        "  turn 2 (two) has no cell",
        "  cell 2 (%agent three) has no recorded turn",
    ]


def test_exchanged_cells_do_not_fit() -> None:
    notebook = recorded("%agent one", "%agent two")
    notebook["cells"].reverse()
    assert "has no" in match(notebook).problem("n.ipynb")


def test_a_cell_that_was_run_twice_has_a_turn_too_many_and_two_equal_cells_have_one_each() -> None:
    notebook = recorded("%agent again", "%agent again")
    assert did(match(notebook)) == {0: ["turn 1 (again)"], 1: ["turn 2 (again)"]}
    del notebook["cells"][1]
    assert "turn 2 (again) has no cell" in match(notebook).problem("n.ipynb")


def test_a_command_that_its_cell_gave_once_more_needs_no_second_cell() -> None:
    """After a restart people run their first cells again; the command is fed."""
    notebook = recorded("%plan", "%agent go", "%plan", "%agent on")
    del notebook["cells"][2]
    found = match(notebook)
    assert found.problem("n.ipynb") == ""
    assert did(found) == {0: ["command %plan"], 1: ["turn 1 (go)"], 2: ["turn 2 (on)"]}


def test_what_a_cell_asks_is_read_from_its_lines() -> None:
    """Help is no question, a cell that failed may have asked nothing, ``%session`` shows what no replay compares."""
    notebook = {
        "cells": [
            cell("%plan?"),
            cell("x = 1  # %agent in a comment"),
            cell("if x:\n    %agent indented"),
            cell("%agent", outputs=[{"output_type": "error"}]),
            cell(["%%agent\n", "body"]),
            cell("y = 2\n%session log", metadata={"tags": ["replay-volatile"]}),
        ]
    }
    cells = code_cells(notebook)
    assert [each.asks for each in cells] == [False, False, True, False, True, False]
    assert [each.most() for each in cells[2:5]] == [None, (0, 1), (0, 1)]
    assert (cells[5].shows_session, cells[5].is_volatile) == (True, True)
    assert cells[4].source == "%%agent\nbody"


def test_a_notebook_without_sessions_is_nobody_s_business() -> None:
    found = match({"cells": [cell("%agent never run")], "metadata": {}})
    assert not found.is_recorded


def test_the_hash_is_that_of_the_log() -> None:
    notebook = recorded("%agent 東京 👍")
    assert did(match(notebook)) == {0: ["turn 1 (東京 👍)"]}
    assert NotebookCell(1, 0, "%agent 東京 👍").hash in notebook["metadata"][list(notebook["metadata"])[1]][2]
