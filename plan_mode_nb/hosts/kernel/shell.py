"""The Shell seam on a real IPython shell: code runs on the main thread, as a job of the turn that the agent is in."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from plan_mode_nb.agent.shell import ShellImage, ShellResult
from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.kernel.jobs import partial_result
from plan_mode_nb.hosts.kernel.recorder import Recording
from plan_mode_nb.hosts.kernel.turn import CellTurn, active_turn
from plan_mode_nb.hosts.kernel.user_code import run_user_code

IMAGE_MIMES = ("image/png", "image/jpeg", "image/gif", "image/webp")
Watch = Callable[[str, Recording | None], None]
"""``watch(call_id, recording)``: None before code runs, then while it runs, and once when it has ended; one call at a time.

While code runs the call comes from a painter thread, because the main thread is in that code; before and after, from the main thread.
"""


class KernelShell:
    """Satisfies the Shell protocol. ``watch`` shows what runs; it is set by whoever displays the turn."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.watch: Watch = lambda call_id, recording: None

    async def run(self, code: str, *, call_id: str) -> ShellResult:
        """Run code in the person's namespace. Interrupted: returns what it had done, with that status."""
        turn = self._turn()
        try:
            recording = await turn.on_main(self._run, turn, code, call_id)
        except asyncio.CancelledError as stopped:
            done = partial_result(stopped)
            if not isinstance(done, Recording):
                raise
            recording = done
        return _result(recording)

    async def namespace(self) -> Mapping[str, Any]:
        """The variables that the person made: nothing private, no modules, none of IPython's own names."""
        return dict(await self._turn().on_main(self._variables))

    async def inspect(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function on the main thread, where the variables live; Ctrl-C interrupts it."""
        turn = self._turn()

        def call() -> Any:
            with turn.user_code():
                return function(*args)

        return await turn.on_main(call)

    def _turn(self) -> CellTurn[Any]:
        turn = active_turn(self._shell)
        if turn is None:
            raise HostError("no cell is running a turn, so no code can run in the kernel")
        return turn

    def _run(self, turn: CellTurn[Any], code: str, call_id: str) -> Recording:
        turn.flush()
        self.watch(call_id, None)
        recording = run_user_code(self._shell, turn, code, lambda so_far: self.watch(call_id, so_far))
        self.watch(call_id, recording)
        return recording

    def _variables(self) -> dict[str, Any]:
        hidden = self._shell.user_ns_hidden
        return {
            name: value
            for name, value in self._shell.user_ns.items()
            if not name.startswith("_") and not isinstance(value, ModuleType) and hidden.get(name, hidden) is not value
        }


def _result(recording: Recording) -> ShellResult:
    images = []
    for display in recording.displays:
        mime = next((mime for mime in IMAGE_MIMES if mime in display.data), None)
        if mime is not None:
            images.append(ShellImage(mime, base64.b64decode(display.data[mime])))
    status = "ok" if recording.status == "running" else recording.status
    return ShellResult(status, recording.text, tuple(images))
