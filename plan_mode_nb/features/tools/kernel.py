"""The tools for the notebook's Python: ``python`` runs code in the person's namespace, ``variables`` tells what is there."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Annotated, Final

import msgspec

from plan_mode_nb.agent.attachments import ImageError, image_block
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.shell import Shell, ShellImage, ShellResult
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Presentation, Tool, ToolCall, ToolError, ToolResult
from plan_mode_nb.features.tools.cap import Results, Spill
from plan_mode_nb.features.tools.variables import describe
from plan_mode_nb.log.messages import Block, text_block

PYTHON: Final = "python"
VARIABLES: Final = "variables"
MAX_IMAGES: Final = 10
TITLE_LIMIT: Final = 80
INTERRUPTED_LINE: Final = "[the code was interrupted; what it had done until then stays done]"


def python_tool(seams: Seams, shell: Shell, results: Results) -> Tool:
    """The ``python`` tool. It needs a permission, because nothing confines code in the kernel process; a replay runs it again."""

    async def python(
        call: ToolCall, code: Annotated[str, msgspec.Meta(description="The code, as you would write it in one notebook cell.")]
    ) -> Outcome:
        """Run Python in the user's notebook kernel, as a cell would: their variables are yours, and what you assign stays for later cells.

        You get what it printed, the value of its last expression, its figures, and a traceback if it failed. IPython magics, ``!`` shell
        lines and top-level await work; reading from the keyboard does not. The user sees the figures and tables that it displays.
        """
        if not code.strip():
            raise ToolError("the code is empty; send the Python to run", code="BAD_ARGUMENTS")
        await seams.permissions.require(call, code)
        ran = await shell.run(code, call_id=call.call_id)
        outcome = Outcome(_result(ran, results, seams.attachments))
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise CallInterrupted(outcome)
        return outcome

    return tool_from(python, name=PYTHON, replay="rebuilds", present_call=present_code)


def _result(ran: ShellResult, results: Results, attachments: MutableMapping[str, bytes]) -> ToolResult:
    images, notes = _images(ran.images, attachments)
    if ran.status == "interrupted":
        notes.append(INTERRUPTED_LINE)
    text = results.text(ran.text)
    if notes:
        text = "\n".join([*([text.rstrip("\n")] if text else []), *notes])
    blocks = (text_block(text or "(no output)"), *images)
    match ran.status:
        case "ok":
            return ToolResult(blocks)
        case "error":
            return ToolResult(blocks, is_error=True, error={"name": "PythonError", "code": "PYTHON_ERROR"})
        case "interrupted":
            return ToolResult(blocks, is_error=True, error={"name": "KeyboardInterrupt", "code": "PYTHON_INTERRUPTED"})


def _images(shown: Sequence[ShellImage], attachments: MutableMapping[str, bytes]) -> tuple[list[Block], list[str]]:
    """Blocks for the figures that a model can be shown, and a line for each that it cannot."""
    blocks: list[Block] = []
    notes: list[str] = []
    for number, image in enumerate(shown, start=1):
        if len(blocks) == MAX_IMAGES:
            notes.append(f"[{len(shown) - number + 1} more figures, shown to the user only: a result carries at most {MAX_IMAGES}]")
            break
        try:
            blocks.append(image_block(attachments, image.data, name=f"figure {number}"))
        except ImageError as error:
            notes.append(f"[figure {number} ({image.media_type}), shown to the user only: {error}]")
    return blocks, notes


def present_code(arguments: str) -> Presentation | None:
    """The call as the code that it holds, titled by its first line (a comment without its mark); None where there is none."""
    try:
        code = msgspec.json.decode(arguments, type=dict[str, str]).get("code", "")
    except msgspec.MsgspecError:
        return None
    first = next((line.strip() for line in code.splitlines() if line.strip(" \t#")), None)
    if first is None:
        return None
    title = first.lstrip("# ") if first.startswith("#") else first
    return Presentation(title if len(title) <= TITLE_LIMIT else title[: TITLE_LIMIT - 1] + "…", code, "code")


def variables_tool(shell: Shell, results: Results) -> Tool:
    """The ``variables`` tool. It only looks: no permission is needed."""

    async def variables(
        names: Annotated[
            list[str] | None, msgspec.Meta(description="The variables to show in full; left out: an overview of all of them.")
        ] = None,
    ) -> str:
        """Show the variables of the user's notebook: name, type, size and a short value; of data frames the shape, types and first rows.

        It runs no code of yours. Look here first, before you print things with `python`.
        """
        namespace = await shell.namespace()
        text: str = await shell.inspect(describe, namespace, names)
        return results.text(text)

    return tool_from(variables, name=VARIABLES)


def install(seams: Seams, shell: Shell, spill: Spill | None = None) -> Undo:
    """Register both tools. ``spill`` keeps results that are too long for the model. Returns the undo.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    results = Results(seams.redactions.text, spill)
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        undos.append(seams.tools.register(python_tool(seams, shell, results)))
        undos.append(seams.tools.register(variables_tool(shell, results)))
    except ValueError:
        undo()
        raise
    return undo
