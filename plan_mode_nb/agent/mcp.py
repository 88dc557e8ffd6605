"""MCP servers as tools see them, without knowing the client: what one is, what it offers, and what came of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, field

from plan_mode_nb.agent.prestep import Step
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.exceptions import PlanModeError

PREFIX: Final = "mcp__"
"""How the name of each of their tools begins; no other tool's does."""
PLUGIN: Final = "mcp"
"""The source of what the model is told about them."""


class Program(Struct, frozen=True):
    """A server that is started here and spoken to over its standard streams. ``env``: added to a small environment without secrets."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None


class Address(Struct, frozen=True):
    """A server that runs elsewhere. ``headers``: sent with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Server(Struct, frozen=True):
    """One configured server. ``name``: letters, digits, ``_`` and ``-``, at most 32."""

    name: str
    at: Program | Address


class Offered(Struct, frozen=True):
    """A tool as its server describes it. ``parameters``: its JSON schema, unchanged."""

    name: str
    description: str
    parameters: dict[str, Any]


class Part(Struct, frozen=True):
    """One piece of an answer. ``text``: what it says, or what it is where that is no text; ``data``: an image's bytes."""

    kind: Literal["text", "image", "other"]
    text: str
    data: bytes = b""


class Answer(Struct, frozen=True):
    """``value``: the structured result where the server gave one."""

    parts: tuple[Part, ...]
    is_error: bool = False
    value: Any = None


class ServerFailed(PlanModeError):
    """A server could not be reached, or did not answer as the protocol has it. ``is_gone``: nothing more is to be had from it."""

    def __init__(self, message: str, *, is_gone: bool = True) -> None:
        super().__init__(message)
        self.is_gone = is_gone


class Connection(Protocol):
    """One server, from `open` to `close`. Everything is called on the agent's loop, from any of its tasks."""

    async def open(self, seconds: float) -> None:
        """Start or reach it.

        Raises:
            ServerFailed: it did not answer in time, or at all; why, in words for the middle of a sentence. Nothing of it is left.
        """

    async def offered(self) -> Sequence[Offered]:
        """Its tools now, in its order.

        Raises:
            ServerFailed: it did not say.
        """

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool.

        Raises:
            ServerFailed: there is no answer.
        """

    async def close(self) -> None:
        """Let go; a program that was started is ended. Harmless when it is gone."""


Connect = Callable[[Server], Connection]


class Recorded(Struct, frozen=True):
    """What a recording says of a turn's servers: the schemas of their tools, and what the model was told when the turn began."""

    schemas: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[str, ...] = ()


Recording = Callable[[Step], Recorded | None]
"""What was recorded for a turn's first step; None for a session that is not led along a recording."""


class Recordings:
    """The seam. Nobody there: every turn has its servers themselves."""

    def __init__(self) -> None:
        self._recording: Recording = lambda step: None

    def follow(self, recording: Recording) -> Undo:
        """Lead along a recording: no server is started for a session that has one. Returns the undo."""
        before, self._recording = self._recording, recording

        def undo() -> None:
            if self._recording is recording:
                self._recording = before

        return undo

    def of(self, step: Step) -> Recorded | None:
        """What was recorded for the turn that begins with this step."""
        return self._recording(step)
