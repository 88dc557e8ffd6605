"""The types of the payloads that folds rely on: what each must hold. Keys are in the format's spelling, ``call_id`` is ``callId``.

Deliberately no more than readers need: deepseek-harness's own logs must pass, older shapes after their upgrade. So further keys are their
owner's, and where its logs write null for "none", null is read. Values of these types are made to be checked, and thrown away.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from plan_mode_nb.log.events import Integer

Filled = Annotated[str, Meta(min_length=1)]


class Object(msgspec.Struct, gc=False, rename="camel"):
    """Any object; a type names the keys it must have."""


class Turn(Object):
    turn: Integer


class Step(Turn):
    step: Integer


class Kind(Object):
    kind: str


class TurnEnd(Turn):
    reason: Kind


class Usage(Object):
    input_tokens: Integer
    output_tokens: Integer
    cache_read_tokens: Integer | None = None
    cache_write_tokens: Integer | None = None


class Block(Object):
    type: str


class Source(Object):
    kind: Filled


class UserMessage(Object):
    """deepseek-harness's identified message, which it would refuse to load otherwise; so the two below."""

    id: Filled
    role: Literal["user"]
    source: Source
    content: list[Block]


class ModelSource(Object):
    kind: Literal["model"]
    provider: Filled
    model: Filled


class Answer(Object):
    id: Filled
    role: Literal["assistant"]
    source: ModelSource
    content: list[Block]


class AssistantMessage(Step):
    message: Answer
    usage: Usage | None = None


class Text(Object):
    text: str


class Call(Object):
    id: str
    name: str
    arguments: str


class Chunk(Step):
    chunk: Block


class UsageReport(Object):
    usage: Usage


class ToolCall(Step):
    call_id: str
    name: str
    arguments: str


class ToolSource(Object):
    kind: Literal["tool"]
    call_id: Filled


class ResultBlock(Object):
    type: Literal["tool-result"]
    tool_call_id: str
    content: list[Any]


class Result(Object):
    id: Filled
    role: Literal["user"]
    source: ToolSource
    content: list[ResultBlock]


class ToolResult(Step):
    message: Result


class InsideStart(Object):
    sub_call_id: str
    name: str


class Inside(InsideStart):
    content: list[Block] | UnsetType = UNSET


class Config(Object):
    provider: Filled
    model: Filled
    reasoning_effort: Filled | None = None
    max_tokens: Any = None


class Defaults(Object, forbid_unknown_fields=True):
    reasoning_effort: bool | UnsetType = UNSET
    max_tokens: bool | UnsetType = UNSET


class Header(Object):
    config: Config
    adapter_defaults: Defaults | UnsetType = UNSET


class RequestHeader(Object):
    header: Header
    reason: Any = None


class RequestContext(Object):
    provider: Filled
    model: Filled
    context_window: Integer | None = None


class Compaction(Object):
    turn: Integer | None = None
    usage: Usage | None = None


class Spliced(Object):
    target: Literal["next-turn", "next-step"]
    start: Integer
    inserted: list[Object]
    removed_count: Integer | None = None


class Todo(Object):
    content: str
    status: str


class Todos(Object):
    todos: list[Todo]


class PlanMode(Object):
    active: bool


class PlanSelected(PlanMode):
    narrate: bool


class Question(Object):
    id: str
    question: str


class Asked(Object):
    request_id: str
    questions: list[Question]
    call_id: str | None = None


class Answered(Object):
    request_id: str
    outcome: Literal["answered", "dismissed", "cancelled", "unavailable"]
    by: Literal["person", "replay", "policy"]


class Cell(Object):
    source: str


class CommandRun(Object):
    command_id: str
    name: str


class CommandDone(Object):
    command_id: str
    kind: str


class SandboxMode(Object):
    mode: str


class ApprovalPolicy(Object):
    policy: str


class ApprovalAsked(Object):
    id: str
    tool_name: str


class ApprovalDecided(Object):
    id: str
    outcome: str
