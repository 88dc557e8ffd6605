"""What ``exit_plan_mode`` checks before anybody is asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from planning import (
    approve,
    codes,
    exits,
    keep,
    last_result,
    modes,
    planned,
    planning,
    reviewed,
    shows,
)

from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, ToolError, text_result
from plan_mode_nb.folds.plan import APPROVED_PLAN, PlanState
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanMode


def test_called_while_inactive_it_is_corrected_and_nothing_is_asked() -> None:
    """Case 22: no review, no ``plan/*`` or ``question/*`` event."""
    bench = planned(exits(), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    failed, text = last_result(bench)
    assert failed
    assert text == "Error: exit_plan_mode is only for plan mode, and plan mode is off: carry out the task, or answer in prose"
    assert reviewer.shown == []
    assert not [each for each in bench.types if each.startswith(("plan/", "question/"))]


@pytest.mark.parametrize("selected", [False, True])
def test_it_accepts_exactly_when_the_section_was_in_the_request(selected: bool) -> None:
    """A switch that is only pending counts for neither: the tool and the section read the same fold."""

    def step(request: Any) -> Any:
        PlanMode.set(bench.agent, selected)
        return exits()

    bench = planned(step, say("ok"))
    if not selected:
        PlanMode.set(bench.agent, True)
    reviewer = reviewed(bench, keep())
    asyncio.run(bench.ask("go"))
    assert shows(bench.model.requests[0]) is not selected
    assert codes(bench) == ["PLAN_INACTIVE" if selected else "PLAN_REFUSED"]
    assert reviewer.shown == []


BAD_PLANS: dict[str, tuple[Any, str]] = {
    "empty": ("", "`plan` is empty."),
    "blank": (" \n\t ", "`plan` is empty."),
    "null": (None, "`plan` must be a string of markdown, not null."),
    "number": (42, "`plan` must be a string of markdown, not a number."),
    "list": (["# P"], "`plan` must be a string of markdown, not a list."),
    "boolean": (True, "`plan` must be a string of markdown, not a boolean."),
    "object": ({"title": "P"}, "`plan` must be a string of markdown, not an object."),
    "no space": ("#P\n\nbody", "The plan's `#` needs a space and a title after it."),
    "level 2": ("## P\n\nbody", "The plan starts with a level 2 heading; it must be level 1, one `#`."),
    "setext": ("P\n===\n\nbody", "The plan's title must be written as `# Title`, not underlined."),
    "in a fence": ("```\n# P\n```\n\nbody", "The plan starts with a code block, or is indented by four spaces or more."),
    "front matter": ("---\nt: 1\n---\n# P\n\nbody", "The plan starts with `---`; leave out front matter and rules before the title."),
    "no title": ("# \n\nbody", "The plan's first heading has no visible title."),
    "hash only": ("#\n\ntext", "The plan's first heading has no visible title."),
    "closing only": ("# #\n\nbody", "The plan's first heading has no visible title."),
    "invisible": ("# \u200b\u2060\n\nbody", "The plan's first heading has no visible title."),
    "indented": ("    # P\n\nbody", "The plan starts with a code block, or is indented by four spaces or more."),
    "title only": ("# P\n", "The plan is only a title; its steps are missing."),
    "prose first": ("Here is it:\n\n# P\n\nbody", "The plan does not start with a heading."),
}


@pytest.mark.parametrize("kind", BAD_PLANS)
def test_what_is_no_plan_is_corrected_with_what_to_send_and_is_not_reviewed(kind: str) -> None:
    """Cases 23 and 24: the message says exactly what is wrong and what to call again with."""
    argument, why = BAD_PLANS[kind]
    bench = planning(exits(argument), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    failed, text = last_result(bench)
    assert failed
    assert text.startswith(f"Error: {why} Call exit_plan_mode again with `plan` set to the complete plan as markdown")
    assert reviewer.shown == []
    assert not [each for each in bench.types if each.startswith("question/")]
    assert PlanMode.get(bench.agent) == PlanState(True, None)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("", "must be a string of markdown, not null"),
        ("{}", "must be a string of markdown, not null"),
        ("{", "The arguments are not JSON."),
        ("# P\n\nbody", "The arguments are not JSON."),
        ('"# P"', "Send one object with the one key `plan`"),
        ("[]", "Send one object with the one key `plan`"),
        ('{"plan": "# P\\n\\nx", "title": "P"}', "Send one object with the one key `plan`"),
    ],
)
def test_arguments_that_are_not_one_object_with_the_plan_are_corrected(arguments: str, why: str) -> None:
    """Whatever the model produced stays in the log as produced."""
    bench = planning(call("exit_plan_mode", arguments), say("ok"))
    reviewer = reviewed(bench)
    asyncio.run(bench.ask("go"))
    assert why in last_result(bench)[1]
    assert bench.events("tool/call")[0].data["arguments"] == arguments
    assert reviewer.shown == []


GOOD_PLANS = [
    "# P\n\nbody",
    "\n\n# P\n\nbody",
    "\ufeff# P\n\nbody",
    "#\tP\n\nbody",
    "# P\r\n\r\nbody\r\n",
    "   # P\n\nbody",
    "# P #\n- a\n- b",
    "  # Real\n\n```sh\n# pip install x\n```\n",
]


@pytest.mark.parametrize("plan", GOOD_PLANS)
def test_what_is_a_plan_is_shown_and_logged_exactly_as_submitted(plan: str) -> None:
    """Cases 24 and 25."""
    bench = planning(exits(plan), say("ok"))
    reviewer = reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    assert reviewer.shown[0].questions[0].detail == plan
    assert bench.events("question/asked")[0].data["questions"][0]["detail"] == plan
    assert bench.session.fold(APPROVED_PLAN) == plan
    assert not last_result(bench)[0]


def test_a_plan_of_200_kilobytes_is_submitted_shown_and_logged_byte_for_byte() -> None:
    """Case 26: 5,000 lines with CJK, emoji sequences, tables and trailing blanks."""
    lines = [f"- 手順 {n} 👩🏽‍🔬 \u00e9e\u0301 | a | b |\t$x$ `{{y}}`  " for n in range(5_000)]
    plan = "# 計画 🇯🇵 of everything\n\n" + "\n".join(lines) + "\n\n"
    assert len(plan.encode()) > 200_000
    bench = planning(exits(plan), say("ok"))
    reviewer = reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    reopened = planned(lines=bench.sink.lines, ids="x")
    stored = reopened.events("question/asked")[0].data["questions"][0]["detail"]
    assert reviewer.shown[0].questions[0].detail == stored == plan
    assert reopened.session.fold(APPROVED_PLAN) == plan
    assert json.loads(reopened.events("tool/call")[0].data["arguments"])["plan"] == plan


def test_a_child_of_a_live_agent_is_sent_back_to_its_result_and_an_orphan_is_its_own_root() -> None:
    """Case 37: no review that a person would have to attribute; the check comes after the plan's own."""

    async def main() -> None:
        parent = planned()
        child = planning(exits(""), exits(), call("orphan", {}), exits(), say("ok"), parent=parent.agent, name="child")
        reviewer = reviewed(child, approve())

        async def orphan(c: ToolCall) -> Outcome:
            parent.agent.dispose()
            return Outcome(text_result("alone now"))

        child.seams.tools.register(Tool("orphan", "O.", {"type": "object"}, orphan))
        await child.ask("go")
        assert codes(child) == ["BAD_ARGUMENTS", "NOT_ROOT", None, None]
        texts = [e.data["message"]["content"][0]["content"][0]["text"] for e in child.events("tool/result")]
        assert texts[1] == "Error: only the main agent can ask for a review: put the open decision in your final result"
        assert len(reviewer.shown) == 1
        assert modes(child) == [True, False]

    asyncio.run(main())


def test_without_a_calling_agent_it_fails() -> None:
    """Check 1: there is no session whose plan mode could end."""
    tool = planned().seams.tools.get("exit_plan_mode")
    assert tool is not None
    with pytest.raises(ToolError, match="needs a calling agent") as caught:
        asyncio.run(tool.run(ToolCall("exit_plan_mode", '{"plan":"# P\\n\\nx"}', "c", 1, 1, None)))
    assert caught.value.code == "NO_AGENT"


def test_presented_as_a_call_it_is_the_plan_under_its_title() -> None:
    """Bad arguments present nothing of their own."""
    tool = planned().seams.tools.get("exit_plan_mode")
    assert tool is not None
    shown = tool.present_call(json.dumps({"plan": "# The *join* #\n\nbody"}))
    assert shown is not None
    assert (shown.title, shown.body, shown.kind) == ("The join", "# The *join* #\n\nbody", "plan")
    assert [tool.present_call(bad) for bad in ("", "{", '{"plan":42}', "[]")] == [None] * 4
