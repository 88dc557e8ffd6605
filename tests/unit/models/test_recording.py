"""A recording plays what was answered, in the order in which it was asked: failures, retries, kept prefixes and all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.agent.model import Chunk, Finish, TextDelta, ToolCallDelta, Usage, UsageChunk
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import assistant_message, text_block
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.recording import RECORDING, RecordedModel, recorded_answers
from plan_mode_nb.models.script import call, fail, hold, say, think, usage
from plan_mode_nb.store.jsonl import load_jsonl
from plan_mode_nb.testing.model_contract import blocks_of, chunks_of
from plan_mode_nb.testing.workbench import CHECKED, Workbench

LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "dsh-logs"
FAILED = {"message": "slow down", "code": "RATE_LIMIT", "status": 429, "providerRetryAfterMs": 50}
RAW = '{"name":  "x", "n": 1e1}'


def log(*entries: tuple[str, dict[str, Any]]) -> list[Event]:
    """Events of one turn's step unless they say otherwise."""
    return [Event(kind, seq, 0, {"turn": 1, "step": 1, **data}) for seq, (kind, data) in enumerate(entries)]


def header(model: str = "m") -> tuple[str, dict[str, Any]]:
    return "request/header", {"header": {"config": {"provider": "p", "model": model}}, "reason": "initial"}


def chunk(**data: Any) -> tuple[str, dict[str, Any]]:
    return "assistant/chunk", {"chunk": data}


def message(text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "assistant/message", {"message": assistant_message([text_block(text)], id="a", provider="p", model="m"), **more}


START: tuple[str, dict[str, Any]] = ("step/start", {})
END: tuple[str, dict[str, Any]] = ("step/end", {})


def ended(kind: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "turn/end", {"reason": {"kind": kind, **more}}


def texts(events: list[Event]) -> list[tuple[str, str | None]]:
    """Each answer's text and the code of its failure."""
    return [
        ("".join(each.text for each in answer.chunks if isinstance(each, TextDelta)), answer.error and answer.error.code)
        for answer in recorded_answers(events)
    ]


def test_a_recorded_turn_plays_as_it_was() -> None:
    """Thinking, text, raw arguments byte for byte, usage, and the header's configuration."""

    async def body() -> None:
        bench = Workbench([think("Hm. "), say("Look: "), call("look", RAW, "c-1"), usage(20, 7, cache_read_tokens=100)], [say("Done.")])
        await bench.ask("x?")
        model = RecordedModel(bench.session.events)
        assert dict(model.config) == dict(bench.model.config)
        chunks, error = await chunks_of(model)
        assert error is None
        assert [block["type"] for block in blocks_of(chunks)] == ["reasoning", "text", "tool-call"]
        assert chunks[-3:] == [ToolCallDelta(2, "c-1", "look", RAW), UsageChunk(Usage(20, 7, 100)), Finish("tool-calls")]
        assert model.remaining == 1
        assert blocks_of((await chunks_of(model))[0]) == [{"type": "text", "text": "Done."}]

    asyncio.run(body())


def test_recorded_deltas_are_played_as_they_came() -> None:
    """A log that keeps every chunk is replayed chunk for chunk."""

    async def body() -> None:
        bench = Workbench(
            [say("one two three"), call("look", RAW, "c-1")], say("Done."), config=LoopConfig(record_chunks=True, check="full")
        )
        await bench.ask("x?")
        chunks, _ = await chunks_of(RecordedModel(bench.session.events))
        assert next(each for each in chunks if isinstance(each, ToolCallDelta)) == ToolCallDelta(1, "c-1", "look")
        assert len(chunks) > 5

    asyncio.run(body())


def test_a_replayed_recording_makes_the_same_log() -> None:
    """The point of it: the same loop, driven by the recording, writes the same events."""

    async def body() -> None:
        steps = [[think("Hm. "), call("look", RAW, "c-1"), usage(1, 2)], [say("Done."), usage(3, 4)]]
        first, again = Workbench(*steps, config=CHECKED), Workbench(config=CHECKED)
        await first.ask("x?")
        again.model = RecordedModel(first.session.events)  # type: ignore[assignment]
        await again.ask("x?")
        assert again.types == first.types
        assert [event.data for event in again.session.events] == [event.data for event in first.session.events]

    asyncio.run(body())


def test_a_failed_request_fails_again_with_its_sentence_and_code() -> None:
    async def body() -> None:
        bench = Workbench(fail(ModelError("The key was refused.", code="AUTH")), say("Better."))
        await bench.ask("x?")
        await bench.ask("again")
        model = RecordedModel(bench.session.events)
        _, error = await chunks_of(model)
        assert error is not None
        assert (str(error), error.code) == ("The key was refused.", "AUTH")
        assert blocks_of((await chunks_of(model))[0]) == [{"type": "text", "text": "Better."}]

    asyncio.run(body())


def test_a_kept_prefix_is_delivered_before_its_failure() -> None:
    async def body() -> None:
        bench = Workbench([say("One two "), fail(ModelError("It broke.", code="TRANSPORT"))])
        await bench.ask("x?")
        chunks, error = await chunks_of(RecordedModel(bench.session.events))
        assert blocks_of(chunks) == [{"type": "text", "text": "One two "}]
        assert error is not None
        assert error.code == "TRANSPORT"

    asyncio.run(body())


def test_a_stopped_answer_delivers_its_prefix_and_fails_as_aborted() -> None:
    async def body() -> None:
        reached = asyncio.Event()

        async def forever() -> None:
            reached.set()
            await asyncio.Event().wait()

        bench = Workbench([say("One two "), hold(forever)])
        task = asyncio.create_task(bench.ask("x?"))
        await reached.wait()
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await task
        chunks, error = await chunks_of(RecordedModel(bench.session.events))
        assert blocks_of(chunks) == [{"type": "text", "text": "One two "}]
        assert error is not None
        assert error.code == "ABORTED"

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_retried_request_fails_first_and_is_then_answered() -> None:
    failing = chunk(type="finish", reason={"kind": "error", "failure": FAILED})
    retry = ("llm/retry-started", {"retry": 1})
    answered = (chunk(type="finish", reason={"kind": "stop"}), message("Back."))
    assert texts(log(header(), START, failing, retry, *answered, END, ended("completed"))) == [("", "RATE_LIMIT"), ("Back.", None)]
    failure = recorded_answers(log(header(), START, failing, END))[0].error
    assert failure is not None
    assert (failure.status, failure.retry_after_ms) == (429, 50)


def test_a_prefix_belongs_to_the_request_that_failed_on_either_side_of_its_finish() -> None:
    failing = chunk(type="finish", reason={"kind": "error", "failure": FAILED})
    prefix = message("One ", interrupted=True)
    for order in ((failing, prefix), (prefix, failing)):
        assert texts(log(header(), START, *order, END, ended("error", error=FAILED))) == [("One ", "RATE_LIMIT")]


def test_a_retry_that_was_stopped_is_a_request_of_its_own() -> None:
    failing = chunk(type="finish", reason={"kind": "error", "failure": FAILED})
    events = log(header(), START, failing, ("llm/retry-started", {}), message("Two ", interrupted=True), END, ended("aborted"))
    assert texts(events) == [("", "RATE_LIMIT"), ("Two ", "ABORTED")]


def test_a_step_that_was_entered_and_got_nothing_was_a_request() -> None:
    assert texts(log(header(), START, END, ended("aborted"))) == [("", "ABORTED")]
    assert texts(log(header(), START, END, ended("error", error=FAILED))) == [("", "RATE_LIMIT")]


def test_a_refused_step_was_none() -> None:
    assert texts(log(header(), ended("blocked"))) == []
    assert texts(log(header(), START, message("Fine."), END, ended("error", error={"message": "limit", "code": "MAX_STEPS"}))) == [
        ("Fine.", None)
    ]


def test_a_turn_that_is_still_open_counts_as_interrupted() -> None:
    assert texts(log(header(), START, chunk(type="usage", usage={"inputTokens": 1, "outputTokens": 1}))) == [("", "ABORTED")]


def test_the_configuration_is_that_of_the_next_answer() -> None:
    """So the header of each replayed request equals the recorded one, also where the model was changed in between."""

    async def body() -> None:
        first = log(header("one"), START, message("1"), END, ended("completed"))
        second = log(header("two"), START, message("2"), END, ended("completed"))
        model = RecordedModel([*first, *second])
        assert model.config["model"] == "one"
        await chunks_of(model)
        assert model.config["model"] == "two"
        await chunks_of(model)
        assert model.config["model"] == "two"

    asyncio.run(body())


def test_what_a_provider_needs_back_is_kept() -> None:
    state = {"response": {"adapter": "a"}, "blocks": [{"signature": "s"}]}
    kept = assistant_message([text_block("Yes.")], id="a", provider="p", model="m", replay_state=state)
    answer = recorded_answers(log(header(), START, ("assistant/message", {"message": kept}), END))[0]
    assert answer.chunks[-1] == Finish("stop", state)


def test_the_end_of_a_recording_says_how_to_go_on() -> None:
    model = RecordedModel([])
    _, error = asyncio.run(chunks_of(model))
    assert error is not None
    assert str(error).startswith("the recording ends here;")
    assert "%config PlanAgent.model" in str(error)
    assert model.config == RECORDING


@pytest.mark.skipif(not LOGS.is_dir(), reason="the recorded logs of deepseek-harness are not beside this checkout")
@pytest.mark.parametrize("path", sorted(LOGS.glob("*.jsonl")) if LOGS.is_dir() else [], ids=lambda path: path.stem[-40:])
def test_every_answer_of_deepseek_harness_logs_is_played(path: Path) -> None:
    """As many whole answers as the log has messages, each adding up to its message, beside the summaries of compactions."""
    events = decode_all(load_jsonl(path).lines)
    messages = [event.data["message"] for event in events if event.type == "assistant/message"]
    summaries = [event.data["rawOutput"] for event in events if event.type == "compaction/summary"]
    assert [blocks_of(_without_finish(answer.chunks)) for answer in recorded_answers(events) if answer.is_summary] == summaries
    whole = [answer for answer in recorded_answers(events) if answer.error is None and not answer.is_summary]
    assert len(whole) == len(messages)
    for answer, recorded in zip(whole, messages, strict=True):
        assert blocks_of(_without_finish(answer.chunks)) == recorded["content"]


def _without_finish(chunks: tuple[Chunk, ...]) -> list[Chunk]:
    return [each for each in chunks if not isinstance(each, Finish)]
