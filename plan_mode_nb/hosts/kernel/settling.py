"""Waiting, at the end of a turn, for the open page to take the log. The journal has it already."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from plan_mode_nb.hosts.kernel import thread
from plan_mode_nb.hosts.kernel.carrier import Carrier
from plan_mode_nb.hosts.kernel.turn import CellTurn

SETTLE_S: Final = 3.0


class Settling:
    """One per host."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._acked: asyncio.Event | None = None

    def acked(self) -> None:
        """A page answered. On the main thread."""
        thread.get(self._shell).call(self._set)

    async def settle(self, turn: CellTurn[Any], carrier: Carrier | None) -> None:
        """On the agent thread: until the page holds everything, within bounds. A page that does not answer is gone."""
        if carrier is None:
            return
        self._acked = asyncio.Event()
        deadline = time.monotonic() + SETTLE_S
        while not carrier.is_settled and time.monotonic() < deadline:
            self._acked.clear()
            await turn.on_main(carrier.kick)
            try:
                await asyncio.wait_for(self._acked.wait(), 1.0)
            except TimeoutError:
                await turn.on_main(carrier.give_up)

    def _set(self) -> None:
        if self._acked is not None:
            self._acked.set()
