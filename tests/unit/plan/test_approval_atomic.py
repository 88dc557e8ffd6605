"""An approval is one write: killed before it nothing is approved, killed after it everything is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from planning import (
    PLAN,
    approve,
    codes,
    exits,
    keep,
    last_result,
    modes,
    notices,
    planned,
    planning,
    reviewed,
    shows,
)

from plan_mode_nb.agent.questions import Reply
from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.folds.plan import APPROVED_PLAN, PlanState
from plan_mode_nb.folds.questions import OPEN_REVIEWS, QUESTIONS
from plan_mode_nb.models.script import say
from plan_mode_nb.plan import PlanMode
from plan_mode_nb.testing.workbench import Workbench


def refuse_from(bench: Workbench, type: str) -> None:
    """The process dies with the first write that holds an event of this type: nothing of it or after it is kept."""
    dead: list[bool] = []

    def refuse(lines: Sequence[str]) -> bool:
        if dead or any(json.loads(line)["type"] == type for line in lines):
            dead.append(True)
        return bool(dead)

    bench.sink.refuse = refuse


def test_answer_selection_and_result_of_an_approval_are_one_write_in_this_order() -> None:
    """No reader can ever find one without the others; nothing else is in that write."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, approve())
    asyncio.run(bench.ask("go"))
    (write,) = [write for write in bench.sink.writes if any('"question/answered"' in line for line in write)]
    events = [json.loads(line) for line in write]
    assert [event["type"] for event in events] == ["question/answered", "plan/selected", "tool/result"]
    assert events[1]["data"] == {"active": False, "narrate": False}
    assert events[2]["sourceEventSeqs"] == [bench.events("tool/call")[0].seq]
    asked = [write for write in bench.sink.writes if any('"question/asked"' in line for line in write)]
    assert [len(write) for write in asked] == [1]


@pytest.mark.parametrize("reply", [keep("no"), Reply("dismissed")], ids=["keep", "dismiss"])
def test_any_other_answer_and_its_result_are_one_write_too(reply: Reply) -> None:
    """Log, transcript and card cannot disagree."""
    bench = planning(exits(), say("ok"))
    reviewed(bench, reply)
    asyncio.run(bench.ask("go"))
    (write,) = [write for write in bench.sink.writes if any('"question/answered"' in line for line in write)]
    assert [json.loads(line)["type"] for line in write] == ["question/answered", "tool/result"]


def test_killed_between_the_click_and_the_result_the_question_is_unresolved_and_planning_goes_on() -> None:
    """Case 8, before: nothing approved, in the log, the section, the transcript and the audit."""

    async def main() -> None:
        bench = planning(exits())
        reviewed(bench, approve())
        refuse_from(bench, "question/answered")
        with pytest.raises(StoreError):
            await bench.ask("go")
        after = planned(say("ok"), lines=bench.sink.lines, ids="after")
        assert [review["title"] for review in after.session.fold(OPEN_REVIEWS)] == ["Fix the join"]
        assert PlanMode.get(after.agent) == PlanState(True, None)
        await after.ask("and?")
        assert shows(after.model.requests[0])
        assert (modes(after), notices(after)) == ([True], [])
        assert after.session.fold(APPROVED_PLAN) is None
        assert after.session.fold(OPEN_REVIEWS) == []
        assert [asked.answer for asked in after.session.fold(QUESTIONS).settled] == [None]
        assert last_result(after)[0]
        assert codes(after) == ["TOOL_OUTCOME_UNKNOWN"]

    asyncio.run(main())


@pytest.mark.parametrize("type", ["step/end", "plan/mode", "step/start"])
def test_killed_right_after_the_result_it_is_approved_and_leaves_at_the_next_step(type: str) -> None:
    """Case 8, after: at whichever event the process died; never a second notice."""

    async def main() -> None:
        bench = planning(exits(), say("ok"))
        reviewed(bench, approve())
        await_result: list[bool] = []
        dead: list[bool] = []

        def refuse(lines: Sequence[str]) -> bool:
            kinds = [json.loads(line)["type"] for line in lines]
            if dead or (await_result and type in kinds):
                dead.append(True)
            if "tool/result" in kinds:
                await_result.append(True)
            return bool(dead)

        bench.sink.refuse = refuse
        with pytest.raises(StoreError):
            await bench.ask("go")
        after = planned(say("ok"), say("ok"), lines=bench.sink.lines, ids="after")
        assert PlanMode.get(after.agent) == (PlanState(False, None) if type == "step/start" else PlanState(True, False))
        await after.ask("and?")
        await after.ask("and?")
        assert [shows(request) for request in after.model.requests] == [False, False]
        assert (modes(after), notices(after)) == ([True, False], [])
        assert after.session.fold(APPROVED_PLAN) == PLAN
        assert codes(after) == [None]

    asyncio.run(main())


def test_an_approval_is_known_to_listeners_only_after_it_is_written() -> None:
    """A card renders from events, so it says approved only when a killed process would find it approved."""

    async def main() -> None:
        seen: list[bool] = []
        bench = planning(exits(), say("ok"))
        reviewed(bench, approve())

        def look(batch: Any) -> None:
            if any(event.type == "question/answered" for event in batch):
                seen.append(any('"question/answered"' in line for line in bench.sink.lines))
                assert [event.type for event in batch] == ["question/answered", "plan/selected", "tool/result"]

        bench.session.subscribe(look)
        await bench.ask("go")
        assert seen == [True]

    asyncio.run(main())


def test_an_approved_exit_that_cannot_be_logged_yet_is_not_narrated_as_a_switch() -> None:
    """The request shows the section, because the log says active; the exit stays pending and is still silent when it applies."""

    async def main() -> None:
        bench = planning(exits(), say("ok"), say("ok"))
        reviewed(bench, approve())
        bench.sink.refuse = lambda lines: any('"plan/mode"' in line for line in lines)
        await bench.ask("go")
        assert PlanMode.get(bench.agent) == PlanState(True, False)
        bench.sink.refuse = lambda lines: False
        await bench.ask("go on")
        assert [shows(request) for request in bench.model.requests] == [True, True, False]
        assert (modes(bench), notices(bench)) == ([True, False], [])

    asyncio.run(main())
