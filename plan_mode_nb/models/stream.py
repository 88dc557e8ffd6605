"""pydantic-ai's stream events -> our chunks. Blocks are numbered in the order in which their first text appears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from plan_mode_nb.agent.model import Chunk, Finish, FinishKind, ReasoningDelta, Request, TextDelta, ToolCallDelta, Usage, UsageChunk
from plan_mode_nb.agent.prompt import SEPARATOR
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.failures import one_line
from plan_mode_nb.models.state import PartState, envelope

BROKE_OFF = "The answer broke off before its end: run the cell again."


def start(
    model: ProviderModel, messages: list[ModelMessage], request: Request, settings: Mapping[str, Any]
) -> AbstractAsyncContextManager[StreamedResponse]:
    """Open the request. Tool schemas go out as they are: no provider's strict mode may rewrite them.

    The system prompt is cut only where cache markers are asked for: chat templates of local models take one system message.
    """
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool["name"], parameters_json_schema=tool["parameters"], description=tool["description"], strict=False)
            for tool in request.tools
        ],
        instruction_parts=_instructions(request, cut=bool(settings.get("cache"))),
    )
    return model_request_stream(
        model, messages, model_settings=cast(ModelSettings, dict(settings)), model_request_parameters=parameters, instrument=False
    )


def _instructions(request: Request, *, cut: bool) -> list[InstructionPart]:
    """The system prompt; ``cut``: in two where it begins to change, so that the marker stands ahead of what changes."""
    system, end = request.system, request.stable
    if not system:
        return []
    if not cut or end is None or end == len(system):
        return [InstructionPart(system)]
    stable, rest = system[:end], system[end:]
    if not stable or not rest.startswith(SEPARATOR):
        return [InstructionPart(system, dynamic=True)]
    return [InstructionPart(stable), InstructionPart(rest.removeprefix(SEPARATOR), dynamic=True)]


class Translator:
    """One answer. ``take`` each event in order, then ``end`` with the whole response.

    ``says_finish``: the wire always says why an answer ends, so one that does not was cut off, however properly its connection closed.
    """

    def __init__(self, *, says_finish: bool) -> None:
        self._says_finish = says_finish
        self._blocks: dict[int, int] = {}
        self._ids: dict[int, str] = {}
        self._visible = False
        self._called = False

    def take(self, event: object) -> Iterator[Chunk]:
        """The chunks of one event; events that add nothing (ends of parts, final results) have none."""
        match event:
            case PartStartEvent(index=index, part=TextPart(content=text)):
                yield from self._text(index, text)
            case PartStartEvent(index=index, part=ThinkingPart(content=text)):
                yield from self._thinking(index, text)
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                yield self._call(index, part)
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                yield from self._text(index, text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
                yield from self._thinking(index, text or "")
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)) if args and index in self._ids:
                yield ToolCallDelta(self._block(index), self._ids[index], None, _raw(args))

    def end(self, response: ModelResponse) -> Iterator[Chunk]:
        """Usage, then the finish.

        Raises:
            ModelError: the answer was filtered, empty, or not whole.
        """
        if (chunk := usage_chunk(response.usage)) is not None:
            yield chunk
        unsaid = "finish_reason" not in (response.provider_details or {})
        if self._says_finish and unsaid and response.finish_reason != "content_filter":
            raise ModelError(BROKE_OFF, code="TRANSPORT")
        if not self._blocks and response.finish_reason in ("stop", "tool_call"):
            raise ModelError("The model answered with nothing at all: run the cell again.", code="EMPTY_RESPONSE")
        if not self._visible and response.finish_reason == "stop":
            raise ModelError("The model answered with blank text: run the cell again.", code="EMPTY_RESPONSE")
        yield Finish(self._kind(response), self._state(response))

    def _text(self, index: int, text: str) -> Iterator[Chunk]:
        if text:
            self._visible = self._visible or not text.isspace()
            yield TextDelta(self._block(index), text)

    def _thinking(self, index: int, text: str) -> Iterator[Chunk]:
        if text:
            self._visible = True
            yield ReasoningDelta(self._block(index), text)

    def _call(self, index: int, part: ToolCallPart) -> Chunk:
        """Servers have been seen to give parallel calls one id; two results for it could not be told apart."""
        id = part.tool_call_id
        while id in self._ids.values():
            id += "x"
        self._ids[index] = id
        self._visible = self._called = True
        return ToolCallDelta(self._block(index), id, part.tool_name, _raw(part.args))

    def _block(self, index: int) -> int:
        return self._blocks.setdefault(index, len(self._blocks))

    def _kind(self, response: ModelResponse) -> FinishKind:
        match response.finish_reason:
            case "length":
                return "max-tokens"
            case "stop" | "tool_call":
                # Some servers say `stop` after calls; what was asked for counts.
                return "tool-calls" if self._called else "stop"
            case "content_filter":
                said = (response.provider_details or {}).get("refusal")
                why = f"The model declined to answer ({one_line(said)})" if said else "The provider's content filter stopped the answer"
                raise ModelError(f"{why}: rephrase the request.", code="CONTENT_FILTER")
            case "error":
                raise ModelError("The provider failed in the middle of the answer: run the cell again.", code="SERVER")
            case None:
                raise ModelError(BROKE_OFF, code="TRANSPORT")

    def _state(self, response: ModelResponse) -> dict[str, Any] | None:
        blocks: list[PartState | None] = [None] * len(self._blocks)
        hidden: list[tuple[int, PartState]] = []
        after = 0
        for index, part in enumerate(response.parts):
            state = _part_state(part)
            if index in self._blocks:
                after = self._blocks[index] + 1
                blocks[after - 1] = state
            elif isinstance(part, ThinkingPart) and state:
                hidden.append((after, state))
        return envelope((response.provider_name, response.canonical_system), blocks, hidden)


def usage_chunk(usage: RequestUsage) -> Chunk | None:
    """Usage as dsh counts it: disjoint, so that input, cache reads and cache writes add up. None where the provider told nothing."""
    if not (usage.input_tokens or usage.output_tokens):
        return None
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    thought = usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0)
    return UsageChunk(Usage(usage.input_tokens - read - written, usage.output_tokens, read or None, written or None, thought or None))


def _part_state(part: Any) -> PartState:
    """What the provider attached. An id or provider alone says nothing that the text does not, unless it is thinking."""
    state = {key: getattr(part, key, None) for key in ("id", "signature", "provider_name", "provider_details")}
    kept: PartState = to_jsonable_python({key: value for key, value in state.items() if value is not None})
    return kept if isinstance(part, ThinkingPart) or kept.keys() - {"id", "provider_name"} else {}


def _raw(args: str | dict[str, Any] | None) -> str:
    """Arguments as text: as they came, or as compact JSON where the provider hands out objects."""
    return args if isinstance(args, str) else msgspec.json.encode(args).decode() if args else ""
