"""Calling one file tool as the model would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import ToolCall, ToolResult
from plan_mode_nb.features.tools import files
from plan_mode_nb.features.tools.cap import Spill
from plan_mode_nb.features.tools.closed import NOTHING, Closed


class Files:
    """The file tools over one folder."""

    def __init__(
        self, root: Path, *, spill: Spill | None = None, redact: Callable[[str], str] | None = None, closed: Closed = NOTHING
    ) -> None:
        self.seams = Seams.create()
        self.root = root
        if redact is not None:
            self.seams.redactions.register("test", redact)
        files.install(self.seams, root, spill, closed=closed)

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        """The result of one call."""
        outcome = await self.seams.tools.run(ToolCall(name, json.dumps(arguments), "call", 1, 1, None))
        assert outcome.events == ()
        return outcome.result

    def result(self, name: str, **arguments: Any) -> ToolResult:
        """The same, from outside a loop."""
        return asyncio.run(self.call(name, **arguments))

    def text(self, name: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        result = self.result(name, **arguments)
        assert not result.is_error, result.content
        return str(result.content[0]["text"])

    def error(self, name: str, **arguments: Any) -> tuple[str, str]:
        """Sentence and code of a call that fails."""
        result = self.result(name, **arguments)
        assert result.is_error, result.content
        assert result.error is not None
        sentence = str(result.content[0]["text"]).removeprefix("Error: ")
        assert "\n" not in sentence
        return sentence, result.error["code"]
