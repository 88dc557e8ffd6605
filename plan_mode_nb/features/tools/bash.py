"""``bash``: a shell command in the workspace, under the limits of the session.

Where a limit refused something, the person may be asked to let that one command run again without it. Nothing else widens a limit.
"""

from __future__ import annotations

import asyncio
import shutil
from typing import Annotated, Final

import msgspec

from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.agent.permission import Allowed, Verdict
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Presentation, Tool, ToolCall, ToolError, ToolResult
from plan_mode_nb.features.tools import process
from plan_mode_nb.features.tools.cap import Results, Spill
from plan_mode_nb.features.tools.contents import HEAD, Binary, kind_of
from plan_mode_nb.features.tools.process import Ran
from plan_mode_nb.log.messages import text_block

BASH: Final = "bash"
SECONDS: Final = 120
MAX_SECONDS: Final = 1_800
TITLE_LIMIT: Final = 80
STOPPED_LINE: Final = "[the command was stopped; what it had done until then stays done]"


def bash_tool(seams: Seams, results: Results) -> Tool:
    """The ``bash`` tool."""

    async def bash(
        call: ToolCall,
        command: Annotated[str, msgspec.Meta(description="The command, as for bash -c. Several lines are fine.")],
        timeout: Annotated[int, msgspec.Meta(ge=1, le=MAX_SECONDS, description="Seconds after which it is ended.")] = SECONDS,
    ) -> Outcome:
        """Run a shell command in the workspace folder; you get what it printed and its exit status.

        It runs in the user's sandbox mode: it may be kept from writing, or from writing outside the workspace, from writing .git, and from
        the network; /tmp is its own and empty at each call. If the sandbox refuses something, the user may be asked to let that one
        command run without it; do not try to get around it. Each call is a shell of its own, without keyboard input; what it leaves in
        the background ends with it. The user's variables are not there: use `python` for them.
        """
        if not command.strip():
            raise ToolError("the command is empty; send the shell command to run", code="BAD_ARGUMENTS")
        if "\0" in command:
            raise ToolError("the command holds a NUL character; send it without", code="BAD_ARGUMENTS")
        argv = [_shell(), "-c", command]
        launch = await seams.confinement.confined(call, argv)
        ran = await _run(launch, timeout)
        refused = launch.denied(_text(ran)) if ran.ending == "exited" else ""
        if not refused or ran.status == 0:
            return _outcome(_result(ran, timeout, results, _refused_line(refused, launch)))
        verdict = await _ask(seams, call, command, refused, _result(ran, timeout, results, _refused_line(refused, launch)))
        if not isinstance(verdict, Allowed):
            return Outcome(_result(ran, timeout, results, f"{_refused_line(refused, launch)[:-1]}; running it without was not allowed]"))
        again = await _run(seams.confinement.unconfined(call, argv), timeout)
        return _outcome(_result(again, timeout, results, "[the user let this command run again without the sandbox; this is that run]"))

    return tool_from(bash, name=BASH, present_call=present_command)


async def _ask(seams: Seams, call: ToolCall, command: str, refused: str, so_far: ToolResult) -> Verdict:
    """Whether the command may run again without limits. Stopped meanwhile: what it did under them is the call's result."""
    reason = f"the sandbox refused something that this command did ({refused}), so it would run again from its start without the sandbox"
    try:
        return await seams.permissions.ask(call, command, reason=reason)
    except asyncio.CancelledError:
        raise CallInterrupted(Outcome(so_far)) from None


async def _run(launch: Launch, seconds: int) -> Ran:
    try:
        return await process.run(launch, seconds=seconds)
    except OSError as error:
        raise ToolError(f"the command could not be started ({error.strerror or error}); use `python` instead", code="NOT_STARTED") from None


def _outcome(result: ToolResult) -> Outcome:
    """The result, handed over together with a stop that came while the command ran."""
    outcome = Outcome(result)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise CallInterrupted(outcome)
    return outcome


def _result(ran: Ran, seconds: int, results: Results, note: str) -> ToolResult:
    text = results.text(_text(ran)).rstrip("\n")
    lines = [*([text] if text else []), *filter(None, [_ending(ran, seconds), note])]
    blocks = (text_block("\n".join(lines) or "(no output)"),)
    match ran.ending:
        case "exited" if ran.status == 0:
            return ToolResult(blocks)
        case "exited":
            return ToolResult(blocks, is_error=True, error={"name": "CommandFailed", "code": "EXIT_STATUS"})
        case "late":
            return ToolResult(blocks, is_error=True, error={"name": "TimeoutError", "code": "COMMAND_TIMEOUT"})
        case "stopped":
            return ToolResult(blocks, is_error=True, error={"name": "AbortError", "code": "COMMAND_STOPPED"})


def _ending(ran: Ran, seconds: int) -> str:
    match ran.ending:
        case "exited" if ran.status == 0:
            return ""
        case "exited":
            return f"[exit status {ran.status}]" if ran.status > 0 else f"[ended by signal {-ran.status}]"
        case "late":
            return f"[ended after {seconds} s, before it had finished; send a larger timeout, or do less at once]"
        case "stopped":
            return STOPPED_LINE


def _refused_line(refused: str, launch: Launch) -> str:
    return f'[the sandbox seems to have refused something ("{refused}"; {launch.limits})]' if refused else ""


def _text(ran: Ran) -> str:
    """The output as text; of what is none, only what it is."""
    kind = kind_of(ran.head[:HEAD], whole=len(ran.head) <= HEAD)
    if isinstance(kind, Binary):
        size = len(ran.head) + ran.left_out + len(ran.tail)
        return f"[the output is {kind.kind}, {size:,} bytes; write it to a file instead]"
    if not ran.left_out:
        return (ran.head + ran.tail).decode("utf-8", "replace")
    gap = f"\n[{ran.left_out:,} bytes of output were not kept]\n"
    return ran.head.decode("utf-8", "replace") + gap + ran.tail.decode("utf-8", "replace")


def _shell() -> str:
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"


def present_command(arguments: str) -> Presentation | None:
    """The call as its command, titled by the first line; None where there is none."""
    try:
        command = msgspec.json.decode(arguments, type=dict[str, object]).get("command")
    except msgspec.MsgspecError:
        return None
    first = next((line.strip() for line in command.splitlines() if line.strip()), None) if isinstance(command, str) else None
    if first is None or not isinstance(command, str):
        return None
    return Presentation(first if len(first) <= TITLE_LIMIT else first[: TITLE_LIMIT - 1] + "…", command, "code")


def install(seams: Seams, spill: Spill | None = None) -> Undo:
    """Register the tool. ``spill`` keeps output that is too long for the model. Returns the undo.

    Raises:
        ValueError: the name is taken.
    """
    return seams.tools.register(bash_tool(seams, Results(seams.redactions.text, spill)))
