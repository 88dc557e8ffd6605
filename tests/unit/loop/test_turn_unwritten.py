"""A log that cannot be written, or was cut off: nothing half written, no dangling call, and the session goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from going_on import goes_on, with_add

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import call, hold, say
from plan_mode_nb.testing.workbench import Workbench, counted_clock

WRITES = ["turn/start", "step/start", "request/header", "assistant/chunk", "assistant/message", "tool/call", "tool/result", "step/end"]


@pytest.mark.parametrize("refused", [*WRITES, "turn/end"])
def test_a_log_that_cannot_be_written_for_a_moment_ends_the_turn_and_the_session_goes_on(refused: str) -> None:
    """Whatever event the disk refuses: nothing half written, no dangling call, no turn left open."""

    async def main() -> None:
        state = {"left": 1}

        def refuse(lines: Sequence[str]) -> bool:
            if state["left"] and any(json.loads(line)["type"] == refused for line in lines):
                state["left"] -= 1
                return True
            return False

        bench = Workbench(call("add", {"a": 1, "b": 1}), say("2"), install=[with_add])
        bench.sink.refuse = refuse
        if refused in ("turn/start", "turn/end"):
            with pytest.raises(StoreError, match="no space is left"):
                await bench.ask("go")
        else:
            assert (await bench.ask("go")).reason["error"]["code"] == "REFUSED"
        assert state["left"] == 0
        assert bench.session.place.turn is None
        assert bench.sink.lines == bench.session.lines
        await goes_on(bench)
        assert bench.sink.lines == bench.session.lines

    asyncio.run(main())


def test_a_log_that_cannot_be_written_any_more_says_so_each_time_and_goes_on_once_it_can() -> None:
    """The sink dies in the middle of a turn. When it is back, the turn it interrupted is closed first."""

    async def main() -> None:
        bench = Workbench([call("add", {"a": 1, "b": 1}, id="c"), hold(lambda: asyncio.sleep(0))], say("2"), install=[with_add])
        bench.sink.refuse = lambda lines: len(bench.session) > 0 and bench.session.events[-1].type == "tool/call"
        with pytest.raises(StoreError):
            await bench.ask("go")
        kept = len(bench.session)
        assert bench.session.events[-1].type == "tool/call"
        assert bench.session.place.turn is None
        with pytest.raises(StoreError):
            await bench.ask("still there?")
        assert len(bench.session) == kept
        bench.sink.refuse = lambda lines: False
        await goes_on(bench)
        assert [event.type for event in bench.session.events[kept : kept + 3]] == ["tool/result", "step/end", "turn/end"]
        assert bench.session.events[kept + 2].data["reason"] == {"kind": "interrupted"}
        assert [decode(line) for line in bench.sink.lines] == bench.session.events

    asyncio.run(main())


def test_an_interrupted_log_is_closed_by_its_first_new_event_and_by_nothing_before() -> None:
    """Looking at a log that a killed process left does not change it; every prefix of it goes on."""

    async def main() -> None:
        whole = Workbench([call("add", {"a": 1, "b": 1}, id="c1"), call("add", {"a": 2, "b": 2}, id="c2")], say("ok"), install=[with_add])
        await whole.ask("go")
        for length in range(1, len(whole.session)):
            lines = whole.session.lines[:length]
            bench = Workbench(say("back"), lines=lines, install=[with_add], ids=f"p{length}")
            assert bench.session.lines == lines
            assert bench.sink.writes == []
            assert bench.session.place.turn is None
            bench.agent.inbox.followup(user_message("again", id="x"))
            first = bench.sink.writes[0]
            kinds = [json.loads(line)["type"] for line in first]
            assert kinds[-1] == "agent/inbox/spliced"
            was_open = any(json.loads(line)["type"] == "turn/start" for line in lines)
            assert ("turn/end" in kinds) is was_open
            while bench.agent.inbox.has_pending:
                bench.model.add(say("back"))
                assert (await bench.agent.run_turn()).reason == {"kind": "completed"}
            Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines)
            blocks = [block for message in bench.model.requests[-1].messages for block in message["content"]]
            asked = [block["id"] for block in blocks if block["type"] == "tool-call"]
            assert sorted(asked) == sorted(block["toolCallId"] for block in blocks if block["type"] == "tool-result")

    asyncio.run(main())
