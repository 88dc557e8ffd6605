"""How a tool starts a program so that the limits of its session hold, without knowing which limits there are or what enforces them.

Nobody provided refuses: a composition that forgot its limits must start no program as if it had none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.tools import ToolCall, ToolError

Scope = Literal["nothing", "workspace", "everything"]
"""What the program may write (but for a temporary folder of its own)."""
Enforcement = Literal["full", "partial", "none"]
"""``full``: everything that is promised is enforced by the operating system; ``partial``: some of it; ``none``: nothing confines here."""


class Launch(Struct, frozen=True):
    """What to start in place of a program. ``limits``: what holds for it, in words ("" where nothing limits it).

    ``denied(output)``: the words of the operating system in it that read like a limit's refusal, or "". ``close``: call it once when the
    program has ended.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str
    scope: Scope
    limits: str = ""
    denied: Callable[[str], str] = lambda output: ""
    close: Callable[[], None] = lambda: None


class Enforced(Struct, frozen=True):
    """What enforces limits here. ``sentence``: for people, with what to do where it is not ``full``."""

    enforcement: Enforcement
    sentence: str


class Confiner(Protocol):
    """Whoever knows the limits of a session, and how to make them hold."""

    async def confined(self, agent: Agent, argv: Sequence[str]) -> Launch:
        """The launch under the limits of the agent's session now.

        Raises:
            ToolError: they cannot be made to hold here; nothing may be started.
        """

    def unconfined(self, argv: Sequence[str]) -> Launch:
        """The launch of a program that the person allowed to run without limits."""

    def enforced(self) -> Enforced:
        """What enforces limits here. May start a process to find out, once."""


class Confinement:
    """The seam. One confiner at a time."""

    def __init__(self) -> None:
        self._confiner: Confiner | None = None

    def provide(self, confiner: Confiner) -> Undo:
        """Put a confiner in place; the undo brings back the one before."""
        before, self._confiner = self._confiner, confiner

        def undo() -> None:
            if self._confiner is confiner:
                self._confiner = before

        return undo

    async def confined(self, call: ToolCall, argv: Sequence[str]) -> Launch:
        """The launch of a program for a call, under the limits of its session.

        Raises:
            ToolError: there is no session, nothing that knows its limits, or nothing that can make them hold. Nothing may be started.
        """
        if call.agent is None:
            raise ToolError(f"{call.name} needs a calling agent: there is no session whose limits would apply", code="NO_AGENT")
        return await self._present(call).confined(call.agent, argv)

    def unconfined(self, call: ToolCall, argv: Sequence[str]) -> Launch:
        """The launch of a program that the person allowed to run without limits, for this call.

        Raises:
            ToolError: there is nothing that knows how.
        """
        return self._present(call).unconfined(argv)

    def enforced(self) -> Enforced:
        """What enforces limits here."""
        if self._confiner is None:
            return Enforced("none", "nothing here confines programs")
        return self._confiner.enforced()

    def _present(self, call: ToolCall) -> Confiner:
        if self._confiner is None:
            raise ToolError(f"{call.name} did not run: nothing here can confine the programs that it starts", code="SANDBOX_UNAVAILABLE")
        return self._confiner
