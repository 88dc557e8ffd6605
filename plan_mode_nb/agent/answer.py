"""From chunks to the blocks of one answer."""

from __future__ import annotations

from typing import Any

from plan_mode_nb.agent.model import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, UsageChunk
from plan_mode_nb.log.messages import Block


class Answer:
    """Grows by :meth:`push`. ``usage`` is the newest (None: not told yet); ``finish`` is None until the model finished."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self.usage: dict[str, int] | None = None
        self.finish: Finish | None = None

    def push(self, chunk: Chunk) -> None:
        """Take one more chunk. Text is only ever joined, raw arguments never parsed."""
        match chunk:
            case TextDelta(index, text):
                self._block(index, {"type": "text", "text": ""})["text"] += text
            case ReasoningDelta(index, text):
                self._block(index, {"type": "reasoning", "text": ""})["text"] += text
            case ToolCallDelta(index, id, name, arguments):
                block = self._block(index, {"type": "tool-call", "id": id, "name": name or "", "arguments": ""})
                block["name"] = block["name"] or name or ""
                block["arguments"] += arguments
            case UsageChunk(usage):
                self.usage = usage.to_json()
            case Finish():
                self.finish = chunk

    def blocks(self) -> list[Block]:
        """The answer's blocks in order. After ``max-tokens`` calls are dropped: a cut-off call must not run (dsh's rule)."""
        cut = self.finish is not None and self.finish.kind == "max-tokens"
        return [block for block in self._ordered() if not (cut and block["type"] == "tool-call")]

    def delivered(self) -> list[Block]:
        """What an interrupted answer keeps: text and reasoning that is not blank; calls are dropped."""
        return [block for block in self._ordered() if block["type"] != "tool-call" and block["text"].strip()]

    def _ordered(self) -> list[Block]:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return [{key: whole(value) if key in ("text", "arguments") else value for key, value in block.items()} for block in blocks]

    def _block(self, index: int, empty: Block) -> Block:
        return self._blocks.setdefault(index, empty)


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    """The chunk as dsh logs it in ``assistant/chunk``."""
    match chunk:
        case UsageChunk(usage):
            return {"type": "usage", "usage": usage.to_json()}
        case Finish(kind):
            return {"type": "finish", "reason": {"kind": kind}}
        case ToolCallDelta(index, id, name, arguments):
            named = {} if name is None else {"name": name}
            return {"type": "tool-call-delta", "index": index, "id": id, **named, "argumentsDelta": arguments}
        case TextDelta(index, text):
            return {"type": "text-delta", "index": index, "text": text}
        case ReasoningDelta(index, text):
            return {"type": "reasoning-delta", "index": index, "text": text}


def whole(text: str) -> str:
    """The text with surrogate pairs joined, which a stream can cut in two, and what stays half replaced: a log cannot hold a half."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
