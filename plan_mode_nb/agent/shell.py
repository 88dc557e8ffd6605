"""How tools reach the notebook's Python, without knowing Jupyter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

ShellStatus = Literal["ok", "error", "interrupted"]


class ShellImage(Struct, frozen=True):
    """A figure that code displayed."""

    media_type: str
    data: bytes


class ShellResult(Struct, frozen=True):
    """What code printed and returned, as one text in order; its figures; a traceback's text is part of ``text``."""

    status: ShellStatus
    text: str
    images: tuple[ShellImage, ...] = ()


class Shell(Protocol):
    """The person's namespace. One piece of code at a time."""

    async def run(self, code: str, *, call_id: str) -> ShellResult:
        """Run code in the namespace, displays included.

        Cancelled while the code runs: interrupts it, waits for it, and returns what it did. The cancellation stays pending on the task
        (never ``uncancel`` it): the tool passes it on together with that result. Cancelled before the code began: raises.
        """

    async def namespace(self) -> Mapping[str, Any]:
        """The person's variables now (no private, no imported machinery); read them on the thread that calls ``inspect``."""

    async def inspect(self, function: Any, *args: Any) -> Any:
        """Call a function on the thread that owns the variables, and return its result."""
