"""History -> pydantic-ai's messages, incrementally: a step pays for the messages new since the last one.

The log's messages go out unchanged but for what providers refuse. All of these are made here, on the way out, and never enter the log:

- The results of one answer's calls stand together, ahead of whatever the person said meanwhile; a call that has no result (an interrupted
  turn) gets :data:`NO_RESULT`; an empty result is :data:`NO_OUTPUT`.
- Raw arguments go out as the model wrote them where the API takes text (OpenAI, DeepSeek) and they are a JSON object. Anthropic's API takes
  objects, so there a number may be respelled (``1e1`` as ``10.0``). Malformed ones are wrapped as ``{"INVALID_JSON": "<raw>"}``: servers
  that parse them would refuse the whole conversation for it.
- Thinking goes back only to the provider that made it, with what that provider gave along (:mod:`plan_mode_nb.models.state`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from plan_mode_nb.log.messages import Block, Message, digest_of, text_of
from plan_mode_nb.models.state import PartState, states_of

NO_RESULT = "(no result: the turn was interrupted)"
NO_OUTPUT = "(no output)"
SEE_BELOW = "(the image follows)"
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9_-]")


class Dialect(Struct, frozen=True):
    """What differs between providers' wires.

    ``rich_results``: a result may hold images and be marked as an error (else images follow it as a user message). ``merges_users``:
    neighbouring user messages become one, for chat templates that insist on alternation. ``bare_thinking``: thinking may go back without
    any state (DeepSeek wants its text and nothing else). ``plain_ids``: ids of calls may hold letters, digits, ``_`` and ``-`` only.
    """

    provider: str
    rich_results: bool = False
    merges_users: bool = False
    bare_thinking: bool = False
    plain_ids: bool = False

    def id(self, id: str) -> str:
        """A call's id as this wire takes it."""
        return _NOT_PLAIN.sub("_", id) if self.plain_ids else id


class RawCall(ToolCallPart):
    """A call whose arguments go out as the model wrote them, so that what is sent again is what the log says and what the cache holds."""

    def args_as_json_str(self) -> str:
        """The raw text where it is a JSON object; otherwise pydantic-ai's way to send what is not."""
        raw = self.args
        return raw if isinstance(raw, str) and _is_object(raw) else super().args_as_json_str()


class History:
    """Keeps what it converted. Messages are told apart by identity: the log never changes one, and hands out the same one every time."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._seen: list[Message] = []
        self._out: list[ModelMessage] = []
        self._anchors: list[tuple[int, int]] = []

    def convert(self, messages: Sequence[Message], images: Mapping[str, bytes]) -> list[ModelMessage]:
        """All of ``messages`` in pydantic-ai's form; the list is the caller's, its items are shared and must not be changed."""
        now = list(messages)
        same = _common(self._seen, now)
        while self._anchors and self._anchors[-1][0] >= same:
            self._anchors.pop()
        start, kept = self._anchors.pop() if self._anchors else (0, 0)
        del self._out[kept:]
        self._seen = now
        place = start
        while place < len(now):
            end = place + 1
            while end < len(now) and now[end]["role"] != "assistant":
                end += 1
            self._exchange(place, now[place:end], images)
            place = end
        return list(self._out)

    def _exchange(self, place: int, messages: Sequence[Message], images: Mapping[str, bytes]) -> None:
        """An answer and what follows it up to the next one (the first exchange may have no answer).

        Where it begins is an anchor: a later conversion can start over there. An answer of which nothing goes out is none, because what
        follows it joins the request before it.
        """
        answer = messages[0] if messages[0]["role"] == "assistant" else None
        parts = [] if answer is None else _answer_parts(answer, self._dialect)
        if parts or not self._out:
            self._anchors.append((place, len(self._out)))
        if answer is not None and parts:
            name, canonical = states_of(answer, self._dialect.provider).system
            model = answer["source"].get("model")
            self._out.append(ModelResponse(parts, model_name=model, provider_name=name, canonical_system=canonical))
        calls = {part.tool_call_id: part.tool_name for part in parts if isinstance(part, ToolCallPart)}
        request = _Request(self._dialect, images, calls)
        for message in messages if answer is None else messages[1:]:
            request.add(message)
        if said := request.parts():
            last = self._out[-1] if self._out else None
            if isinstance(last, ModelRequest):
                self._out[-1] = ModelRequest([*last.parts, *said])
            else:
                self._out.append(ModelRequest(said))


class _Request:
    """What the user's side says between two answers: the results in the order they came, then everything else."""

    def __init__(self, dialect: Dialect, images: Mapping[str, bytes], calls: Mapping[str, str]) -> None:
        self._dialect = dialect
        self._images = images
        self._missing = dict(calls)
        self._results: list[ModelRequestPart] = []
        self._prompts: list[list[UserContent]] = []

    def add(self, message: Message) -> None:
        """Take one message. A result that answers no call of this exchange is told as text: as a result every provider would refuse it."""
        for block in message["content"]:
            if block["type"] == "tool-result":
                name = self._missing.pop(self._dialect.id(block["toolCallId"]), None)
                if name is None:
                    self._prompts.append([f"Result of an earlier tool call: {text_of(block['content']) or NO_OUTPUT}"])
                else:
                    self._result(name, block)
        said = [each for block in message["content"] if (each := self._content(block)) is not None]
        if said:
            self._prompts.append(said)

    def parts(self) -> list[ModelRequestPart]:
        """The request's parts, fillers included."""
        fillers = [ToolReturnPart(name, NO_RESULT, id) for id, name in self._missing.items()]
        prompts = self._prompts
        if self._dialect.merges_users and len(prompts) > 1:
            prompts = [[item for prompt in prompts for item in prompt]]
        return [*self._results, *fillers, *(UserPromptPart(_folded(prompt)) for prompt in prompts)]

    def _result(self, name: str, block: Block) -> None:
        shown = [item for each in block["content"] if isinstance(item := self._content(each), BinaryContent)]
        text = "\n".join(item for each in block["content"] if isinstance(item := self._content(each), str))
        outcome: Literal["failed", "success"] = "failed" if block.get("isError") is True and self._dialect.rich_results else "success"
        content: Any = text or NO_OUTPUT
        if shown and self._dialect.rich_results:
            content = [*([text] if text else []), *shown]
        elif shown:
            content = f"{text}\n{SEE_BELOW}" if text else SEE_BELOW
            self._prompts.append([f"Image from the result of {name}:", *shown])
        self._results.append(ToolReturnPart(name, content, self._dialect.id(block["toolCallId"]), outcome=outcome))

    def _content(self, block: Block) -> UserContent | None:
        """Text that is not blank, or an image's bytes; an image whose bytes are gone is said to be."""
        if block["type"] == "text":
            return block["text"] if block["text"].strip() else None
        if block["type"] != "image":
            return None
        attachment = block["attachment"]
        data = self._images.get(digest_of(attachment["attachmentId"]))
        if data is None:
            return f"(an image was here, {attachment.get('name') or attachment['mediaType']}; its bytes are no longer available)"
        return BinaryContent(data, media_type=attachment["mediaType"])


def _answer_parts(answer: Message, dialect: Dialect) -> list[Any]:
    """The answer's parts in order, hidden ones (thinking without text) in their places."""
    states = states_of(answer, dialect.provider)
    parts: list[Any] = []
    for index, block in enumerate(answer["content"]):
        parts.extend(ThinkingPart("", **state) for at, state in states.hidden if at == index)
        state = states.blocks[index] if states.blocks else None
        part = _answer_part(block, state, dialect, own=states.own)
        if part is not None:
            parts.append(part)
    parts.extend(ThinkingPart("", **state) for at, state in states.hidden if at >= len(answer["content"]))
    return parts


def _answer_part(block: Block, state: PartState | None, dialect: Dialect, *, own: bool) -> Any:
    given: dict[str, Any] = dict(state or {})
    match block["type"]:
        case "text":
            given.pop("signature", None)
            return TextPart(block["text"], **given) if block["text"].strip() else None
        case "tool-call":
            given.pop("signature", None)
            return RawCall(block["name"], block["arguments"], dialect.id(block["id"]), **given)
        case "reasoning":
            return ThinkingPart(block["text"], **given) if state or (own and dialect.bare_thinking) else None
        case _:
            return None


def _common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages at the start are the very same objects. Nearly always all of the shorter list, which costs no loop here."""
    if all(map(operator.is_, before, now)):
        return min(len(before), len(now))
    for index, (old, new) in enumerate(zip(before, now, strict=False)):
        if old is not new:
            return index
    return min(len(before), len(now))


def _folded(prompt: Sequence[UserContent]) -> str | list[UserContent]:
    """Text alone is one string, as every server takes it; with images it stays a list."""
    texts = [item for item in prompt if isinstance(item, str)]
    return "\n\n".join(texts) if len(texts) == len(prompt) else list(prompt)


def _is_object(raw: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(raw), dict)
    except msgspec.DecodeError:
        return False
