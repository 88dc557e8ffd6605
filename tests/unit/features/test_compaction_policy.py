"""When a conversation is compacted by itself: at pressure before a step, once where a request was refused as too long, and no oftener."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.compaction import Span
from plan_mode_nb.agent.prestep import CallNext, Decision, Reject, Step
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import compaction, retry
from plan_mode_nb.features.compaction import CompactionPolicy
from plan_mode_nb.features.compaction.policy import due
from plan_mode_nb.features.compaction.span import whole_cuts
from plan_mode_nb.features.compaction.summary import OPEN
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.inbox import inbox_fold
from plan_mode_nb.folds.tokens import MEASURE, estimate_blocks, estimate_header
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.log.dsh import read_jsonl
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.models.script import call, fail, hold, say, usage
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.workbench import Workbench

TOO_LONG = ModelError("The conversation is longer than this model can read.", code="CONTEXT_OVERFLOW", status=400)
SUMMARY = say("## What the user wants\n- the rows")
LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "dsh-logs"
RECOVERED = LOGS / "examples__headless-agent__tests__snapshots__compaction-recovery.jsonl"


def look(what: str) -> str:
    """Look at something long."""
    return f"{what}: " + "a row " * 200


def plugin(policy: CompactionPolicy = CompactionPolicy()) -> list[Any]:  # noqa: B008
    return [lambda seams: seams.tools.register(tool_from(look)), lambda seams: compaction.install(seams, policy)]


def bench_of(*steps: Any, window: int | None = 700, policy: CompactionPolicy = CompactionPolicy(), **more: Any) -> Workbench:  # noqa: B008
    return Workbench(*steps, install=plugin(policy), window=window, **more)


def looks(what: str, tokens: int = 0) -> Any:
    return [call("look", {"what": what}), *([usage(tokens, 0)] if tokens else [])]


def attempts(bench: Workbench) -> list[Event]:
    return bench.events("compaction/start", "compaction/summary", "compaction/end")


def test_before_a_step_that_would_read_too_much_the_older_part_is_summarized() -> None:
    """Inside the turn, between two steps; the next request holds the summary and the newest messages, and nobody asked for it."""

    async def main() -> None:
        bench = bench_of(say("Hello."), looks("a"), looks("b"), SUMMARY, say("Two looks."))
        await bench.ask("hello")
        end = await bench.ask("look twice")
        assert (end.reason, end.steps) == ({"kind": "completed"}, 3)
        assert [event.type for event in attempts(bench)] == ["compaction/start", "compaction/summary", "compaction/end"]
        start, *_, last = attempts(bench)
        assert start.data == last.data == {"compactionId": start.data["compactionId"], "turn": 2}
        assert (bench.types[start.seq - 1], bench.types[last.seq + 1]) == ("step/end", "step/start")
        messages = bench.model.requests[-1].messages
        assert OPEN in messages[0]["content"][0]["text"]
        assert [message["content"][0]["type"] for message in messages[1:]] == ["tool-call", "tool-result"]
        assert list(messages) == list(bench.session.fold(HISTORY))[:-1]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("window", "at"), [(None, 0.8), (700, 0.0), (100_000, 0.8)], ids=["no window is known", "switched off", "there is room"]
)
def test_otherwise_nothing_is_compacted(window: int | None, at: float) -> None:
    async def main() -> None:
        bench = bench_of(looks("a"), looks("b"), looks("c"), say("Done."), window=window, policy=CompactionPolicy(at))
        assert (await bench.ask("look")).reason == {"kind": "completed"}
        assert attempts(bench) == []

    asyncio.run(main())


def test_what_the_provider_counted_is_what_counts() -> None:
    """Its count of the last request, and an estimate of what came since; never less than the estimate of the whole."""

    async def main() -> None:
        bench = bench_of(looks("a", 100), looks("b", 9_000), SUMMARY, say("Done."), window=10_000)
        await bench.ask("look")
        (start, *_) = attempts(bench)
        assert bench.types[start.seq - 1] == "step/end"
        assert len(bench.events("step/end")) == 3

    asyncio.run(main())


def test_an_attempt_that_failed_is_not_made_again_in_its_turn_and_the_turn_goes_on() -> None:
    """The next turn tries once more."""

    async def main() -> None:
        down = fail(ModelError("It is down.", code="SERVER"))
        bench = bench_of(looks("a"), looks("b"), down, looks("c"), looks("d"), say("Done."), SUMMARY, say("Again."))
        assert (await bench.ask("look")).reason == {"kind": "completed"}
        assert [event.data.get("error") for event in attempts(bench)] == [None, "It is down."]
        assert (await bench.ask("and now?")).reason == {"kind": "completed"}
        assert [event.type for event in attempts(bench)[2:]] == ["compaction/start", "compaction/summary", "compaction/end"]

    asyncio.run(main())


class Summarizing(ScriptedModel):
    """Gives the next step to a step's request, and a summary to a request for one. ``summaries``: how many there were."""

    summaries = 0

    async def stream(self, request: Any) -> Any:
        if request.messages[-1]["source"].get("plugin") != "compact":
            async for chunk in super().stream(request):
                yield chunk
            return
        self.summaries += 1
        async for chunk in ScriptedModel([SUMMARY]).stream(request):
            yield chunk


def test_a_history_that_stays_too_long_is_not_compacted_at_every_step() -> None:
    """One call fills it nearly alone: its result stays while it is among the newest, and is summarized once, when it is not."""

    async def main() -> None:
        bench = bench_of(window=400)
        small = [call("nothing", {"number": number}) for number in range(4)]
        model = Summarizing([looks("a"), *small, say("Done.")], window=400)
        bench.agent.models = lambda name: model
        end = await bench.ask("look")
        assert (end.reason, end.steps) == ({"kind": "completed"}, 6)
        assert model.summaries == 1
        (_, summary, _) = attempts(bench)
        assert len(bench.events("step/end")) - sum(event.seq > summary.seq for event in bench.events("step/end")) > 2

    asyncio.run(main())


def test_a_step_that_does_not_run_compacts_nothing() -> None:
    """Rejected by another listener, or left out because nobody has anything to say."""

    async def main() -> None:
        bench = bench_of(looks("a"), looks("b"), say("Done."), policy=CompactionPolicy(0.01))

        async def reject(step: Step, call_next: CallNext) -> Decision:
            return Reject("no") if step.step == 2 else await call_next(step)

        bench.seams.pre_step.register(reject, "innermost")
        await bench.ask("look")
        assert attempts(bench) == []

    asyncio.run(main())


def test_a_turn_that_is_stopped_while_the_summary_is_made_ends_as_stopped() -> None:
    """The attempt is closed, the surface as it was, and the next turn begins with what was not summarized."""

    async def main() -> None:
        streaming = asyncio.Event()

        async def wait() -> None:
            streaming.set()
            await asyncio.Event().wait()

        bench = bench_of(looks("a"), looks("b"), [say("## "), hold(wait)], SUMMARY, say("On."))
        task = asyncio.ensure_future(bench.ask("look"))
        await streaming.wait()
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await task
        assert attempts(bench)[-1].data["error"] == "stopped"
        assert bench.events("turn/end")[-1].data["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
        assert len(bench.session.fold(NODES)) == 5
        assert (await bench.ask("go on")).reason == {"kind": "completed"}

    asyncio.run(main())


def test_a_process_killed_while_the_summary_is_made_in_a_turn() -> None:
    """The turn is closed as deepseek-harness does, the attempt is over with the mark of the restart, and the next turn goes on."""

    async def main() -> None:
        bench = bench_of(looks("a"), looks("b"), SUMMARY, say("Done."))
        await bench.ask("look")
        lines = bench.session.lines[: attempts(bench)[0].seq + 1]
        again = bench_of(SUMMARY, say("On."), lines=lines, ids="again")
        assert (await again.ask("go on")).reason == {"kind": "completed"}
        assert [event.type for event in again.session.events[len(lines) :]][:2] == ["turn/end", "session/end-seed"]
        assert [event.type for event in attempts(again)][1:] == ["compaction/start", "compaction/summary", "compaction/end"]

    asyncio.run(main())


def test_a_request_refused_as_too_long_is_made_again_once_from_what_is_left() -> None:
    """In the same step: the failure stays in the log, and the header is the step's own. What the step began with stays word for word."""

    async def main() -> None:
        bench = bench_of(say("Hello. " * 80), fail(TOO_LONG), SUMMARY, say("It fits."), window=None)
        await bench.ask("hello")
        end = await bench.ask("go on " * 60)
        assert (end.reason, end.steps) == ({"kind": "completed"}, 1)
        start = attempts(bench)[0]
        failed = bench.session.events[start.seq - 1]
        assert failed.data["chunk"]["reason"]["failure"]["code"] == "CONTEXT_OVERFLOW"
        first, again = bench.model.requests[1], bench.model.requests[-1]
        assert (again.system, list(again.tools)) == (first.system, list(first.tools))
        assert [OPEN in str(message["content"]) for message in again.messages] == [True, False]
        assert again.messages[-1] == first.messages[-1]
        (message,) = bench.events("assistant/message")[1:]
        assert all(seq > attempts(bench)[-1].seq for seq in message.sources)

    asyncio.run(main())


@pytest.mark.parametrize("then", ["too long again", "no summary", "nothing to compact"])
def test_a_request_that_stays_too_long_fails_with_its_own_sentence(then: str) -> None:
    async def main() -> None:
        steps = {
            "too long again": [say("Hello. " * 80), fail(TOO_LONG), SUMMARY, fail(TOO_LONG)],
            "no summary": [say("Hello. " * 80), fail(TOO_LONG), fail(TOO_LONG)],
            "nothing to compact": [say("Hi."), fail(TOO_LONG)],
        }[then]
        bench = bench_of(*steps, window=None)
        await bench.ask("hello")
        end = await bench.ask("go on")
        assert end.reason == {"kind": "error", "error": {"message": str(TOO_LONG), "code": "CONTEXT_OVERFLOW"}}
        assert bench.model.remaining == 0
        assert len(bench.events("compaction/start")) == (0 if then == "nothing to compact" else 1)

    asyncio.run(main())


def test_where_the_summary_s_own_request_is_too_long_half_is_summarized_and_half_of_that() -> None:
    """Each attempt is logged. Asked for and after an overflow alike; a failure of another kind is not tried with less."""

    async def main() -> None:
        turns = [say(f"{number} " + "word " * 100) for number in range(8)]
        bench = bench_of(*turns, fail(TOO_LONG), fail(TOO_LONG), SUMMARY, window=None)
        for number in range(8):
            await bench.ask(f"{number} " + "count " * 100)
        assert bench.seams.commands is not None
        result = await bench.seams.commands.run("compact", CommandCall(bench.agent, ""))
        assert result.text.startswith("Compacted 3 messages ")
        asked = [len(request.messages) - 1 for request in bench.model.requests[-3:]]
        assert asked == [15, 7, 3]
        assert [event.data.get("error") for event in bench.events("compaction/end")] == [str(TOO_LONG), str(TOO_LONG), None]
        bench.model.add(fail(TOO_LONG), fail(TOO_LONG), SUMMARY, fail(TOO_LONG), SUMMARY, say("It fits."))
        assert (await bench.ask("go on")).reason == {"kind": "completed"}
        assert len(bench.session.fold(HISTORY)) == 3
        bench.model.add(fail(ModelError("Down.", code="SERVER")))
        await bench.seams.commands.run("compact", CommandCall(bench.agent, ""))
        assert bench.model.remaining == 0

    asyncio.run(main())


def test_what_a_stopped_step_was_to_begin_with_is_handed_back() -> None:
    """No model has heard it: it is in the log as taken out unsent, and not in the history."""

    async def main() -> None:
        streaming = asyncio.Event()

        async def wait() -> None:
            streaming.set()
            await asyncio.Event().wait()

        bench = bench_of(looks("a"), looks("b"), say("Done."), [hold(wait)], policy=CompactionPolicy(0))
        await bench.ask("look")
        bench.seams.compaction.due.register(due(CompactionPolicy()))
        task = asyncio.ensure_future(bench.ask("and now?"))
        await streaming.wait()
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await task
        queues = bench.session.fold(inbox_fold(bench.session.header))
        assert [message["content"][0]["text"] for message in queues.canceled] == ["and now?"]
        assert not bench.agent.inbox.has_pending
        assert "and now?" not in str(list(bench.session.fold(HISTORY)))

    asyncio.run(main())


def test_an_overflow_is_no_retry_and_a_retry_no_overflow() -> None:
    """With the retries of a busy provider in the same step."""

    async def main() -> None:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        busy = fail(ModelError("Busy.", code="RATE_LIMIT"))
        bench = Workbench(
            say("Hello. " * 80), busy, fail(TOO_LONG), SUMMARY, busy, say("It fits."),
            install=[lambda seams: retry.install(seams, sleep=sleep), *plugin()],
        )  # fmt: skip
        await bench.ask("hello")
        assert (await bench.ask("go on")).reason == {"kind": "completed"}
        assert [event.data["retry"] for event in bench.events("llm/retry")] == [1, 2]
        assert len(bench.events("compaction/start")) == 1

    asyncio.run(main())


def test_the_model_that_answered_last_summarizes() -> None:
    """Its cache has the conversation, and it can read it; the deployment's own where that one is none of its models any more."""

    async def main() -> None:
        def named(name: str, *steps: Any) -> ScriptedModel:
            return ScriptedModel(steps, config={"provider": "p", "model": name})

        own, planner = named("own", SUMMARY), named("planner", say("Planned. " * 80), SUMMARY)
        bench = bench_of(window=None, policy=CompactionPolicy(models=("p:planner",)))

        async def plans(step: Step, call_next: CallNext) -> Decision:
            step.model = "p:planner"
            return await call_next(step)

        undo = bench.seams.pre_step.register(plans)
        bench.agent.models = lambda name: planner if name else own
        await bench.ask("plan " * 90)
        undo()
        assert bench.seams.commands is not None
        run = bench.seams.commands.run
        assert (await run("compact", CommandCall(bench.agent, ""))).kind == "success"
        assert attempts(bench)[1].data["model"] == "planner"
        assert len(own.requests) == 0

    asyncio.run(main())


def test_a_call_without_a_result_binds_nothing_and_one_with_binds_what_lies_between() -> None:
    """deepseek-harness leaves calls of closed turns dangling; ids come again in later turns."""
    session = logs.new_session()
    session.append(
        logs.turn_start(1), logs.step_start(1, 1),
        logs.assistant(1, 1, logs.call_block("dangling"), id="a1"),
        logs.assistant(1, 1, logs.call_block("c"), logs.call_block("d"), id="a2"),
        logs.tool_call(1, 1, "c"), logs.tool_result(1, 1, "c"),
        logs.tool_call(1, 1, "d"), logs.tool_result(1, 1, "d"),
        logs.assistant(1, 1, logs.call_block("c"), id="a3"),
        logs.tool_call(1, 1, "c"), logs.tool_result(1, 1, "c", id="again"),
        logs.user("thanks"),
    )  # fmt: skip
    surface = [session.events[seq] for seq in session.fold(NODES)]
    assert whole_cuts(surface) == [True, True, False, False, True, False, True, True]


def test_the_estimate_is_deepseek_harness_s() -> None:
    """Four UTF-16 units a token, and a few for each block, message and envelope."""
    assert estimate_blocks([{"type": "text", "text": "x" * 9}, {"type": "reasoning", "text": "😀" * 2}]) == (3 + 4) + (1 + 4)
    nested = {"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": ""}], "isError": False}
    assert estimate_blocks([nested, {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"}]) == 8 + 6
    assert estimate_blocks([{"type": "text"}, {"type": "tool-call"}, {"type": "tool-result", "content": None}]) == 3 * 4
    assert estimate_header(None) == estimate_header({"config": {}, "system": "", "tools": []}) == 0
    assert estimate_header({"config": {}, "system": "abcd", "tools": [{"name": "n"}]}) == (1 + 4) + (4 + 4)


@pytest.mark.skipif(not RECOVERED.is_file(), reason="the recorded logs of deepseek-harness are not beside this checkout")
def test_a_recorded_compaction_is_priced_as_deepseek_harness_priced_it() -> None:
    """The price of the span that its log has, from the messages alone."""
    _, lines = read_jsonl(RECOVERED.read_bytes())
    events = decode_all(list(lines))
    summary = next(event for event in events if event.type == "compaction/summary")
    before = fold_value(MEASURE, events[: summary.seq])
    priced = dict(zip(before.nodes, before.prices, strict=True))
    assert sum(priced[seq] for seq in summary.data["shadowedSeqs"]) == summary.data["shadowedTokenCount"]
    assert list(fold_value(MEASURE, events).nodes) == list(fold_value(NODES, events))
    assert json.loads(lines[summary.seq])["data"].keys() >= {"rawOutput", "llmStreamCall", "provider", "model", "usage"}


def test_the_chain_of_what_is_due_decides_and_nobody_there_means_nothing() -> None:
    """Another listener may say when, and how much."""

    async def main() -> None:
        bench = bench_of(looks("a"), SUMMARY, say("Done."), policy=CompactionPolicy(0))
        asked = []

        async def always(question: Any, call_next: Any) -> Any:
            asked.append(question.trigger)
            nodes = list(bench.session.fold(NODES))
            return Span(nodes[0], nodes[0]) if len(asked) == 2 else None

        bench.seams.compaction.due.register(always, "outermost")
        await bench.ask("look " * 100)
        assert asked == ["pressure", "pressure"]
        assert attempts(bench)[1].data["shadowedSeqs"] == [4]
        assert await Seams.create().compaction.due.ask(object()) is None  # type: ignore[arg-type]

    asyncio.run(main())
