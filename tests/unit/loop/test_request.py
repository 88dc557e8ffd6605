"""A request is a pure function of the log, and proven to be before it is sent."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from plan_mode_nb.agent.model import Request
from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.request import request_at
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.events import Replace
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.loop.request import derive, prove
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.script import call, say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing.workbench import Workbench


def add(a: int, b: int) -> str:
    """Add."""
    return str(a + b)


def with_add(seams: Any) -> Any:
    return seams.tools.register(tool_from(add))


def sections(seams: Any) -> Any:
    return seams.sections.register("s", 1, lambda context: "be brief")


def asked_at(bench: Workbench) -> list[int]:
    """For each request the seq of the event it was derived after: the last one before its first chunk."""
    seqs, waiting = [], False
    for event in bench.session.events:
        if event.type == "step/start":
            waiting = True
        elif event.type == "assistant/chunk" and waiting:
            seqs.append(event.seq - 1)
            waiting = False
    return seqs


def test_every_request_equals_what_the_log_says_at_that_point() -> None:
    """``request_at`` over the stored lines gives the system prompt, tools, settings and messages that the model was handed."""

    async def main() -> None:
        bench = Workbench(call("add", {"a": 1, "b": 1}), say("2"), say("more"), install=[with_add, sections])
        await bench.ask("go")
        await bench.ask("more?")
        events = [decode(line) for line in bench.session.lines]
        assert len(bench.model.requests) == 3
        for request, seq in zip(bench.model.requests, asked_at(bench), strict=True):
            derived = request_at(events, seq)
            assert dict(request.config) == derived["config"]
            assert (request.system or None) == derived["system"]
            assert list(request.tools) == derived["tools"]
            assert list(request.messages) == list(derived["messages"])

    asyncio.run(main())


def test_a_request_keeps_its_messages_while_the_log_grows() -> None:
    """A request is frozen: a retry or a slow reader sees what was asked, not what came later."""

    async def main() -> None:
        bench = Workbench(call("add", {"a": 1, "b": 1}), say("2"), install=[with_add])
        await bench.ask("go")
        assert [len(request.messages) for request in bench.model.requests] == [1, 3]

    asyncio.run(main())


@pytest.mark.parametrize("check", ["new", "full"])
def test_a_message_that_somebody_changed_in_memory_is_found_and_ends_the_turn_before_it_is_sent(check: Any) -> None:
    """The log's lines decide, not the objects that a careless listener may have touched."""

    async def main() -> None:
        def careless(batch: Any) -> None:
            for event in batch:
                if event.type == "user/message":
                    event.data["content"][0]["text"] = "changed"

        bench = Workbench(say("never"), config=LoopConfig(check=check))
        bench.session.subscribe(careless)
        end = await bench.ask("go")
        assert "message 1 of the request is not what the log says: id-1" in end.sentence
        assert end.reason["error"]["code"] == "REFUSED"
        assert bench.model.requests == []

    asyncio.run(main())


@pytest.mark.parametrize("key", ["tools", "config"])
def test_a_header_that_somebody_changed_in_memory_never_reaches_the_model_unlogged(key: str) -> None:
    """A step either sends what the lines say, or a header that says what it sends stands before it."""

    async def main() -> None:
        async def careless(step: Step, call_next: CallNext) -> Decision:
            decision = await call_next(step)
            for event in bench.events("request/header"):
                header = event.data["header"]
                {"config": header["config"], "tools": header["tools"][0]}[key].update(description="changed")
            return decision

        sent: list[Any] = []

        def answer(part: Any) -> Any:
            def step(request: Request) -> Any:
                sent.append(deepcopy((dict(request.config), request.system, list(request.tools))))
                return part

            return step

        steps = [answer(call("add", {"a": 1, "b": 1})), answer(say("2"))]
        bench = Workbench(*steps, config=LoopConfig(), install=[with_add, sections])
        bench.seams.pre_step.register(careless)
        await bench.ask("go")
        events = [decode(line) for line in bench.session.lines]
        for request, seq in zip(sent, asked_at(bench), strict=True):
            derived = request_at(events, seq)
            assert request == (derived["config"], derived["system"], derived["tools"])

    asyncio.run(main())


def test_the_proof_finds_a_changed_header_a_missing_and_a_foreign_message() -> None:
    """Each part of a request is compared; the error names the first that differs."""
    bench = Workbench(say("ok"), install=[with_add, sections])
    asyncio.run(bench.ask("go"))
    session, request = bench.session, derive(bench.session, bench.seams)
    prove(request, session, 0, "full")
    for key, wrong in (("system", "x"), ("tools", []), ("config", {"provider": "x", "model": "y"})):
        with pytest.raises(InvariantError, match=f"the request's {key} is not what the last request/header says"):
            prove(replace(request, **{key: wrong}), session, len(session), "new")
    owned = session.fold(HISTORY)
    message = owned[1]
    message["content"][0]["text"] = "not ok"
    with pytest.raises(InvariantError, match="message 2 of the request is not what the log says"):
        prove(derive(session, bench.seams), session, 0, "full")
    prove(derive(session, bench.seams), session, len(session), "new")
    message["content"][0]["text"] = "ok"
    session.append(surface("user/message", user_message("more", id="m")))
    with pytest.raises(InvariantError, match="the request holds 2 messages, the log says 3"):
        prove(request, session, 0, "full")


def test_a_replaced_span_is_compared_in_full() -> None:
    """After a compaction the messages new since the last step are not the request's last ones, so the whole is compared."""

    async def main() -> None:
        bench = Workbench(say("ok"), say("again"), config=LoopConfig(check="new"))
        await bench.ask("go")
        first, last = bench.events("user/message")[0].seq, bench.events("assistant/message")[0].seq
        bench.session.append(draft("turn/start", {"turn": 2}))
        summary = user_message("we said hello", id="s", source={"kind": "plugin", "plugin": "compaction"})
        bench.session.append(surface("user/message", summary, op=Replace(first, last), sources=[first, last]))
        bench.session.append(draft("turn/end", {"turn": 2, "reason": {"kind": "completed"}}))
        assert (await bench.ask("more")).reason == {"kind": "completed"}
        assert [m["id"] for m in bench.model.requests[-1].messages] == ["s", "id-3"]

    asyncio.run(main())


def headers(bench: Workbench) -> list[str]:
    return [event.data["reason"] for event in bench.events("request/header")]


def test_the_header_is_logged_when_it_changes_and_once_after_reopening() -> None:
    """Initial, then nothing while nothing changes, change when it does, resume for a new process."""

    async def main() -> None:
        text = {"section": "be brief"}
        bench = Workbench(
            say("1"), say("2"), say("3"), say("4"), install=[lambda s: s.sections.register("s", 1, lambda context: text["section"])]
        )
        await bench.ask("a")
        await bench.ask("b")
        assert headers(bench) == ["initial"]
        text["section"] = "be long"
        await bench.ask("c")
        await bench.ask("d")
        assert headers(bench) == ["initial", "change"]
        again = Workbench(say("5"), say("6"), lines=bench.session.lines, ids="again")
        again.seams.sections.register("s", 1, lambda context: "be long")
        await again.ask("e")
        await again.ask("f")
        assert headers(again) == ["initial", "change", "resume"]

    asyncio.run(main())


def test_a_step_may_name_its_model_and_the_header_says_which_it_was() -> None:
    """A pre-step listener sets the step's model; the next step is free again."""

    async def main() -> None:
        async def choose(step: Step, call_next: CallNext) -> Decision:
            step.model = "planner" if step.step == 1 else None
            return await call_next(step)

        bench = Workbench(say("done"), install=[with_add, lambda s: s.pre_step.register(choose)])
        planner = ScriptedModel([call("add", {"a": 1, "b": 1})], config={"provider": "scripted", "model": "planner"})
        bench.agent.models = lambda name: bench.model if name is None else planner
        await bench.ask("go")
        assert [event.data["header"]["config"]["model"] for event in bench.events("request/header")] == ["planner", "scripted"]
        assert bench.events("assistant/message")[0].data["message"]["source"]["model"] == "planner"

    asyncio.run(main())


def test_no_tools_and_no_system_prompt_are_absent_from_the_header() -> None:
    """As deepseek-harness writes it: nothing is not an empty something."""
    bench = Workbench(say("ok"))
    asyncio.run(bench.ask("go"))
    assert json.loads(bench.session.lines[bench.events("request/header")[0].seq])["data"]["header"] == {
        "config": {"provider": "scripted", "model": "scripted"}
    }
