"""The ``plan`` command: every person's selection, from every place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from planning import GUIDE, OFF, ON, modes, notices, planned, shows

from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.plan import PlanState, fold_plan_state
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.testing.workbench import Workbench

IMAGE = {"type": "image", "attachment": {"attachmentId": "0" * 64, "mediaType": "image/png", "bytes": 1, "width": 1, "height": 1}}
LEAVE = "Use %plan off to leave."


async def command(bench: Workbench, args: str = "", **more: Any) -> CommandResult:
    assert bench.seams.commands is not None
    return await bench.seams.commands.run("plan", CommandCall(bench.agent, args, **more))


def run(bench: Workbench, args: str = "", **more: Any) -> CommandResult:
    return asyncio.run(command(bench, args, **more))


def dsh_pending(bench: Workbench) -> bool:
    """What deepseek-harness's own projection would show of the log as pending: ours it skips, and only exact ``off`` leaves."""
    active, wanted, running = False, None, None
    for event in bench.session.events:
        data = event.data
        match event.type:
            case "command/run" if data["name"] == "plan":
                running = (data["commandId"], data["args"].strip() != "off")
            case "command/done" if running and data["commandId"] == running[0]:
                wanted, running = running[1] if data["kind"] == "success" and running[1] != active else None, None
            case "plan/mode":
                active, wanted = data["active"], None
    return wanted is not None and wanted != active


@pytest.mark.parametrize("args", ["", "on", "ON", " On ", "\t"])
def test_selecting_while_idle_is_recorded_at_once_and_says_how_to_leave(args: str) -> None:
    """Case 10: run, one ``plan/mode``, done; a second time none; no turn follows and the keyword is recorded as nothing."""
    bench = planned()
    assert run(bench, args) == CommandResult("success", f"Plan mode on. {LEAVE}")
    assert bench.types == ["command/run", "plan/mode", "command/done"]
    assert bench.events("command/run")[0].data["args"] == ""
    assert run(bench, args) == CommandResult("success", f"Plan mode is already on. {LEAVE}")
    assert modes(bench) == [True]
    assert not bench.agent.inbox.has_pending


@pytest.mark.parametrize("args", ["off", "OFF", " Off\t"])
def test_off_in_any_case_leaves_and_an_exported_log_is_not_pending(args: str) -> None:
    """Case 19: recorded as ``off``, so that deepseek-harness reads it right; when off already it says so and logs no switch."""
    bench = planned()
    assert run(bench, args) == CommandResult("success", "Plan mode is already inactive.")
    assert modes(bench) == []
    run(bench, "")
    assert run(bench, args) == CommandResult("success", "Plan mode off.")
    assert modes(bench) == [True, False]
    assert [event.data["args"] for event in bench.events("command/run")] == ["off", "", "off"]
    assert not dsh_pending(bench)
    assert fold_plan_state(bench.session.events) == PlanState(False, None)


def test_a_message_goes_to_the_model_as_an_ordinary_user_message_under_the_guidance() -> None:
    """Case 17: the command's turn starts after its ``command/done``."""

    async def main() -> None:
        bench = planned(say("ok"))
        result = await command(bench, "  add tests ")
        assert result == CommandResult("success", f"Plan mode on. {LEAVE}", turn=True)
        assert bench.types[-1] == "command/done"
        await bench.agent.run_turn()
        (message,) = [event.data for event in bench.events("user/message")]
        assert message["content"] == [{"type": "text", "text": "add tests"}]
        assert message["source"] == {"kind": "user"}
        assert shows(bench.model.requests[0])
        assert GUIDE in bench.model.requests[0].system
        assert bench.events("command/run")[0].data["args"] == "  add tests "

    asyncio.run(main())


VERBATIM = [
    'fix {x} under $HOME "quoted',
    "why does the join fail?",
    "keep the trailing \\",
    "off the legacy API",
    "on second thoughts",
    "two\n\n  lines\n\tkept",
    "offf",
    "計画 🇯🇵",
    '"off"',
]


@pytest.mark.parametrize("text", VERBATIM)
def test_a_message_is_taken_verbatim_but_for_outer_whitespace(text: str) -> None:
    """Cases 18 and 19: anything longer than the keyword is a message."""

    async def main() -> None:
        bench = planned(say("ok"))
        assert (await command(bench, f"\n {text}\t\n")).turn
        await bench.agent.run_turn()
        assert bench.events("user/message")[0].data["content"] == [{"type": "text", "text": text}]
        assert PlanMode.get(bench.agent) == PlanState(True, None)

    asyncio.run(main())


@pytest.mark.parametrize("text", ["off", "OFF", "on", " off\n"])
def test_a_cells_body_that_reads_as_a_keyword_is_a_message_and_leaves_nothing(text: str) -> None:
    """Nobody's log reads it as leaving: not ours, before its first ``plan/selected``, and not deepseek-harness's."""

    async def main() -> None:
        for repeated in (1, 2):
            bench = planned(say("ok"), say("ok"))
            for _ in range(repeated):
                assert (await command(bench, text, literal=True)).turn
                await bench.agent.run_turn()
            assert bench.events("user/message")[-1].data["content"] == [{"type": "text", "text": text.strip()}]
            assert PlanMode.get(bench.agent) == PlanState(True, None)
            assert "plan/selected" not in bench.types
            assert not dsh_pending(bench)

    asyncio.run(main())


def test_an_empty_body_selects_and_sends_nothing() -> None:
    """Nothing to say is no turn."""
    bench = planned()
    assert run(bench, " \n", literal=True) == CommandResult("success", f"Plan mode on. {LEAVE}")
    assert not bench.agent.inbox.has_pending


@pytest.mark.parametrize(("text", "blocks"), [("", []), ("look", [{"type": "text", "text": "look"}])])
def test_images_travel_ahead_of_the_text(text: str, blocks: list[Any]) -> None:
    """Case 20: also alone."""
    bench = planned()
    assert run(bench, text, images=(IMAGE, IMAGE)).turn
    (message,) = bench.agent.inbox.next_step
    assert message["content"] == [IMAGE, IMAGE, *blocks]


def test_off_with_images_is_refused_before_anything_changes() -> None:
    """Case 20: still active, nothing queued, and the caller keeps its images."""
    bench = planned()
    run(bench, "")
    before = PlanMode.get(bench.agent)
    result = run(bench, "off", images=(IMAGE,))
    assert result == CommandResult("error", "Images cannot go with %plan off: leave them out, or send them with a message.")
    assert PlanMode.get(bench.agent) == before == PlanState(True, None)
    assert modes(bench) == [True]
    assert bench.events("command/done")[-1].data["kind"] == "error"
    assert not bench.agent.inbox.has_pending
    assert not dsh_pending(bench)


ENTERING = f"Entering plan mode (applies from the next step). {LEAVE}"
LEAVING = "Leaving plan mode (applies from the next step)."
GOES = "Your message goes with the next step."


@pytest.mark.parametrize(
    ("active", "commands"),
    [
        (False, [("", ENTERING), ("", ENTERING), ("off", "Plan mode entry cancelled."), ("off", "Plan mode is already inactive.")]),
        (True, [("off", LEAVING), ("off", LEAVING), ("", f"Plan mode stays on. {LEAVE}"), ("", f"Plan mode is already on. {LEAVE}")]),
        (False, [("and tests", f"{ENTERING} {GOES}")]),
        (True, [("and tests", f"Plan mode is already on. {LEAVE} {GOES}")]),
        (True, [("off", LEAVING), ("and tests", f"Plan mode stays on. {LEAVE} {GOES}")]),
    ],
)
def test_while_a_turn_runs_it_is_accepted_queued_and_says_so(active: bool, commands: list[tuple[str, str]]) -> None:
    """Case 21: the request that runs is unchanged; the next step has it, and the message."""

    async def main() -> None:
        bench = planned()

        def step(request: Any) -> Any:
            running = asyncio.ensure_future(several())
            said.append(running)
            return call("note", {"text": "x"})

        async def several() -> list[str]:
            return [(await command(bench, args)).text for args, _ in commands]

        said: list[asyncio.Future[list[str]]] = []

        bench.model.add(step, say("ok"), say("ok"))
        if active:
            PlanMode.set(bench.agent, True)

        async def wait(proposed: Any, call_next: Any) -> Any:
            await asyncio.gather(*said)
            return await call_next(proposed)

        bench.seams.pre_step.register(wait)
        await bench.ask("go")
        assert await said[0] == [text for _, text in commands]
        target = commands[-1][0] != "off"
        assert [shows(request) for request in bench.model.requests] == [active, *[target] * (len(bench.model.requests) - 1)]
        if commands[-1][0] == "and tests":
            texts = [m["content"][0]["text"] for m in bench.model.requests[-1].messages if m["source"]["kind"] == "user"]
            assert texts == ["go", "and tests"]
        assert notices(bench) == ([] if target == active else [ON if target else OFF])
        assert not dsh_pending(bench)

    asyncio.run(main())


def test_without_a_command_registry_plan_mode_works_by_its_controller() -> None:
    """Commands and projections are optional; the rest degrades to nothing less."""

    async def main() -> None:
        bench = planned(say("ok"), seams=Seams.create(commands=False, projections=False))
        assert PlanMode.set(bench.agent, True) == "committed"
        await bench.ask("go")
        assert shows(bench.model.requests[0])

    asyncio.run(main())
