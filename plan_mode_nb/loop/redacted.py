"""The chunks of one answer without secrets, before anybody sees them or they are logged one by one."""

from __future__ import annotations

from collections.abc import Iterator

from plan_mode_nb.agent.model import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, UsageChunk
from plan_mode_nb.agent.redact import GrowingText, Redactions

_Key = tuple[type[Chunk], int]


class RedactedChunks:
    """Push chunks as they come; what comes out may be seen. What might be the beginning of a secret waits for what follows it."""

    def __init__(self, redactions: Redactions) -> None:
        self._redactions = redactions
        self._texts: dict[_Key, GrowingText] = {}
        self._ids: dict[int, str] = {}

    def push(self, chunk: Chunk) -> Iterator[Chunk]:
        """The chunks that can be seen now, in order."""
        match chunk:
            case TextDelta(index, text) | ReasoningDelta(index, text):
                yield from self._before(index)
                if ready := self._text(type(chunk), index).push(text):
                    yield _prose(type(chunk), index, ready)
            case ToolCallDelta(index, id, name, arguments):
                yield from self._before(index)
                self._ids[index] = id
                ready = self._text(ToolCallDelta, index).push(arguments)
                if ready or name is not None or not arguments:
                    yield ToolCallDelta(index, id, name, ready)
            case Finish():
                for key in list(self._texts):
                    yield from self._rest(key)
                yield chunk
            case UsageChunk():
                yield chunk

    def _text(self, kind: type[Chunk], index: int) -> GrowingText:
        return self._texts.setdefault((kind, index), GrowingText(self._redactions))

    def _before(self, index: int) -> Iterator[Chunk]:
        """What waits of the prose of earlier blocks: one is over when a later one begins. Calls may come side by side."""
        for key in [key for key in self._texts if key[0] is not ToolCallDelta and key[1] < index]:
            yield from self._rest(key)

    def _rest(self, key: _Key) -> Iterator[Chunk]:
        kind, index = key
        if rest := self._texts.pop(key).rest():
            yield ToolCallDelta(index, self._ids[index], None, rest) if kind is ToolCallDelta else _prose(kind, index, rest)


def _prose(kind: type[Chunk], index: int, text: str) -> Chunk:
    return TextDelta(index, text) if kind is TextDelta else ReasoningDelta(index, text)
