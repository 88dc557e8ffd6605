"""Three wire formats, written from chunks: OpenAI chat completions, OpenAI responses, Anthropic messages. PURE: frames of text, no IO.

Only what a client of the format needs to read an answer; field names and their order of appearance are those of the public APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from plan_mode_nb.agent.model import Chunk, Finish, FinishKind, ReasoningDelta, TextDelta, ToolCallDelta, Usage, UsageChunk

Json = dict[str, Any]


class Wire(Protocol):
    """One answer in one format. ``signatures``: by block, what thinking carries along."""

    def open(self) -> Iterator[str]:
        """Frames ahead of the first chunk."""

    def chunk(self, chunk: Chunk) -> Iterator[str]:
        """Frames of one chunk; ``Finish`` completes the answer."""

    def filtered(self) -> Iterator[str]:
        """Frames that end the answer by the content filter."""

    def trouble(self, message: str) -> Iterator[str]:
        """The format's error event."""


def _data(value: Json) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\n{_data({'type': kind, **fields})}"


class ChatWire:
    """``/chat/completions``. Thinking is ``reasoning_content``, as DeepSeek, vLLM and llama.cpp send it."""

    def __init__(self, model: str, signatures: Mapping[int, str]) -> None:
        self._base: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        self._calls: dict[int, int] = {}
        self._usage: Usage | None = None

    def open(self) -> Iterator[str]:
        """The role."""
        yield self._delta({"role": "assistant", "content": ""})

    def chunk(self, chunk: Chunk) -> Iterator[str]:
        """One delta each; usage waits for the end."""
        match chunk:
            case TextDelta(_, text):
                yield self._delta({"content": text})
            case ReasoningDelta(_, text):
                yield self._delta({"reasoning_content": text})
            case ToolCallDelta(index, id, name, arguments):
                yield self._delta({"tool_calls": [self._call(index, id, name, arguments)]})
            case UsageChunk(usage):
                self._usage = usage
            case Finish(kind):
                yield from self._end({"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"}[kind])

    def filtered(self) -> Iterator[str]:
        """``content_filter`` as the reason."""
        yield from self._end("content_filter")

    def trouble(self, message: str) -> Iterator[str]:
        """An error object in place of a chunk."""
        yield _data({"error": {"message": message, "type": "server_error", "code": "server_error"}})

    def _call(self, index: int, id: str, name: str | None, arguments: str) -> Json:
        if index in self._calls:
            return {"index": self._calls[index], "function": {"arguments": arguments}}
        self._calls[index] = len(self._calls)
        return {"index": self._calls[index], "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _delta(self, delta: Json, reason: str | None = None) -> str:
        return _data({**self._base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def _end(self, reason: str) -> Iterator[str]:
        yield self._delta({}, reason)
        if self._usage is not None:
            yield _data({**self._base, "choices": [], "usage": chat_usage(self._usage)})
        yield "data: [DONE]\n\n"


class AnthropicWire:
    """``/messages``. Blocks stand one after the other; a new one closes the one before."""

    def __init__(self, model: str, signatures: Mapping[int, str]) -> None:
        self._model = model
        self._signatures = signatures
        self._usage = Usage(0, 0)
        self._open: int | None = None
        self._begun = False

    def open(self) -> Iterator[str]:
        """Nothing yet: the opening message carries the input's token count, which the script may tell first."""
        yield from ()

    def chunk(self, chunk: Chunk) -> Iterator[str]:
        """Frames of the block that the chunk belongs to."""
        if isinstance(chunk, UsageChunk):
            self._usage = chunk.usage
            return
        yield from self._begin()
        match chunk:
            case TextDelta(index, text):
                yield from self._start(index, {"type": "text", "text": ""})
                yield self._delta(index, {"type": "text_delta", "text": text})
            case ReasoningDelta(index, text):
                yield from self._start(index, {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta(index, {"type": "thinking_delta", "thinking": text})
            case ToolCallDelta(index, id, name, arguments):
                yield from self._start(index, {"type": "tool_use", "id": id, "name": name, "input": {}})
                yield self._delta(index, {"type": "input_json_delta", "partial_json": arguments})
            case Finish(kind):
                yield from self._end({"stop": "end_turn", "tool-calls": "tool_use", "max-tokens": "max_tokens"}[kind])

    def filtered(self) -> Iterator[str]:
        """``refusal`` as the reason."""
        yield from self._begin()
        yield from self._end("refusal")

    def trouble(self, message: str) -> Iterator[str]:
        """The error event."""
        yield _event("error", error={"type": "api_error", "message": message})

    def _begin(self) -> Iterator[str]:
        if not self._begun:
            self._begun = True
            message = {"id": "msg_1", "type": "message", "role": "assistant", "model": self._model, "content": []}
            usage = {**anthropic_usage(self._usage), "output_tokens": 0}
            yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})

    def _start(self, index: int, block: Json) -> Iterator[str]:
        if self._open != index:
            yield from self._stop()
            self._open = index
            yield _event("content_block_start", index=index, content_block=block)

    def _stop(self) -> Iterator[str]:
        if self._open is not None:
            if signature := self._signatures.get(self._open):
                yield self._delta(self._open, {"type": "signature_delta", "signature": signature})
            yield _event("content_block_stop", index=self._open)
            self._open = None

    def _delta(self, index: int, delta: Json) -> str:
        return _event("content_block_delta", index=index, delta=delta)

    def _end(self, reason: str) -> Iterator[str]:
        yield from self._stop()
        yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=anthropic_usage(self._usage))
        yield _event("message_stop")


class ResponsesWire:
    """``/responses``. Each block is an output item; thinking is a reasoning item whose encrypted content is the signature."""

    def __init__(self, model: str, signatures: Mapping[int, str]) -> None:
        self._response: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "output": [], "tools": []}
        self._response |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress"}
        self._signatures = signatures
        self._usage: Usage | None = None
        self._items: list[Json] = []
        self._blocks: dict[int, Json] = {}
        self._number = 0

    def open(self) -> Iterator[str]:
        """The response, created."""
        yield self._frame("response.created", response=self._response)

    def chunk(self, chunk: Chunk) -> Iterator[str]:
        """Frames of the item that the chunk belongs to."""
        match chunk:
            case TextDelta(index, text):
                yield from self._start(index, {"type": "message", "id": f"msg_{index}", "role": "assistant", "content": []})
                yield self._part("response.output_text.delta", index, content_index=0, delta=text, logprobs=[])
            case ReasoningDelta(index, text):
                yield from self._start(index, {"type": "reasoning", "id": f"rs_{index}", "summary": []})
                yield self._part("response.reasoning_summary_text.delta", index, summary_index=0, delta=text)
            case ToolCallDelta(index, id, name, arguments):
                call = {"type": "function_call", "id": f"fc_{index}", "call_id": id, "name": name, "arguments": ""}
                yield from self._start(index, call)
                self._blocks[index]["arguments"] += arguments
                yield self._part("response.function_call_arguments.delta", index, delta=arguments)
            case UsageChunk(usage):
                self._usage = usage
            case Finish(kind):
                yield from self._end(kind)

    def filtered(self) -> Iterator[str]:
        """Incomplete, by the content filter."""
        yield self._closing("response.incomplete", "incomplete", {"incomplete_details": {"reason": "content_filter"}})

    def trouble(self, message: str) -> Iterator[str]:
        """A failed response."""
        yield self._closing("response.failed", "failed", {"error": {"code": "server_error", "message": message}})

    def _start(self, index: int, item: Json) -> Iterator[str]:
        if index not in self._blocks:
            self._blocks[index] = {"status": "in_progress", **item}
            yield self._frame("response.output_item.added", output_index=index, item=dict(self._blocks[index]))

    def _end(self, kind: FinishKind) -> Iterator[str]:
        for index, item in self._blocks.items():
            if signature := self._signatures.get(index):
                item["encrypted_content"] = signature
            item["status"] = "completed"
            yield self._frame("response.output_item.done", output_index=index, item=item)
        if kind == "max-tokens":
            yield self._closing("response.incomplete", "incomplete", {"incomplete_details": {"reason": "max_output_tokens"}})
        else:
            yield self._closing("response.completed", "completed", {})

    def _closing(self, kind: str, status: str, more: Json) -> str:
        told = {} if self._usage is None else {"usage": responses_usage(self._usage)}
        return self._frame(kind, response={**self._response, "status": status, "output": list(self._blocks.values()), **told, **more})

    def _part(self, kind: str, index: int, **fields: Any) -> str:
        return self._frame(kind, output_index=index, item_id=self._blocks[index]["id"], **fields)

    def _frame(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return _event(kind, sequence_number=self._number, **fields)


def chat_usage(usage: Usage) -> Json:
    """OpenAI counts cached tokens into the prompt."""
    prompt = usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    told: Json = {"prompt_tokens": prompt, "completion_tokens": usage.output_tokens, "total_tokens": prompt + usage.output_tokens}
    told["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens or 0}
    told["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens or 0}
    return told


def responses_usage(usage: Usage) -> Json:
    """As chat, by its own names."""
    chat = chat_usage(usage)
    told: Json = {"input_tokens": chat["prompt_tokens"], "output_tokens": chat["completion_tokens"], "total_tokens": chat["total_tokens"]}
    told["input_tokens_details"] = chat["prompt_tokens_details"]
    told["output_tokens_details"] = chat["completion_tokens_details"]
    return told


def anthropic_usage(usage: Usage) -> Json:
    """Anthropic counts disjointly, as dsh does."""
    told: Json = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    told["cache_read_input_tokens"] = usage.cache_read_tokens or 0
    told["cache_creation_input_tokens"] = usage.cache_write_tokens or 0
    return told
