"""Where secrets are taken out: every text that enters the log passes through here first, so model, log and notebook agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.log.messages import Block, Message

Redact = Callable[[str], str]
_WRITTEN = ("text", "arguments")
"""The keys of a block that hold what somebody wrote; ids, names and kinds are not touched."""


class Redactions:
    """Text -> text functions, applied in order of registration. None registered: texts pass unchanged."""

    def __init__(self) -> None:
        self._functions: Registry[Redact] = Registry("redaction")

    def register(self, name: str, redact: Redact) -> Undo:
        """Add a function; returns the undo."""
        return self._functions.register(name, redact)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for redact in self._functions:
            text = redact(text)
        return text

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
