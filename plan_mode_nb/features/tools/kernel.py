"""The tools for the notebook's Python: ``python`` runs code in the person's namespace or beside it, ``variables`` tells what is there."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec

from plan_mode_nb.agent.attachments import ImageError, image_block
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.shell import Shell, ShellImage, ShellResult
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Presentation, Replayed, Tool, ToolCall, ToolError, ToolResult, error_result
from plan_mode_nb.features.tools.cap import Results, Spill
from plan_mode_nb.features.tools.copies import Copies, copy_all, refuse
from plan_mode_nb.features.tools.scratch import Scratch, ScratchRun
from plan_mode_nb.features.tools.variables import describe
from plan_mode_nb.log.messages import Block, text_block

PYTHON: Final = "python"
VARIABLES: Final = "variables"
MAX_IMAGES: Final = 10
TITLE_LIMIT: Final = 80
SECONDS: Final = 120
MAX_SECONDS: Final = 1_800
FIGURES: Final = {"figures": "shown"}
"""The ``meta`` of a result whose figures are displayed from the log, because no code of the kernel displayed them."""
Where = Literal["kernel", "scratch"]
_Seconds = Annotated[int, msgspec.Meta(ge=1, le=MAX_SECONDS)]
INTERRUPTED_LINE: Final = "[the code was interrupted; what it had done until then stays done]"


def python_tool(seams: Seams, shell: Shell, scratch: Scratch, results: Results) -> Tool:
    """The ``python`` tool. In the kernel it needs a permission, because nothing confines code there; a replay runs only that again."""

    async def python(
        call: ToolCall,
        code: Annotated[str, msgspec.Meta(description="The code, as you would write it in one notebook cell.")],
        where: Annotated[Where, msgspec.Meta(description="The user's kernel, or a scratch process beside it.")] = "kernel",
        variables: Annotated[
            list[str] | None, msgspec.Meta(description="Only with scratch: variables of the notebook that are copied there first.")
        ] = None,
        timeout: Annotated[
            _Seconds | None, msgspec.Meta(description=f"Only with scratch: seconds until it is ended; {SECONDS} if left out.")
        ] = None,
    ) -> Outcome:
        """Run Python, as a notebook cell would: in the user's kernel, where their variables are yours and what you assign stays.

        You get what it printed, the value of its last expression, its figures, and a traceback if it failed. IPython magics, ``!`` shell
        lines and top-level await work; reading from the keyboard does not. The user sees the figures and tables that it displays.

        Nothing confines code in the kernel, so without full access the user is asked before each such call. To look, try out or compute
        without changing the notebook, use the scratch process: it runs in the user's sandbox mode, as `bash` does, and works on copies of
        the variables that you name. What you assign there stays until this turn ends.
        """
        if not code.strip():
            raise ToolError("the code is empty; send the Python to run", code="BAD_ARGUMENTS")
        match where:
            case "kernel":
                if variables or timeout is not None:
                    raise ToolError(_ONLY_SCRATCH, code="BAD_ARGUMENTS")
                await seams.permissions.require(call, code)
                return _handed(Outcome(_result(await shell.run(code, call_id=call.call_id), results, seams.attachments)))
            case "scratch":
                copies = await _copies(call, shell, variables or ())
                try:
                    ran = await scratch.run(call, code, copies, timeout or SECONDS)
                except asyncio.CancelledError:
                    _stopped_before(call)
                return _handed(Outcome(_scratch_result(ran, timeout or SECONDS, results, seams.attachments)))

    return tool_from(python, name=PYTHON, replay="rebuilds", replay_call=replay_of, present_call=present_code)


_ONLY_SCRATCH: Final = (
    'variables and timeout are for where: "scratch" only: code in the kernel has all variables, and runs until it is done or the user '
    "stops it; send it without them"
)


def replay_of(arguments: str) -> Replayed:
    """Later cells need what code made in the kernel, and nothing that the scratch process made."""
    return "played" if _decoded(arguments).get("where") == "scratch" else "rebuilds"


async def _copies(call: ToolCall, shell: Shell, names: Sequence[str]) -> dict[str, bytes]:
    """Copies of the named variables, made on the thread that owns them."""
    if not names:
        return {}
    try:
        copies: Copies = await shell.inspect(copy_all, await shell.namespace(), names)
    except asyncio.CancelledError:
        _stopped_before(call)
    if copies.refused:
        raise refuse(copies.refused)
    return copies.data


def _stopped_before(call: ToolCall) -> NoReturn:
    message = f"the turn was stopped before the code of {call.name} began; it did not run"
    raise CallInterrupted(Outcome(error_result(message, name="AbortError", code="PYTHON_INTERRUPTED"))) from None


def _handed(outcome: Outcome) -> Outcome:
    """The outcome, handed over together with a stop that came while the code ran."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise CallInterrupted(outcome)
    return outcome


def _result(ran: ShellResult, results: Results, attachments: MutableMapping[str, bytes]) -> ToolResult:
    notes = [INTERRUPTED_LINE] if ran.status == "interrupted" else []
    blocks = _blocks(ran.text, _images(ran.images, attachments, "shown to the user only"), notes, results)
    match ran.status:
        case "ok":
            return ToolResult(blocks)
        case "error":
            return ToolResult(blocks, is_error=True, error={"name": "PythonError", "code": "PYTHON_ERROR"})
        case "interrupted":
            return ToolResult(blocks, is_error=True, error={"name": "KeyboardInterrupt", "code": "PYTHON_INTERRUPTED"})


def _scratch_result(ran: ScratchRun, seconds: int, results: Results, attachments: MutableMapping[str, bytes]) -> ToolResult:
    notes = list(ran.notes)
    if ran.ending == "late":
        notes.insert(0, f"[ended after {seconds} s, before it had finished; send a larger timeout, or do less at once]")
    elif ran.ending == "interrupted" and ran.kept:
        notes.insert(0, INTERRUPTED_LINE)
    blocks = _blocks(ran.text, _images(ran.images, attachments, "left out"), notes, results)
    meta = FIGURES if len(blocks) > 1 else None
    match ran.ending:
        case "ok":
            return ToolResult(blocks, meta=meta)
        case "error":
            return ToolResult(blocks, is_error=True, error={"name": "PythonError", "code": "PYTHON_ERROR"}, meta=meta)
        case "interrupted":
            return ToolResult(blocks, is_error=True, error={"name": "KeyboardInterrupt", "code": "PYTHON_INTERRUPTED"}, meta=meta)
        case "late":
            return ToolResult(blocks, is_error=True, error={"name": "TimeoutError", "code": "PYTHON_TIMEOUT"}, meta=meta)
        case "died":
            return ToolResult(blocks, is_error=True, error={"name": "PythonError", "code": "SCRATCH_DIED"}, meta=meta)


def _blocks(said: str, images: tuple[list[Block], list[str]], notes: Sequence[str], results: Results) -> tuple[Block, ...]:
    """The text, its last lines the notes, then the figures. ``images``: their blocks, and lines about others."""
    shown, unseen = images
    text, lines = results.text(said), [*unseen, *notes]
    if lines:
        text = "\n".join([*([text.rstrip("\n")] if text else []), *lines])
    return (text_block(text or "(no output)"), *shown)


def _images(shown: Sequence[ShellImage], attachments: MutableMapping[str, bytes], other: str) -> tuple[list[Block], list[str]]:
    """Blocks for the figures that a model can be shown, and a line for each that it cannot. ``other``: what becomes of those, in words."""
    blocks: list[Block] = []
    notes: list[str] = []
    for number, image in enumerate(shown, start=1):
        if len(blocks) == MAX_IMAGES:
            notes.append(f"[{len(shown) - number + 1} more figures, {other}: a result carries at most {MAX_IMAGES}]")
            break
        try:
            blocks.append(image_block(attachments, image.data, name=f"figure {number}"))
        except ImageError as error:
            notes.append(f"[figure {number} ({image.media_type}), {other}: {error}]")
    return blocks, notes


def _decoded(arguments: str) -> dict[str, Any]:
    """The arguments as an object; empty where they are none."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def present_code(arguments: str) -> Presentation | None:
    """The call as the code that it holds, titled by its first line (a comment without its mark); None where there is none."""
    given = _decoded(arguments)
    code = given.get("code")
    first = next((line.strip() for line in code.splitlines() if line.strip(" \t#")), None) if isinstance(code, str) else None
    if first is None or not isinstance(code, str):
        return None
    title = first.lstrip("# ") if first.startswith("#") else first
    title = f"scratch: {title}" if given.get("where") == "scratch" else title
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


def install(seams: Seams, shell: Shell, spill: Spill | None = None, *, scratch_program: Sequence[str] = ()) -> Undo:
    """Register both tools. Returns the undo.

    ``spill`` keeps results that are too long for the model. ``scratch_program``: what runs code beside the kernel; empty: nothing does.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    results, scratch = Results(seams.redactions.text, spill), Scratch(seams, scratch_program)
    undos: list[Undo] = [scratch.close]
    undo = undo_all(undos)
    try:
        undos.append(seams.tools.register(python_tool(seams, shell, scratch, results)))
        undos.append(seams.tools.register(variables_tool(shell, results)))
    except ValueError:
        undo()
        raise
    return undo
