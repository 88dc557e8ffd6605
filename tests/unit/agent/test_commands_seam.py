"""Commands: run and done are logged in pairs, and never enter the model's history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plan_mode_nb.agent.commands import Command, CommandCall, CommandResult
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.testing.workbench import Workbench

IMAGE = {"type": "image", "attachment": {"attachmentId": "x", "mediaType": "image/png"}}


def run(bench: Workbench, name: str, args: str = "", **more: Any) -> CommandResult:
    commands = bench.seams.commands
    assert commands is not None
    cell = more.pop("cell", None)
    return asyncio.run(commands.run(name, CommandCall(bench.agent, args, **more), cell=cell))


def with_command(handler: Any, **more: Any) -> Workbench:
    bench = Workbench()
    assert bench.seams.commands is not None
    bench.seams.commands.register(Command("do", "Do it", handler, **more))
    return bench


def test_a_command_is_logged_as_run_and_done_paired_by_id_and_says_nothing_to_the_model() -> None:
    """Name, raw arguments and outcome; the history stays empty."""
    bench = with_command(lambda call: CommandResult("success", f"did {call.args}"))
    assert run(bench, "do", "  a  b ") == CommandResult("success", "did   a  b ")
    ran, done = bench.events()
    assert ran.data == {"commandId": "id-1", "name": "do", "args": "  a  b ", "source": {"kind": "user"}}
    assert done.data == {"commandId": "id-1", "kind": "success", "text": "did   a  b "}
    assert list(bench.session.fold(HISTORY)) == []


def test_the_cell_of_a_command_is_logged_directly_after_its_run_and_in_one_write() -> None:
    """Outside any turn: ``turn`` is null, the command's id says which."""
    bench = with_command(lambda call: CommandResult("success", ""))
    run(bench, "do", cell={"source": "abc"})
    assert bench.types == ["command/run", "notebook/cell", "command/done"]
    assert bench.events("notebook/cell")[0].data == {"turn": None, "command": "id-1", "source": "abc"}
    assert [len(write) for write in bench.sink.writes] == [2, 1]


def test_what_a_command_appends_stands_between_its_run_and_its_done() -> None:
    """So a reader knows which command did it; a coroutine handler may wait in between."""

    async def handle(call: CommandCall) -> CommandResult:
        await asyncio.sleep(0)
        call.agent.inbox.followup({"id": "m", "role": "user", "source": {"kind": "user"}, "content": []})
        return CommandResult("success", "", turn=True)

    bench = with_command(handle)
    assert run(bench, "do").turn
    assert bench.types == ["command/run", "agent/inbox/spliced", "command/done"]


def _bad(call: CommandCall) -> CommandResult:
    raise CommandError("say it with a number")


def _boom(call: CommandCall) -> CommandResult:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("handler", "text", "logged"), [(_bad, "say it with a number", 0), (_boom, "do failed: boom", 1)], ids=["refused", "crashed"]
)
def test_a_command_that_fails_is_done_with_an_error_and_one_sentence(
    handler: Any, text: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Expected or not; an unexpected failure is logged once."""
    bench = with_command(handler)
    assert run(bench, "do") == CommandResult("error", text)
    assert bench.events("command/done")[0].data == {"commandId": "id-1", "kind": "error", "text": text}
    assert len(caplog.records) == logged


def test_a_command_that_is_interrupted_is_done_with_an_error() -> None:
    """The pair is always complete in a live process."""

    async def handle(call: CommandCall) -> CommandResult:
        raise asyncio.CancelledError

    bench = with_command(handle)
    with pytest.raises(asyncio.CancelledError):
        run(bench, "do")
    assert bench.events("command/done")[0].data["kind"] == "error"


def test_an_unknown_command_and_images_for_a_command_that_takes_none_are_refused_before_anything_is_logged() -> None:
    """The sentence says what there is, or what to leave out."""
    bench = with_command(lambda call: CommandResult("success", ""))
    with pytest.raises(CommandError, match="there is no command 'dp'; there are do"):
        run(bench, "dp")
    with pytest.raises(CommandError, match="do takes no images; leave them out"):
        run(bench, "do", images=(IMAGE,))
    assert bench.types == []
    with pytest.raises(CommandError, match="there are none"):
        run(Workbench(), "do")


def test_a_command_decides_what_is_recorded_of_its_arguments_and_secrets_are_taken_out_of_both_sides() -> None:
    """The handler gets the text as typed; the log does not."""
    heard: list[str] = []

    def handle(call: CommandCall) -> CommandResult:
        heard.append(call.args)
        return CommandResult("success", f"key {call.args}")

    bench = with_command(handle, recorded_args=lambda call: call.args.upper())
    bench.seams.redactions.register("secret", lambda text: text.replace("HUNTER22", "[redacted:PW]").replace("hunter22", "[redacted:PW]"))
    run(bench, "do", "hunter22")
    assert heard == ["hunter22"]
    assert [event.data.get("args", event.data.get("text")) for event in bench.events()] == ["[redacted:PW]", "key [redacted:PW]"]


def test_a_composition_may_have_no_commands_and_no_projections() -> None:
    """Plugins then do without."""
    seams = Seams.create(commands=False, projections=False)
    assert (seams.commands, seams.projections) == (None, None)
