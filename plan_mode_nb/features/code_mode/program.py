"""A program from start to end: what it prints, the calls that it makes, and how it ends. Nothing that it says is believed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.features.code_mode.sdk import Function
from plan_mode_nb.features.tools.dialogue import Dialogue

WORKER: Final = Path(__file__).with_name("worker.py")
MOST_OUTPUT: Final = 2_000_000
"""Characters; the worker sends no more, and whoever takes its place is not listened to further."""
START_S: Final = 60.0
"""How long Python may take to start, which is no time of the program's."""
MEDDLED: Final = "it wrote where only its calls are written"
Ending = Literal["ok", "error", "exit", "died", "late", "stopped"]
Call = Callable[[str, Any], Awaitable[dict[str, Any]]]
"""Runs a tool by name, with any JSON value as its arguments; gives the answer for the program, ``{value}`` or ``{error}``."""


class Ran(Struct, frozen=True):
    """``why``: how the process ended, in words, where it did not say so itself."""

    ending: Ending
    output: str
    why: str = ""


def command() -> list[str]:
    """What starts the worker: this environment's Python, with its packages, and nothing that the environment variables or folders add."""
    return [sys.executable, "-I", "-X", "utf8", str(WORKER)]


async def run(launch: Launch, code: str, tools: Sequence[Function], *, seconds: float, call: Call) -> Ran:
    """Run a program. ``seconds``: of its own; while a call runs they do not pass.

    Where the caller is cancelled, or a call of the program was stopped, that is told as ``stopped``; the cancellation stays pending on the
    task.

    Raises:
        OSError: it could not be started.
        Exception: whatever ``call`` raised; the program has been ended.
    """
    dialogue = await Dialogue.open(launch)
    listening = _Listening(dialogue, seconds, call)
    try:
        dialogue.say({"code": code, "tools": [asdict(each) for each in tools]})
        try:
            ending = await listening.to_the_end()
        except asyncio.CancelledError:
            ending = "stopped"
        return Ran(ending, "".join(listening.output), (dialogue.why or MEDDLED) if ending == "died" else "")
    finally:
        await dialogue.closed()


class _Listening:
    """What was heard so far, and the seconds that are left."""

    def __init__(self, dialogue: Dialogue, seconds: float, call: Call) -> None:
        self.output: list[str] = []
        self._dialogue = dialogue
        self._seconds = seconds
        self._left, self._is_ready = START_S, False
        self._call = call
        self._heard = 0

    async def to_the_end(self) -> Ending:
        """Take what is printed, answer what is called, until it ends or its seconds are over."""
        while True:
            try:
                line = await self._next()
            except TimeoutError:
                return "late"
            match line:
                case None:
                    return "died"
                case {"ready": True} if not self._is_ready:
                    self._left, self._is_ready = self._seconds, True
                case {"out": str(text)} if self._heard + len(text) <= MOST_OUTPUT:
                    self._heard += len(text)
                    self.output.append(text)
                case {"call": str(name), "arguments": arguments}:
                    self._dialogue.say(await self._call(name, arguments))
                case {"done": "ok" | "error" | "exit" as how}:
                    ending: Ending = how
                    return ending
                case _:
                    return "died"

    async def _next(self) -> dict[str, Any] | None:
        """The next line, within the seconds that are left."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await asyncio.wait_for(self._dialogue.hear(), self._left)
        finally:
            self._left -= loop.time() - began
