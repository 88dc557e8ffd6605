"""Where secrets are taken out: every text that enters the log passes through here first, so model, log and notebook agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.log.messages import Block, Message

Redact = Callable[[str], str]
Settled = Callable[[str], int]
"""How many characters from a text's start no further text can change; where it cuts, the two parts are redacted as the whole would be."""
_WRITTEN = ("text", "arguments")
"""The keys of a block that hold what somebody wrote; ids, names and kinds are not touched."""


def before_last_token(text: str) -> int:
    """Everything up to the last run of characters without white space: the rule for a function that knows no better."""
    last = "" if not text or text[-1].isspace() else text.split()[-1]
    return len(text) - len(last)


class _Redaction(Struct, frozen=True):
    text: Redact
    settled: Settled


class Redactions:
    """Text -> text functions, applied in order of registration. None registered: texts pass unchanged."""

    def __init__(self) -> None:
        self._functions: Registry[_Redaction] = Registry("redaction")

    def register(self, name: str, redact: Redact, settled: Settled = before_last_token) -> Undo:
        """Add a function; returns the undo."""
        return self._functions.register(name, _Redaction(redact, settled))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for function in self._functions:
            text = function.text(text)
        return text

    def settled(self, text: str) -> int:
        """How many characters from the start of a growing text can be redacted and shown now."""
        return min((function.settled(text) for function in self._functions), default=len(text))

    def blocks(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks without secrets, those inside a tool result too."""
        return [{key: self._part(key, value) for key, value in block.items()} for block in blocks]

    def message(self, message: Message) -> Message:
        """The message without secrets."""
        return {**message, "content": self.blocks(message["content"])}

    def _part(self, key: str, value: Any) -> Any:
        if key in _WRITTEN and isinstance(value, str):
            return self.text(value)
        return self.blocks(value) if key == "content" and isinstance(value, list) else value

    def json(self, value: Any) -> Any:
        """The same for every string inside a JSON value; keys stay."""
        if not len(self._functions):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return [self.json(item) for item in value] if isinstance(value, list) else value


class GrowingText:
    """A text that comes in pieces, redacted as if it had come at once: what might be the beginning of a secret waits."""

    def __init__(self, redactions: Redactions) -> None:
        self._redactions = redactions
        self._waiting = ""

    def push(self, piece: str) -> str:
        """What can be shown now; "" while it may be the beginning of a secret."""
        self._waiting += piece
        return self._take(self._redactions.settled(self._waiting))

    def rest(self) -> str:
        """What waited: nothing more is coming."""
        return self._take(len(self._waiting))

    def _take(self, length: int) -> str:
        ready, self._waiting = self._waiting[:length], self._waiting[length:]
        return self._redactions.text(ready) if ready else ""
