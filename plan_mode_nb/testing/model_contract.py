"""What every model must do, whoever it is. Subclass :class:`ModelContract`, say how a script is served, and pytest collects the rules.

The script's parts are those of :mod:`plan_mode_nb.models.script`; a real adapter is served by the loopback server, so the same rules hold
over a real connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, cast

import msgspec

from plan_mode_nb.agent.answer import Answer
from plan_mode_nb.agent.model import Chunk, Finish, Model, ReasoningDelta, Request, TextDelta, ToolCallDelta, UsageChunk
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.messages import Block, user_message
from plan_mode_nb.models.script import WirePart, call, fail, finish, say, think, usage

TOOL: dict[str, Any] = {
    "name": "look",
    "description": "Look at a variable.",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def a_request(text: str = "What is x?", **more: Any) -> Request:
    """A request with one user message and one tool."""
    messages = [user_message(text, id="m-1")]
    given: dict[str, Any] = {"config": {"provider": "p", "model": "m"}, "system": "Be brief.", "tools": [TOOL], "messages": messages}
    return Request(**{**given, **more})


async def chunks_of(model: Model, request: Request | None = None) -> tuple[list[Chunk], ModelError | None]:
    """All chunks of one answer, and the failure that ended it if one did."""
    chunks: list[Chunk] = []
    try:
        async for chunk in model.stream(request or a_request()):
            chunks.append(chunk)
    except ModelError as error:
        return chunks, error
    return chunks, None


def blocks_of(chunks: Sequence[Chunk]) -> list[Block]:
    """The blocks that the chunks add up to."""
    answer = Answer()
    for chunk in chunks:
        answer.push(chunk)
    return answer.blocks()


class ModelContract:
    """Rules for every model. Each test is the sentence of its rule."""

    def serve(self, steps: Sequence[Sequence[WirePart]]) -> AbstractAsyncContextManager[Model]:
        """A model that answers its requests with these steps, one each."""
        raise NotImplementedError

    def run(self, steps: Sequence[Sequence[WirePart]], body: Callable[[Model], Coroutine[Any, Any, None]]) -> None:
        """Serve the steps to ``body``, on a loop of its own, in bounded time."""

        async def within() -> None:
            async with self.serve(steps) as model:
                await asyncio.wait_for(body(model), 30)

        asyncio.run(within())

    def test_text_arrives_in_order_and_the_finish_comes_last(self) -> None:
        """Deltas add up to the text; exactly one Finish, with nothing after it."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks) == [{"type": "text", "text": "The value is 3, and  that is all."}]
            assert [chunk for chunk in chunks if isinstance(chunk, Finish)] == [chunks[-1]]
            assert cast(Finish, chunks[-1]).kind == "stop"

        self.run([[say("The value is 3, and  that is all.")]], body)

    def test_long_text_is_streamed_in_pieces(self) -> None:
        """An answer of many words comes in more than one delta."""

        async def body(model: Model) -> None:
            chunks, _ = await chunks_of(model)
            assert sum(isinstance(chunk, TextDelta) for chunk in chunks) > 5

        self.run([[say("one two three four five six seven eight nine ten")]], body)

    def test_blocks_are_numbered_from_zero_in_order_of_appearance(self) -> None:
        """Thinking, text and calls of one answer share one numbering without gaps."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            seen = [chunk.index for chunk in chunks if isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta)]
            assert list(dict.fromkeys(seen)) == [0, 1, 2]
            assert [block["type"] for block in blocks_of(chunks)] == ["reasoning", "text", "tool-call"]

        self.run([[think("Hm, let me see."), say("Looking."), call("look", {"name": "x"}, "c-1")]], body)

    def test_arguments_of_parallel_calls_arrive_byte_for_byte(self) -> None:
        """Spacing, number spelling, escapes and key order are the model's; nothing is parsed on the way."""
        first, second = '{"name":  "x", "n": 1e1,\n "u": "\\u00e9é"}', '{"b": 1, "a": [ ]}'

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks) == [
                {"type": "tool-call", "id": "c-1", "name": "look", "arguments": first},
                {"type": "tool-call", "id": "c-2", "name": "look", "arguments": second},
            ]
            assert cast(Finish, chunks[-1]).kind == "tool-calls"

        self.run([[call("look", first, "c-1"), call("look", second, "c-2")]], body)

    def test_malformed_arguments_arrive_as_they_are(self) -> None:
        """A call that is not JSON is still the model's call; what to say about it is the loop's business."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks)[0]["arguments"] == '{"name": "x'

        self.run([[call("look", '{"name": "x', "c-1")]], body)

    def test_usage_is_disjoint_and_comes_before_the_finish(self) -> None:
        """Input counts exclude what was read from the cache; together they are the prompt."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            used = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
            assert used, "no usage was reported"
            assert (used[-1].input_tokens, used[-1].output_tokens, used[-1].cache_read_tokens) == (20, 17, 100)
            assert isinstance(chunks[-1], Finish)

        self.run([[usage(20, 17, cache_read_tokens=100), say("Yes.")]], body)

    def test_an_answer_cut_off_at_the_limit_says_so(self) -> None:
        """``max-tokens`` is a finish, not a failure."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is None
            assert cast(Finish, chunks[-1]).kind == "max-tokens"

        self.run([[say("And so it"), finish("max-tokens")]], body)

    def test_a_failure_is_one_sentence_with_a_code(self) -> None:
        """A refused request raises, having delivered nothing."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is not None
            assert error.code == "RATE_LIMIT"
            assert str(error).strip()
            assert "\n" not in str(error)
            assert [chunk for chunk in chunks if not isinstance(chunk, UsageChunk)] == []

        self.run([[fail(ModelError("Too many requests.", code="RATE_LIMIT", status=429, retry_after_ms=2000))]], body)

    def test_a_failure_in_the_middle_keeps_what_was_delivered(self) -> None:
        """Chunks ahead of the failure arrive; no Finish follows them."""

        async def body(model: Model) -> None:
            chunks, error = await chunks_of(model)
            assert error is not None
            assert error.code == "TRANSPORT"
            assert blocks_of(chunks) == [{"type": "text", "text": "One two "}]
            assert not any(isinstance(chunk, Finish) for chunk in chunks)

        self.run([[say("One two "), fail(ModelError("It broke.", code="TRANSPORT"))]], body)

    def test_a_model_goes_on_after_a_failure(self) -> None:
        """The next request is answered as if nothing had happened."""

        async def body(model: Model) -> None:
            _, error = await chunks_of(model)
            assert error is not None
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks) == [{"type": "text", "text": "Back."}]

        self.run([[fail(ModelError("Down.", code="SERVER", status=500))], [say("Back.")]], body)

    def test_a_reader_may_leave_early(self) -> None:
        """Closing a stream in the middle is clean, and the next request gets its own answer."""

        async def body(model: Model) -> None:
            async with aclosing(cast("Any", model.stream(a_request()))) as stream:
                first = await anext(cast(AsyncIterator[Chunk], stream))
            assert isinstance(first, TextDelta)
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks) == [{"type": "text", "text": "Second."}]

        self.run([[say("One two three four.")], [say("Second.")]], body)

    def test_a_request_is_not_changed(self) -> None:
        """The request is the log's; a model only reads it."""

        async def body(model: Model) -> None:
            request = a_request()
            before = msgspec.json.encode([request.config, request.system, request.tools, list(request.messages)])
            await chunks_of(model, request)
            assert msgspec.json.encode([request.config, request.system, request.tools, list(request.messages)]) == before

        self.run([[say("Fine.")]], body)

    def test_the_configuration_names_provider_and_model_and_is_json(self) -> None:
        """It goes into the request header as it is."""

        async def body(model: Model) -> None:
            config = dict(model.config)
            assert config["provider"]
            assert config["model"]
            assert msgspec.json.decode(msgspec.json.encode(config)) == config
            assert dict(model.config) == config

        self.run([[say("Fine.")]], body)

    def test_running_out_of_answers_is_a_failure_and_not_a_wait(self) -> None:
        """A request that nobody answers raises."""

        async def body(model: Model) -> None:
            await chunks_of(model)
            _, error = await chunks_of(model)
            assert error is not None

        self.run([[say("Only this.")]], body)
