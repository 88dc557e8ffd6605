"""``todo_write``: the agent's task list, whole at every write. The list itself is a fold; the tool only adds its event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, Presentation, Tool, ToolCall, ToolError, text_result
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

TODO_WRITE: Final = "todo_write"
Status = Annotated[
    Literal["pending", "in_progress", "completed"],
    msgspec.Meta(description="pending: not begun; in_progress: being worked on now; completed: done."),
]
_MARKS: Final = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
_ADVICE: Final = " Better to have one task in progress at a time, unless several really run at once."


class Todo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task."""

    content: Annotated[str, msgspec.Meta(description="The task, as one short imperative line.")]
    status: Status


def todo_tool() -> Tool:
    """The tool for a registry."""

    def write(
        call: ToolCall,
        todos: Annotated[list[Todo], msgspec.Meta(description="The complete list; it takes the place of the one before.")],
    ) -> Outcome:
        """Write your task list for the work at hand: send ALL tasks every time, the list replaces the one before.

        Use it for work of several steps, and to carry out an approved plan: one task for each concrete step. Mark a task in_progress
        when you begin it (one at a time) and completed as soon as it is done. Leave it out for a single simple step.
        """
        if call.agent is None:
            raise ToolError("todo_write needs a calling agent: there is no session to keep the list", code="NO_AGENT")
        written = _checked(todos)
        counts = Counter(todo["status"] for todo in written)
        text = f"Updated todo list: {counts['pending']} pending, {counts['in_progress']} in progress, {counts['completed']} completed." + (
            _ADVICE if counts["in_progress"] > 1 else ""
        )
        return Outcome(text_result(text, value={"todos": written}), (draft("todo/write", {"todos": written}),))

    return tool_from(write, name=TODO_WRITE, replay="derived", present_call=present_call)


def _checked(todos: list[Todo]) -> list[dict[str, Any]]:
    """The list as it is logged: trimmed, none blank, none twice (deepseek-harness's durable rule)."""
    written = [{"content": todo.content.strip(), "status": todo.status} for todo in todos]
    for place, todo in enumerate(written, start=1):
        if not todo["content"]:
            raise ToolError(f"todo {place} has no content; say in one line what the task is, or leave it out", code="BAD_ARGUMENTS")
    repeated = [content for content, count in Counter(todo["content"] for todo in written).items() if count > 1]
    if repeated:
        raise ToolError(f"the todo {repeated[0]!r} is there more than once; send each task once", code="BAD_ARGUMENTS")
    return written


def present_call(arguments: str) -> Presentation | None:
    """The list as lines with a mark each; None where the arguments hold none."""
    try:
        sent = msgspec.json.decode(arguments, type=dict[str, list[Todo]])
    except msgspec.MsgspecError:
        return None
    todos = sent.get("todos")
    if todos is None:
        return None
    return Presentation("Todo list", "\n".join(f"{_MARKS[todo.status]} {todo.content}" for todo in todos))


def kept_todos(session: Session, staying: Sequence[Message]) -> str:
    """The list as it stands, for a conversation whose older part is replaced by a summary; "" where a call in ``staying`` wrote it."""
    todos = session.fold(TODOS)
    calls = (block for message in staying for block in message["content"] if block["type"] == "tool-call")
    if not todos or any(block["name"] == TODO_WRITE for block in calls):
        return ""
    lines = "\n".join(f"{_MARKS[todo['status']]} {todo['content']}" for todo in todos if todo["status"] in _MARKS)
    return f"The todo list as it stands.\n\n<todo-list>\n{lines}\n</todo-list>"


def install(seams: Seams) -> Undo:
    """Register the tool, and what stays of its list when a conversation is compacted. Returns the undo.

    Raises:
        ValueError: the name is taken.
    """
    return undo_all([seams.tools.register(todo_tool()), seams.compaction.keeps.register("todos", kept_todos)])
