"""Tools that the model called and that are gone: said once, in the step that offers the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.features import missing_tools
from plan_mode_nb.features.missing_tools import CALLED_TOOLS, PLUGIN, notice
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.workbench import Workbench


def tool(name: str) -> Callable[[Seams], Undo]:
    """A plugin that adds a tool of this name."""

    async def run(call: ToolCall) -> Outcome:
        return Outcome(text_result("ran"))

    return lambda seams: seams.tools.register(Tool(name, "", {"type": "object"}, run))


def told(bench: Workbench) -> list[str]:
    """The notices in the log."""
    return [event.data["content"][0]["text"] for event in bench.events("user/message") if event.data["source"].get("plugin") == PLUGIN]


def after(*calls: str, offered: Any) -> list[str]:
    """The lines of a turn that another composition ran: what was offered and what was called."""
    session = logs.new_session()
    header = logs.request_header("initial", tools=offered)
    session.append(logs.turn_start(1), logs.step_start(1, 1), logs.user(), header)
    session.append(logs.assistant(1, 1, *(logs.call_block(f"c{number}", name, {}) for number, name in enumerate(calls))))
    for number, name in enumerate(calls):
        session.append(logs.tool_call(1, 1, f"c{number}", name, {}), logs.tool_result(1, 1, f"c{number}", "x"))
    session.append(logs.step_end(1, 1), logs.turn_end(1))
    return list(session.lines)


def offer(*names: str) -> list[dict[str, Any]]:
    """A header's list of tools."""
    return [{"name": name, "description": "", "parameters": {}} for name in names]


@pytest.mark.parametrize(
    ("calls", "offered", "gone"),
    [
        (("bash", "here", "edit", "bash"), offer("bash", "edit", "here"), ("bash", "edit")),
        (("bash",), "the tools of a template", ("bash",)),
        (("here",), offer("bash", "here"), ()),
        (("made_up",), offer("here"), ()),
    ],
    ids=["called and gone", "a header that does not say", "offered, never called", "never offered"],
)
def test_what_was_called_and_is_gone_is_told_once(calls: tuple[str, ...], offered: Any, gone: tuple[str, ...]) -> None:
    """In order of the first call, ahead of the prompt; the request after it says no more."""

    async def main() -> None:
        bench = Workbench(
            say("one"), say("two"), lines=after(*calls, offered=offered), install=[tool("here"), missing_tools.install], ids="new"
        )
        await bench.ask("go on")
        await bench.ask("and on")
        assert told(bench) == ([notice(gone)] if gone else [])
        first = [message["content"][0].get("text") for message in bench.model.requests[0].messages[-2:]]
        assert first[1] == "go on"
        assert (first[0] == notice(gone)) is bool(gone)

    asyncio.run(main())


def test_a_call_to_a_tool_that_never_was_is_answered_by_its_result_alone() -> None:
    """The model's own invention needs no notice."""

    async def main() -> None:
        bench = Workbench([call("made_up", {})], say("sorry"), say("ok"), install=[tool("here"), missing_tools.install])
        await bench.ask("go")
        await bench.ask("on")
        assert told(bench) == []

    asyncio.run(main())


def test_the_notice_is_never_the_reason_a_step_runs() -> None:
    """A turn that nobody has anything to say in asks no model."""

    async def main() -> None:
        bench = Workbench(lines=after("bash", offered=offer("bash")), install=[missing_tools.install])
        await bench.agent.run_turn()
        assert (told(bench), bench.model.requests) == ([], [])

    asyncio.run(main())


def test_a_header_that_offers_a_tool_no_more_settles_it() -> None:
    """Whoever wrote that header told the model, or nobody will."""
    session = logs.new_session(lines=after("bash", "edit", offered=offer("bash", "edit")))
    assert fold_value(CALLED_TOOLS, session.events) == ("bash", "edit")
    session.append(logs.turn_start(2), logs.step_start(2, 1), logs.request_header("change", tools=offer("edit")))
    assert fold_value(CALLED_TOOLS, session.events) == ("edit",)
