"""``write`` and ``edit``: changing files, under the limits of the session.

What may be written is checked here, for the sake of a clear answer, and enforced elsewhere: the change is made by a program of its own that
is confined like any other, so a link that is put in the way meanwhile leads nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Presentation, Tool, ToolCall, ToolError, text_result
from plan_mode_nb.features.tools import process
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.features.tools.contents import NOTEBOOK_SUFFIX
from plan_mode_nb.features.tools.paths import Workspace

WRITE: Final = "write"
EDIT: Final = "edit"
SECONDS: Final = 60
REDACTED: Final = "[redacted:"
_WORKER: Final = Path(__file__).with_name("file_worker.py")
_GIT: Final = ".git"
_Path = Annotated[str, msgspec.Meta(description="The file, relative to the workspace or absolute.")]


def write_tool(seams: Seams, workspace: Workspace, results: Results) -> Tool:
    """The ``write`` tool."""

    async def write(
        call: ToolCall, path: _Path, content: Annotated[str, msgspec.Meta(description="The whole text of the file, as UTF-8.")]
    ) -> Outcome:
        """Write a whole text file: a new one, or in place of what was there. Missing folders are made.

        To change a part of a file use `edit`. The user's sandbox mode decides where writing is possible.
        """
        _refuse_marks(content)
        file, launch = await _target(seams, call, workspace, path)
        answer = await _worker(launch, {"act": "write", "path": str(file), "content": content})
        shown = workspace.show(file)
        _refuse(answer, shown)
        was = answer["was_lines"]
        made = "new file" if was is None else f"in place of {_lines(was)}"
        return _outcome(results.text(f"wrote {shown}: {_lines(answer['lines'])}, {made}"))

    return tool_from(write, name=WRITE, present_call=present_change)


def edit_tool(seams: Seams, workspace: Workspace, results: Results) -> Tool:
    """The ``edit`` tool."""

    async def edit(
        call: ToolCall,
        path: _Path,
        old: Annotated[str, msgspec.Meta(description="The text to replace, exactly as in the file, without line numbers.")],
        new: Annotated[str, msgspec.Meta(description="What stands there afterwards; empty to delete it.")],
        all: Annotated[bool, msgspec.Meta(description="Replace every place where it stands, not just the one.")] = False,
    ) -> Outcome:
        """Replace a text in a file. It must stand there exactly once, unless you say `all`: send enough lines around it.

        Read the file first. Notebooks are not edited this way.
        """
        if not old:
            raise ToolError("the old text is empty; send the text to replace, or use write for a new file", code="BAD_ARGUMENTS")
        _refuse_marks(old, new)
        file, launch = await _target(seams, call, workspace, path)
        answer = await _worker(launch, {"act": "edit", "path": str(file), "old": old, "new": new, "all": all})
        shown = workspace.show(file)
        _refuse(answer, shown)
        return _outcome(results.text(f"edited {shown}: {_replaced(answer)}, now {_lines(answer['lines'])}"))

    return tool_from(edit, name=EDIT, present_call=present_change)


def _refuse_marks(*texts: str) -> None:
    """A mark stands for a secret that the model was not shown; written down, it would take the secret's place for good."""
    if any(REDACTED in text for text in texts):
        raise ToolError(
            f"nothing was written: the text holds {REDACTED}…], which stands for a secret that you were not shown; leave that part as it "
            "is in the file, or have the program read it from its environment",
            code="REDACTED_TEXT",
        )


async def _target(seams: Seams, call: ToolCall, workspace: Workspace, path: str) -> tuple[Path, Launch]:
    """The file without links, and the launch of what changes it.

    Raises:
        ToolError: the limits of the session, or what the file is, forbid it; nothing was started.
    """
    file = Path(os.path.realpath(workspace.find(path)))
    launch = await seams.confinement.confined(call, [sys.executable, "-I", "-S", "-X", "utf8", str(_WORKER)])
    try:
        _check(file, workspace, launch)
    except ToolError:
        launch.close()
        raise
    return file, launch


def _check(file: Path, workspace: Workspace, launch: Launch) -> None:
    shown, root = workspace.show(file), Path(os.path.realpath(workspace.root))
    match launch.scope:
        case "nothing":
            raise ToolError(f"{shown} was not written: {launch.limits}, which keeps every file as it is", code="SANDBOX_DENIED")
        case "workspace" if not file.is_relative_to(root):
            raise ToolError(f"{shown} was not written: it lies outside the workspace ({launch.limits})", code="SANDBOX_DENIED")
        case "workspace" if _GIT in file.relative_to(root).parts:
            raise ToolError(f"{shown} was not written: a repository's {_GIT} stays as it is ({launch.limits})", code="SANDBOX_DENIED")
        case _:
            pass
    if file.suffix.lower() == NOTEBOOK_SUFFIX and file.exists():
        raise ToolError(
            f"{shown} was not written: a notebook that exists is not changed as text, because an open page and the conversation that it "
            "keeps would be lost; tell the user which cells to change, or write a new notebook",
            code="IS_NOTEBOOK",
        )


async def _worker(launch: Launch, request: dict[str, Any]) -> dict[str, Any]:
    """The worker's answer."""
    try:
        ran = await process.run(launch, seconds=SECONDS, given=json.dumps(request).encode())
    except OSError as error:
        raise ToolError(f"the file could not be written ({error.strerror or error}); use `python` instead", code="NOT_STARTED") from None
    try:
        answer = json.loads(ran.head)
    except ValueError:
        said = ran.head.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"status {ran.status}"
        raise ToolError(f"the file could not be written ({said}); read it to see how it is now", code="WRITE_FAILED") from None
    return dict(answer)


def _outcome(text: str) -> Outcome:
    outcome = Outcome(text_result(text))
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise CallInterrupted(outcome)
    return outcome


def _refuse(answer: dict[str, Any], shown: str) -> None:
    """Turn a problem into a sentence that says what to send instead."""
    match answer.get("problem"):
        case None:
            return
        case "missing":
            raise ToolError(f"{shown} does not exist; find it with glob, or make it with write", code="NOT_FOUND")
        case "not-a-file":
            raise ToolError(f"{shown} is a folder, link or device; send the path of a regular file", code="NOT_A_FILE")
        case "not-text":
            raise ToolError(f"{shown} is not UTF-8 text; change it with `python`, which can keep its encoding", code="NOT_TEXT")
        case "large":
            raise ToolError(f"{shown} is too large to change here; use `python`", code="TOO_LARGE")
        case "same":
            raise ToolError("the new text is the old one; send what should stand there instead", code="BAD_ARGUMENTS")
        case "several":
            where = ", ".join(map(str, answer["places"])) + (", …" if answer["count"] > len(answer["places"]) else "")
            raise ToolError(
                f"the old text stands in {shown} {answer['count']} times (lines {where}); send more of the lines around the one you mean, "
                "or all: true",
                code="NOT_UNIQUE",
            )
        case "absent":
            raise ToolError(f"the old text does not stand in {shown}{_instead(answer['near'])}", code="NO_MATCH")
        case _:
            raise ToolError(f"{shown} could not be written: {answer.get('text')}", code="WRITE_FAILED")


def _instead(near: str) -> str:
    match near:
        case "":
            return "; read it again and send the text exactly as it is there"
        case "white space":
            return " with this white space: read it again and send spaces, tabs and line ends exactly as they are there"
        case line:
            return f"; the nearest line there is {line!r}: read it again and send the text exactly"


def _replaced(answer: dict[str, Any]) -> str:
    count, places = answer["count"], ", ".join(map(str, answer["places"]))
    if count == 1:
        return f"1 place, at line {places}"
    return f"{count} places, at lines {places}" + (", …" if count > len(answer["places"]) else "")


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"


def present_change(arguments: str) -> Presentation | None:
    """The call titled by its path, with what would be written; None where there is no path."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, object])
    except msgspec.MsgspecError:
        return None
    path, text = given.get("path"), given.get("content", given.get("new", ""))
    return Presentation(path, str(text), "code") if isinstance(path, str) and path.strip() else None


def install(seams: Seams, root: Path) -> Undo:
    """Register both tools. ``root``: the workspace. Returns the undo.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    workspace, results = Workspace(root.absolute()), Results(seams.redactions.text)
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        for tool in (write_tool(seams, workspace, results), edit_tool(seams, workspace, results)):
            undos.append(seams.tools.register(tool))
    except ValueError:
        undo()
        raise
    return undo
