"""The events of a turn, in order, and what each tool call becomes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, ToolError, ToolResult, text_result
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.turn import LoopConfig, TurnEnd
from plan_mode_nb.models.script import call, finish, say, think, usage
from plan_mode_nb.testing.workbench import Workbench

STEP = ["step/start", "assistant/chunk", "assistant/message", "step/end"]


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def results(bench: Workbench) -> list[tuple[str, bool, str]]:
    """Call id, whether it failed, and the first text of every result."""
    blocks = [event.data["message"]["content"][0] for event in bench.events("tool/result")]
    return [(block["toolCallId"], block["isError"], block["content"][0]["text"]) for block in blocks]


def test_a_plain_turn_is_one_step_from_the_claimed_prompt_to_turn_end() -> None:
    """Prompt queued; turn, claim, step, message, header, chunks, answer, ends: in this order and nothing else."""
    bench = Workbench([say("Hello "), say("you"), usage(10, 2)])
    end = asyncio.run(bench.ask("hi"))
    assert bench.types == [
        "agent/inbox/spliced",
        "turn/start",
        "agent/inbox/spliced",
        "step/start",
        "user/message",
        "request/header",
        "assistant/chunk",
        "assistant/chunk",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    assert end == TurnEnd(1, 1, {"kind": "completed"})
    answer = bench.events("assistant/message")[0]
    assert answer.data["message"]["content"] == [{"type": "text", "text": "Hello "}, {"type": "text", "text": "you"}]
    assert answer.data["usage"] == {"inputTokens": 10, "outputTokens": 2}
    assert answer.sources == [event.seq for event in bench.events("assistant/chunk")]


def test_the_cell_of_a_turn_is_logged_directly_after_its_start_and_in_one_write() -> None:
    """A reader that finds the turn finds its cell."""
    bench = Workbench(say("ok"))
    bench.agent.inbox.followup(user_message("hi", id="m"))
    asyncio.run(bench.agent.run_turn({"source": "abc", "cell": "c1"}))
    assert bench.types[1:3] == ["turn/start", "notebook/cell"]
    assert bench.events("notebook/cell")[0].data == {"turn": 1, "source": "abc", "cell": "c1"}
    assert [len(write) for write in bench.sink.writes[:2]] == [1, 2]


def test_a_tool_turn_goes_call_result_and_asks_again() -> None:
    """The result belongs to its call, and the second request holds both."""
    bench = Workbench(
        [say("adding"), call("add", {"a": 1, "b": 2}, id="c1")], say("3"), install=[lambda s: s.tools.register(tool_from(add))]
    )
    end = asyncio.run(bench.ask("1 + 2?"))
    assert bench.types[3:] == [
        "step/start",
        "user/message",
        "request/header",
        "assistant/chunk",
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
        *STEP,
        "turn/end",
    ]
    assert (end.steps, end.reason) == (2, {"kind": "completed"})
    assert bench.events("tool/call")[0].data == {"turn": 1, "step": 1, "callId": "c1", "name": "add", "arguments": '{"a":1,"b":2}'}
    result = bench.events("tool/result")[0]
    assert result.sources == [bench.events("tool/call")[0].seq]
    assert [message["role"] for message in bench.model.requests[1].messages] == ["user", "assistant", "user"]


def test_the_calls_of_a_batch_run_one_after_the_other_in_the_models_order() -> None:
    """One namespace, one person: no call starts before the result of the one before it is logged."""
    seen: list[list[str]] = []

    async def look(call: ToolCall) -> Outcome:
        await asyncio.sleep(0)
        seen.append([event.type for event in bench.session.events if event.type.startswith("tool/")])
        return Outcome(text_result("ok"))

    tool = Tool("look", "Look.", {"type": "object"}, look)
    bench = Workbench([call("look", {}, id=id) for id in "abc"], say("done"), install=[lambda s: s.tools.register(tool)])
    asyncio.run(bench.ask("go"))
    pair = ["tool/call", "tool/result"]
    assert seen == [["tool/call"], [*pair, "tool/call"], [*pair, *pair, "tool/call"]]
    assert [each[0] for each in results(bench)] == ["a", "b", "c"]


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", '{"a":1,"b":"2"}', '{"a":1,"b":2,"c":3}', '{"a":1}', '{"a":1}{"b":2}'])
def test_malformed_arguments_are_a_corrective_result_and_are_logged_as_produced(arguments: str) -> None:
    """The model hears what to send; its raw text stays in the log, byte for byte; the turn goes on."""
    bench = Workbench(call("add", arguments, id="c"), say("sorry"), install=[lambda s: s.tools.register(tool_from(add))])
    assert asyncio.run(bench.ask("go")).reason == {"kind": "completed"}
    assert bench.events("tool/call")[0].data["arguments"] == arguments
    assert bench.events("assistant/message")[0].data["message"]["content"][0]["arguments"] == arguments
    ((_, is_error, text),) = results(bench)
    assert is_error
    assert text.startswith("Error: the arguments of add are not right")
    assert text.endswith("send one JSON object")
    assert bench.events("tool/result")[0].data["error"]["code"] == "BAD_ARGUMENTS"


def test_an_unknown_tool_is_a_result_that_names_the_tools_there_are() -> None:
    """The turn goes on."""
    bench = Workbench(call("ad", {}, id="c"), say("oh"), install=[lambda s: s.tools.register(tool_from(add))])
    assert asyncio.run(bench.ask("go")).reason == {"kind": "completed"}
    assert results(bench) == [("c", True, "Error: there is no tool 'ad'; the tools are add")]
    assert bench.events("tool/result")[0].data["error"] == {"name": "ToolError", "code": "UNKNOWN_TOOL"}


def test_a_crashing_tool_is_a_result_is_logged_once_and_the_batch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A tool's failure never crosses the loop."""

    def boom() -> str:
        """Fail."""
        raise KeyError("x")

    def refuse() -> str:
        """Fail as expected."""
        raise ToolError("send less", code="TOO_MUCH")

    tools = [tool_from(boom), tool_from(refuse), tool_from(add)]
    calls = [call("boom", {}, id="1"), call("refuse", {}, id="2"), call("add", {"a": 1, "b": 1}, id="3")]
    bench = Workbench(calls, say("well"), install=[lambda s, tool=tool: s.tools.register(tool) for tool in tools])
    with caplog.at_level(logging.ERROR):
        asyncio.run(bench.ask("go"))
    assert results(bench) == [("1", True, "Error: KeyError: 'x'"), ("2", True, "Error: send less"), ("3", False, "2")]
    assert [event.data.get("error", {}).get("code") for event in bench.events("tool/result")] == ["TOOL_CRASHED", "TOO_MUCH", None]
    assert [record.message for record in caplog.records] == ["tool boom failed on call 1"]


def test_a_tools_events_are_one_append_and_one_write_with_its_result_events_first() -> None:
    """What must be true together is written together."""

    async def run(call: ToolCall) -> Outcome:
        return Outcome(text_result("noted", meta={"k": 1}), (draft("todo/write", {"todos": []}),))

    bench = Workbench(call("note", {}), say("ok"), install=[lambda s: s.tools.register(Tool("note", "Note.", {}, run))])
    asyncio.run(bench.ask("go"))
    todo = bench.events("todo/write")[0].seq
    assert bench.session.events[todo + 1].type == "tool/result"
    assert bench.session.events[todo + 1].data["meta"] == {"k": 1}
    assert bench.session.lines[todo : todo + 2] in bench.sink.writes


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(text_result("half \ud83d")),
        Outcome(ToolResult(({"type": "text", "text": "x", "n": float("nan")},))),
        Outcome(text_result("fine"), (draft("plan/mode", {"active": "yes"}),)),
        Outcome(text_result("fine"), (draft("no/such-type", {}),)),
    ],
)
def test_a_result_that_the_log_refuses_becomes_an_error_result_and_nothing_of_it_is_kept(outcome: Outcome) -> None:
    """All or none: the events that came with it are not logged either, and the turn goes on."""

    async def run(call: ToolCall) -> Outcome:
        return outcome

    bench = Workbench(call("odd", {}), say("ok"), install=[lambda s: s.tools.register(Tool("odd", "Odd.", {}, run))])
    assert asyncio.run(bench.ask("go")).reason == {"kind": "completed"}
    ((_, is_error, text),) = results(bench)
    assert is_error
    assert text.startswith("Error: the result of odd could not be kept")
    assert not bench.events("plan/mode", "no/such-type")


def test_a_call_after_max_tokens_does_not_run_and_the_turn_says_so() -> None:
    """A call that was cut off must not run; the text before it stays."""
    bench = Workbench(
        [say("cut"), call("add", '{"a":', id="c"), finish("max-tokens")], install=[lambda s: s.tools.register(tool_from(add))]
    )
    end = asyncio.run(bench.ask("go"))
    assert end.reason == {"kind": "max-tokens"}
    assert end.sentence == "the answer was cut off at the model's token limit"
    assert bench.events("assistant/message")[0].data["message"]["content"] == [{"type": "text", "text": "cut"}]
    assert not bench.events("tool/call")


@pytest.mark.parametrize("after", [[say("whole")], [call("add", {"a": 1, "b": 1}), say("whole")]], ids=["text", "tool"])
def test_max_tokens_is_sticky(after: list[Any]) -> None:
    """A later step that completes, tools in between or not, does not make the turn complete."""

    def first(request: object) -> list[Any]:
        bench.steer("go on")
        return [say("cut"), finish("max-tokens")]

    bench = Workbench(first, *after, install=[lambda s: s.tools.register(tool_from(add))])
    end = asyncio.run(bench.ask("go"))
    assert end.reason == {"kind": "max-tokens"}
    assert end.steps == 1 + len(after)


def test_running_out_of_steps_ends_the_turn_in_error_with_the_way_out_and_the_next_turn_works() -> None:
    """The limit is a reason of its own; every call of the last step has its result."""
    steps = [call("add", {"a": n, "b": n}) for n in range(3)]
    bench = Workbench(*steps, say("on"), config=LoopConfig(max_steps=3, check="full"), install=[lambda s: s.tools.register(tool_from(add))])

    async def both() -> tuple[TurnEnd, TurnEnd]:
        return await bench.ask("go"), await bench.ask("go on")

    limited, after = asyncio.run(both())
    assert limited.reason["error"]["code"] == "MAX_STEPS"
    assert limited.sentence == "the turn reached its limit of 3 steps; say what to do next, or raise PlanAgent.max_steps"
    assert (limited.steps, len(results(bench)), after.reason) == (3, 3, {"kind": "completed"})


def test_an_answer_of_thinking_alone_is_an_answer() -> None:
    """Reasoning is a block like any other."""
    bench = Workbench(think("hm"))
    assert asyncio.run(bench.ask("go")).reason == {"kind": "completed"}
    assert bench.events("assistant/message")[0].data["message"]["content"] == [{"type": "reasoning", "text": "hm"}]


def test_chunks_are_logged_only_as_far_as_asked() -> None:
    """Usage and finish always; with ``record_chunks`` every one, in order, and the answer names them as its sources."""
    script = [say("a b"), call("add", {"a": 1, "b": 1}, id="c"), usage(1, 1)]
    kinds = {}
    for record in (False, True):
        config = LoopConfig(check="full", record_chunks=record)
        bench = Workbench(script, say("2"), config=config, install=[lambda s: s.tools.register(tool_from(add))])
        asyncio.run(bench.ask("go"))
        first = bench.events("assistant/message")[0]
        kinds[record] = [bench.session.events[seq].data["chunk"]["type"] for seq in first.sources]
        assert first.sources == [event.seq for event in bench.events("assistant/chunk") if event.seq < first.seq]
    assert kinds[False] == ["usage", "finish"]
    assert kinds[True] == ["text-delta"] * 2 + ["tool-call-delta"] * 3 + ["usage", "finish"]


def test_surrogate_halves_that_a_stream_cut_apart_are_joined_and_a_lone_half_is_replaced() -> None:
    """The log cannot hold a half; the rest of the answer must not be lost because of one."""
    bench = Workbench([say("a\ud83d"), say("x")], [call("add", '{"a":1,"b":2,"note":"\ud83d\ude00"}', id="c")], say("fine"))

    async def both() -> None:
        await bench.ask("go")
        await bench.ask("go")

    asyncio.run(both())
    contents = [event.data["message"]["content"] for event in bench.events("assistant/message")]
    assert contents[0][0]["text"] == "a\ufffd"
    assert contents[1][0]["arguments"] == '{"a":1,"b":2,"note":"😀"}'
