"""``run_code``: the agent's tools as functions of one Python program.

The program itself is confined like any program that the agent starts; what it calls runs where it always does, under the same approvals.
Only what it prints goes to the model. Every call that it makes is in the log.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from plan_mode_nb.agent.dispatch import call_inside
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Presentation, Tool, ToolCall, ToolError, ToolResult
from plan_mode_nb.features.code_mode import program, sdk
from plan_mode_nb.features.code_mode.program import Ran
from plan_mode_nb.features.code_mode.sdk import RUN_CODE
from plan_mode_nb.features.tools.cap import Results, Spill
from plan_mode_nb.features.tools.kernel import MAX_IMAGES, TITLE_LIMIT, present_code
from plan_mode_nb.log.messages import Block, text_block, text_of

SECTION: Final = "code:sdk"
SECTION_ORDER: Final = 150
"""Among the guidance for tools (dsh's place): it changes only with the tools, so all of it stays cached across a switch of plan mode."""
SECONDS: Final = 120
MAX_SECONDS: Final = 1_800
MAX_CALLS: Final = 200
STOPPED_LINE: Final = "[the program was stopped; what it had done until then stays done]"


def run_code_tool(seams: Seams, results: Results) -> Tool:
    """The ``run_code`` tool."""

    async def run_code(
        call: ToolCall,
        code: Annotated[str, msgspec.Meta(description="The program, plain Python. Begin with a comment that says what it does.")],
        timeout: Annotated[
            int, msgspec.Meta(ge=1, le=MAX_SECONDS, description="Seconds of its own after which it is ended; calls of tools do not count.")
        ] = SECONDS,
    ) -> Outcome:
        """Run a Python program in which your tools are functions, as the system prompt lists them: for loops over calls, and for results
        that are worth only a line of yours. You get what it prints and the value of its last expression.

        It is a process of its own, confined by the user's sandbox mode, and starts empty each time. For the user's variables call
        `python` from it.
        """
        if not code.strip():
            raise ToolError("the program is empty; send the Python to run", code="BAD_ARGUMENTS")
        inner = _Inner(seams, call)
        launch = await seams.confinement.confined(call, program.command())
        try:
            ran = await program.run(launch, code, sdk.functions(seams.tools.schemas()), seconds=timeout, call=inner.run)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ToolError(f"the program could not be started ({reason}); call your tools one by one", code="NOT_STARTED") from None
        outcome = Outcome(_result(ran, timeout, results, inner))
        task = asyncio.current_task()
        if ran.ending == "stopped" or (task is not None and task.cancelling()):
            raise CallInterrupted(outcome)
        return outcome

    return tool_from(run_code, name=RUN_CODE, present_call=present_program)


def present_program(arguments: str) -> Presentation | None:
    """The call as its program, titled by the first comment, else by the first line that imports nothing; None where there is none."""
    shown = present_code(arguments)
    if shown is None:
        return None
    lines = [line.strip() for line in shown.body.splitlines() if line.strip(" \t#")]
    comments = (line.lstrip("# ") for line in lines if line.startswith("#"))
    acts = (line for line in lines if not line.startswith(("import ", "from ")))
    title = next(itertools.chain(comments, acts), shown.title)
    return replace(shown, title=title if len(title) <= TITLE_LIMIT else f"{title[: TITLE_LIMIT - 1]}…")


class _Inner:
    """The calls of one program, in order. ``images``: those that tools gave it, which the model gets with the result."""

    def __init__(self, seams: Seams, outer: ToolCall) -> None:
        self.images: list[Block] = []
        self._seams = seams
        self._outer = outer
        self._made = 0

    async def run(self, name: str, arguments: Any) -> dict[str, Any]:
        """The answer to one call.

        Raises:
            asyncio.CancelledError: the turn was stopped meanwhile; what the call did is in the log.
        """
        if name == RUN_CODE:
            return {"error": f"a program cannot start another with {RUN_CODE}; do it in this one"}
        if self._made >= MAX_CALLS:
            return {"error": f"{name} was not called: a program may make {MAX_CALLS} calls; go on in another one"}
        try:
            result, stop = await call_inside(self._seams, self._outer, self._made + 1, name, arguments)
        except ToolError as error:
            return {"error": str(error)}
        self._made += 1
        if stop is not None:
            raise stop
        if result.is_error:
            return {"error": text_of(result.content).removeprefix("Error: ")}
        self.images += [block for block in result.content if block.get("type") == "image"]
        return {"value": _value(result)}


def _value(result: ToolResult) -> Any:
    """What the program gets: the structured result where there is one that JSON can say, else the text."""
    if result.value is not None:
        try:
            value = msgspec.to_builtins(result.value)
            json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return _text(result)
        return value
    return _text(result)


def _text(result: ToolResult) -> str:
    """Without the line end that a printed text ends in: a program compares and splits it."""
    return text_of(result.content).removesuffix("\n")


def _result(ran: Ran, seconds: int, results: Results, inner: _Inner) -> ToolResult:
    images = inner.images[:MAX_IMAGES]
    left_out = len(inner.images) - len(images)
    notes = [_ended(ran, seconds), _hint(ran), f"[{left_out} more images, shown to the user only]" if left_out else ""]
    text = results.text(ran.output).rstrip("\n")
    lines = [*([text] if text else []), *filter(None, notes)]
    blocks = (text_block("\n".join(lines) or "(no output: print what you want to see)"), *images)
    match ran.ending:
        case "ok":
            return ToolResult(blocks)
        case "error" | "exit":
            return ToolResult(blocks, is_error=True, error={"name": "ProgramError", "code": "PROGRAM_FAILED"})
        case "late":
            return ToolResult(blocks, is_error=True, error={"name": "TimeoutError", "code": "PROGRAM_TIMEOUT"})
        case "died":
            return ToolResult(blocks, is_error=True, error={"name": "ProgramError", "code": "PROGRAM_DIED"})
        case "stopped":
            return ToolResult(blocks, is_error=True, error={"name": "AbortError", "code": "PROGRAM_STOPPED"})


def _ended(ran: Ran, seconds: int) -> str:
    match ran.ending:
        case "ok" | "error":
            return ""
        case "exit":
            return "[the program ended itself]"
        case "late":
            return f"[ended after {seconds} s of its own, before it had finished; send a larger timeout, or do less at once]"
        case "died":
            return f"[the program's process ended in the middle: {ran.why}]"
        case "stopped":
            return STOPPED_LINE


def _hint(ran: Ran) -> str:
    """What a model most often takes for granted here, and is not so."""
    last = ran.output.rstrip().rpartition("\n")[2]
    if ran.ending == "error" and last.startswith("NameError:"):
        return "[a program begins with none of the user's variables: python(code=…) reaches them, and prints what it should return]"
    if ran.ending == "error" and last.startswith("SyntaxError:"):
        return "[a program is plain Python: for shell lines call bash(command=…), for magics python(code=…)]"
    return ""


def install(seams: Seams, spill: Spill | None = None) -> Undo:
    """Register the tool and the section that lists the others as functions. ``spill`` keeps output that is too long for the model.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        undos.append(seams.tools.register(run_code_tool(seams, Results(seams.redactions.text, spill))))
        undos.append(seams.sections.register(SECTION, SECTION_ORDER, lambda context: sdk.section(seams.tools.schemas())))
    except ValueError:
        undo()
        raise
    return undo
