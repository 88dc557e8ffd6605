"""The scratch process of a turn: Python beside the kernel, under the limits of the session, with copies of variables.

One for each agent and turn: what code makes there stays until the turn ends, the sandbox mode changes, or the process dies. It is confined
as any program that a tool starts is; where nothing confines, or nothing is to be confined, it says so.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, final

from msgspec import Struct

from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.shell import ShellImage
from plan_mode_nb.agent.tools import ToolCall, ToolError
from plan_mode_nb.features.tools.copies import refuse
from plan_mode_nb.features.tools.dialogue import Dialogue
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.session import Session

START_S: Final = 60.0
GRACE_S: Final = 3.0
"""Between interrupting code and ending its process."""
MAX_IMAGES: Final = 50
Ending = Literal["ok", "error", "interrupted", "late", "died"]
_SOURCE_HOME: Final = Path(__file__).parents[3]


class ScratchRun(Struct, frozen=True):
    """What code did. ``late``: its time was over; ``died``: its process ended before it answered. ``notes``: lines for the model.

    ``kept``: whether the process, and what code made in it, is still there.
    """

    ending: Ending
    text: str
    images: tuple[ShellImage, ...] = ()
    notes: tuple[str, ...] = ()
    kept: bool = True


class _Process(Struct):
    """A process that answers, the turn it belongs to, and what it was started under."""

    dialogue: Dialogue
    turn: int
    launch: Launch
    undo: Undo
    runs: int = 0


@final
class Scratch:
    """The scratch processes of one composition, by session. ``program``: what answers as `dialogue` says; empty: there is none here."""

    def __init__(self, seams: Seams, program: Sequence[str]) -> None:
        self._seams = seams
        self._program = tuple(program)
        self._processes: dict[str, _Process] = {}
        self._turnstiles: dict[str, asyncio.Lock] = {}

    async def run(self, call: ToolCall, code: str, copies: Mapping[str, bytes], seconds: float) -> ScratchRun:
        """Run code, one piece at a time in each session. Cancelled meanwhile: it is interrupted, what it did is returned, and the
        cancellation stays pending on the task.

        Raises:
            ToolError: nothing ran, because the process could not be confined or started, or a copy could not be opened in it.
            asyncio.CancelledError: cancelled before the code began.
        """
        async with self._turnstiles.setdefault(call.agent.session.id if call.agent else "", asyncio.Lock()):
            return await self._run(call, code, copies, seconds)

    async def _run(self, call: ToolCall, code: str, copies: Mapping[str, bytes], seconds: float) -> ScratchRun:
        process, notes = await self._process(call)
        dialogue, names = process.dialogue, list(copies)
        process.runs += 1
        dialogue.say(
            {"op": "run", "run": process.runs, "code": code, "copies": [[name, len(copies[name])] for name in names]}, *copies.values()
        )
        answer, cut = await _heard(dialogue, process.runs, seconds)
        if answer is None or dialogue.ended:
            self._end(call.agent.session.id if call.agent else "")
        if answer is not None and "refused" in answer:
            raise refuse({str(name): str(why) for name, why in _mapping(answer["refused"]).items()})
        ran = _ran(answer, cut, dialogue)
        lines = (*ran.notes, *_refused(process, ran), *notes, _where(process, names))
        return ScratchRun(ran.ending, ran.text, ran.images, lines, ran.kept)

    def close(self) -> None:
        """End all processes."""
        for session in list(self._processes):
            self._end(session)

    async def _process(self, call: ToolCall) -> tuple[_Process, tuple[str, ...]]:
        """The process of the call's turn under the limits of now, started where there is none; lines about what became of another."""
        if not self._program:
            raise ToolError('there is no scratch process here; use where: "kernel"', code="NO_SCRATCH")
        launch = await self._seams.confinement.confined(call, self._program)
        assert call.agent is not None  # the seam refuses a call without one
        session = call.agent.session
        notes: tuple[str, ...] = ()
        there = self._processes.get(session.id)
        if there is not None and there.turn == call.turn and not there.dialogue.ended:
            if (there.launch.scope, there.launch.limits) == (launch.scope, launch.limits):
                launch.close()
                return there, ()
            notes = ("[the sandbox mode has changed, so this is another scratch process, without what was made before]",)
        self._end(session.id)
        made = self._processes[session.id] = _Process(await _started(launch), call.turn, launch, self._until_turn_ends(session))
        return made, notes

    def _until_turn_ends(self, session: Session) -> Undo:
        def listen(batch: Sequence[Event]) -> None:
            if any(event.type == "turn/end" for event in batch):
                self._end(session.id)

        return session.subscribe(listen)

    def _end(self, session: str) -> None:
        process = self._processes.pop(session, None)
        if process is not None:
            process.undo()
            process.dialogue.close()


async def _started(launch: Launch) -> Dialogue:
    """The process, once it is ready."""
    environ = dict(launch.environ)
    before = environ.get("PYTHONPATH", "")
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_SOURCE_HOME), before]))
    started = Launch(launch.argv, environ, launch.folder, launch.scope, launch.limits, launch.denied, launch.close)
    try:
        dialogue = await Dialogue.open(started)
    except OSError as error:
        raise _not_started(error.strerror or str(error)) from None
    ready = None
    try:
        dialogue.say({"path": sys.path, "pythonpath": before, "fonts": os.path.join(_cache_folder(), "matplotlib")})
        async with asyncio.timeout(START_S):
            ready = await dialogue.hear()
    except TimeoutError:
        raise _not_started(f"not ready within {START_S:g} s") from None
    finally:
        if ready is None:
            why = dialogue.why
            await dialogue.closed()
    if ready is None:
        raise _not_started(why or dialogue.why)
    return dialogue


def _cache_folder() -> str:
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def _not_started(why: str) -> ToolError:
    return ToolError(f'nothing ran: the scratch process could not be started ({why}); use where: "kernel" instead', code="NOT_STARTED")


async def _heard(dialogue: Dialogue, run: int, seconds: float) -> tuple[dict[str, Any] | None, Literal["", "late", "stopped"]]:
    """The answer, and why it was cut short; None when the process ended, or had to be ended, without one."""
    hearing = asyncio.ensure_future(_answer(dialogue, run))
    cut: Literal["", "late", "stopped"] = ""
    try:
        try:
            done, _ = await asyncio.wait([hearing], timeout=seconds)
            cut = "" if done else "late"
        except asyncio.CancelledError:
            cut = "stopped"
        if cut:
            dialogue.say({"op": "interrupt"})
            with contextlib.suppress(asyncio.CancelledError):  # it stays pending on the task, and what was done is told all the same
                await asyncio.wait([hearing], timeout=GRACE_S)
        if hearing.done():
            return hearing.result(), cut
        return None, cut
    finally:
        if not hearing.done():
            hearing.cancel()
            dialogue.close()


async def _answer(dialogue: Dialogue, run: int) -> dict[str, Any] | None:
    """The answer to this run. What code said in the name of its process for another is passed over."""
    while (said := await dialogue.hear()) is not None and said.get("run") != run:
        continue
    return said


def _ran(answer: dict[str, Any] | None, cut: str, dialogue: Dialogue) -> ScratchRun:
    if answer is None:
        gone = "what was made in it is gone, and the next call starts another"
        if cut:
            return ScratchRun(
                "late" if cut == "late" else "interrupted", "", (), (f"[the scratch process had to be ended; {gone}]",), False
            )
        return ScratchRun("died", "", (), (f"[the scratch process ended while the code ran ({dialogue.why}); {gone}]",), False)
    text, status = answer.get("text"), answer.get("status")
    images = tuple(_images(answer.get("images")))
    ending: Ending = status if status in ("ok", "error", "interrupted") else "error"
    if cut and ending == "interrupted":
        ending = "late" if cut == "late" else "interrupted"
    unsent = answer.get("unsent")
    notes = (f"[{unsent} more figures, which were too many or too large to be sent]",) if isinstance(unsent, int) and unsent > 0 else ()
    return ScratchRun(ending, text if isinstance(text, str) else "", images, notes)


def _images(given: Any) -> list[ShellImage]:
    """Images by the bytes that they claim to be; whoever shows one checks it."""
    found = []
    for each in given[:MAX_IMAGES] if isinstance(given, list) else ():
        match each:
            case [str(media_type), str(text)]:
                try:
                    found.append(ShellImage(media_type[:40], base64.b64decode(text, validate=True)))
                except (binascii.Error, ValueError):
                    continue
            case _:
                continue
    return found


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {"a variable": "could not be opened in the scratch process"}


def _refused(process: _Process, ran: ScratchRun) -> tuple[str, ...]:
    """A line where the code failed and what it printed ends like a refusal of its limits."""
    words = process.launch.denied(ran.text) if ran.ending == "error" else ""
    if not words:
        return ()
    return (f'[the sandbox seems to have refused something ("{words}"); where: "kernel" runs without it, and then the user is asked]',)


def _where(process: _Process, names: Sequence[str]) -> str:
    """Where it ran, for the model and the person: no word of a sandbox where there was none."""
    limits = process.launch.limits or "not confined: sandbox mode danger-full-access"
    which = "a new scratch process" if process.runs == 1 else "this turn's scratch process"
    copied = f", with copies of {', '.join(names)}" if names else ""
    return f"[ran in {which}{copied}; {limits}]"
