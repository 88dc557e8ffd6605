"""``todo_write``: the list is written whole, inside its turn, together with the result that tells of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from plan_mode_nb.agent.tools import ToolCall
from plan_mode_nb.features import todo
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing.workbench import Workbench


def write(*todos: dict[str, Any]) -> tuple[Workbench, dict[str, Any]]:
    """One turn that writes a list; the bench and the tool's result block."""
    bench = Workbench(call("todo_write", {"todos": list(todos)}), say("done"), install=[todo.install])
    asyncio.run(bench.ask("go"))
    (result,) = bench.events("tool/result")
    return bench, result.data["message"]["content"][0]


def item(content: str, status: str = "pending") -> dict[str, Any]:
    return {"content": content, "status": status}


def test_the_list_is_logged_whole_and_the_result_counts_it() -> None:
    """The event stands in its turn, directly before the result, and the fold gives the list back."""
    bench, result = write(item("read", "completed"), item("think", "in_progress"), item("write"))
    types = bench.types
    assert types.index("todo/write") + 1 == types.index("tool/result")
    assert bench.session.fold(TODOS) == [item("read", "completed"), item("think", "in_progress"), item("write")]
    assert result["content"][0]["text"] == "Updated todo list: 1 pending, 1 in progress, 1 completed."


def test_event_and_result_are_one_write() -> None:
    """A killed process leaves both or none."""
    bench, _ = write(item("read"))
    (together,) = [batch for batch in bench.sink.writes if any('"todo/write"' in line for line in batch)]
    assert [json.loads(line)["type"] for line in together] == ["todo/write", "tool/result"]


def test_several_tasks_in_progress_are_advised_against_and_written() -> None:
    """At most one in progress is advice, never an error."""
    bench, result = write(item("a", "in_progress"), item("b", "in_progress"))
    assert not result["isError"]
    assert "one task in progress at a time" in result["content"][0]["text"]
    assert len(bench.session.fold(TODOS) or []) == 2


def test_contents_are_trimmed() -> None:
    """What is logged is the trimmed line (deepseek-harness refuses any other)."""
    bench, _ = write(item("  read \n"))
    assert bench.session.fold(TODOS) == [item("read")]


def test_an_empty_list_clears() -> None:
    """All work done or given up: no todos."""
    bench, _ = write()
    assert bench.session.fold(TODOS) == []


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        ([item("read"), item(" \t ")], "todo 2 has no content"),
        ([item("read"), item(" read")], "'read' is there more than once"),
        ([item("read", "started")], "status"),
        ([{"content": "read"}], "status"),
        ([{**item("read"), "priority": 1}], "priority"),
        ([item("")], "todo 1 has no content"),
    ],
)
def test_a_wrong_list_is_refused_with_what_to_send_and_nothing_is_written(todos: list[dict[str, Any]], said: str) -> None:
    """Blank, repeated, unknown status, unknown key: the call fails, the list before it stays."""
    bench, result = write(*todos)
    assert result["isError"]
    assert said in result["content"][0]["text"]
    assert not bench.events("todo/write")


def test_without_an_agent_there_is_no_list() -> None:
    """Nobody's call is refused: no session would keep it."""
    outcome = asyncio.run(Workbench(install=[todo.install]).seams.tools.run(ToolCall("todo_write", '{"todos":[]}', "c", 1, 1, None)))
    assert outcome.result.error == {"name": "ToolError", "code": "NO_AGENT"}


def test_the_next_turn_starts_without_a_list() -> None:
    """A list belongs to the turn that wrote it."""
    bench, _ = write(item("read"))
    bench.model.add(say("hello"))
    asyncio.run(bench.ask("again"))
    assert bench.session.fold(TODOS) is None


def test_the_call_presents_itself_as_lines_with_marks() -> None:
    """One line each, in order; what holds no list presents nothing."""
    shown = todo.present_call(json.dumps({"todos": [item("a", "completed"), item("b", "in_progress"), item("c")]}))
    assert shown is not None
    assert (shown.title, shown.body) == ("Todo list", "[x] a\n[~] b\n[ ] c")
    assert [todo.present_call(each) for each in ("", "[]", "{", '{"todos":3}', '{"x":[]}')] == [None] * 5


def test_the_undo_takes_the_tool_out() -> None:
    """Installed, taken out, installed again: nothing is left behind."""
    bench = Workbench()
    for _ in range(2):
        undo = todo.install(bench.seams)
        assert bench.seams.tools.get("todo_write") is not None
        undo()
        assert bench.seams.tools.schemas() == []
