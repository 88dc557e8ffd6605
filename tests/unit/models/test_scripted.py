"""The scripted model: what it says is the script's, what it was asked is kept, and waiting needs no clock."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys

import msgspec
import pytest

from plan_mode_nb.agent.model import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, Usage, UsageChunk
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.script import WirePart, call, fail, finish, fragments, hold, say, think, usage, words
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing.model_contract import a_request, blocks_of, chunks_of


def heard(*steps: object, request: object = None) -> tuple[list[Chunk], ModelError | None]:
    return asyncio.run(chunks_of(ScriptedModel(steps), request or a_request()))  # type: ignore[arg-type]


def test_an_answer_is_its_parts_in_order_then_the_finish() -> None:
    chunks, error = heard([think("Hm. "), say("It is "), call("look", {"name": "x"}, "c-1"), usage(9, 2)])
    assert error is None
    assert chunks == [
        ReasoningDelta(0, "Hm. "),
        TextDelta(1, "It "),
        TextDelta(1, "is "),
        ToolCallDelta(2, "c-1", "look"),
        ToolCallDelta(2, "c-1", None, '{"name":"x"}'),
        UsageChunk(Usage(9, 2)),
        Finish("tool-calls"),
    ]


def test_a_single_part_is_an_answer() -> None:
    assert heard(say("Yes."))[0] == [TextDelta(0, "Yes."), Finish("stop")]


def test_a_step_may_be_a_function_of_its_request() -> None:
    chunks, _ = heard(lambda request: say(f"You said: {request.messages[-1]['content'][0]['text']}"))
    assert blocks_of(chunks) == [{"type": "text", "text": "You said: What is x?"}]


def test_calls_without_an_id_are_numbered_by_answer_and_place() -> None:
    """So a script plays the same every time."""
    model = ScriptedModel([call("look", "{}"), [say("Again. "), call("look", "{}")]])
    ids = [block["id"] for _ in range(2) for block in blocks_of(asyncio.run(chunks_of(model))[0]) if block["type"] == "tool-call"]
    assert ids == ["call-0-0", "call-1-1"]


def test_a_failure_ends_an_answer_where_it_stands() -> None:
    chunks, error = heard([say("One "), fail(ModelError("Broken.", code="SERVER", status=500)), say("never")])
    assert chunks == [TextDelta(0, "One ")]
    assert error is not None
    assert (str(error), error.code, error.status) == ("Broken.", "SERVER", 500)


def test_an_explicit_finish_ends_an_answer() -> None:
    assert heard([say("One "), finish("max-tokens"), say("never")])[0][-1] == Finish("max-tokens")


def test_running_out_says_so_and_that_asking_again_cannot_help() -> None:
    _, error = heard()
    assert error is not None
    assert error.code == "CONFIG"
    assert "the script ends here: it has 0 answers; add one for request 1" in str(error)


def test_requests_are_kept_failed_ones_too() -> None:
    model = ScriptedModel([fail(ModelError("No."))])
    first, second = a_request("one"), a_request("two")
    asyncio.run(chunks_of(model, first))
    asyncio.run(chunks_of(model, second))
    assert model.requests == [first, second]
    assert model.remaining == 0


def test_more_steps_can_be_added_while_it_runs() -> None:
    model = ScriptedModel()
    model.add(say("Late."))
    assert model.remaining == 1
    assert blocks_of(asyncio.run(chunks_of(model))[0]) == [{"type": "text", "text": "Late."}]


def test_a_stream_can_be_held_and_cancelled_without_any_clock() -> None:
    async def body() -> None:
        gate, reached = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            reached.set()
            await gate.wait()

        model = ScriptedModel([[say("One "), hold(wait), say("two")], say("next")])
        task = asyncio.create_task(chunks_of(model))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert blocks_of((await chunks_of(model))[0]) == [{"type": "text", "text": "next"}]

    asyncio.run(asyncio.wait_for(body(), 60))


def test_every_chunk_can_be_awaited_first() -> None:
    seen: list[Chunk] = []

    async def before(chunk: Chunk) -> None:
        seen.append(chunk)

    chunks, _ = asyncio.run(chunks_of(ScriptedModel([say("a b")], before_chunk=before)))
    assert seen == chunks


@pytest.mark.parametrize("text", ["", " ", "a", "a  b\n\nc ", "\n x", "ä€😀 z"])
def test_pieces_add_up_to_the_text(text: str) -> None:
    assert "".join(words(text)) == text
    assert "".join(fragments(text)) == text


def test_a_script_has_a_json_form() -> None:
    """It can be handed to another process."""
    parts = [think("a", "sig"), say("b"), call("look", "{"), usage(1, 2, cache_read_tokens=3), fail(ModelError("x", code="AUTH"))]
    assert msgspec.json.decode(msgspec.json.encode(parts), type=list[WirePart]) == parts


def test_importing_the_models_imports_no_provider() -> None:
    """A kernel that never asks a model does not pay for one."""
    code = "import sys, plan_mode_nb.models as m; print([n for n in ('pydantic_ai', 'openai', 'anthropic', 'httpx') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    assert importlib.import_module("plan_mode_nb.models").__all__
