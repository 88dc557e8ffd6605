"""Where secrets are taken out: every text that enters the log passes through here first, so model, log and notebook agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plan_mode_nb.agent.registry import Registry, Undo

Redact = Callable[[str], str]


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

    def json(self, value: Any) -> Any:
        """The same for every string inside a JSON value; keys stay."""
        if not len(self._functions):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return [self.json(item) for item in value] if isinstance(value, list) else value
