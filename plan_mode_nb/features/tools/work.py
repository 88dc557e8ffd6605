"""File work off the agent's loop: in a thread, with a budget of seconds that a cancelled call ends at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
SECONDS: Final = 20.0


class Budget:
    """Time that a piece of work may take. Ask :attr:`spent` often; any thread may :meth:`cancel`."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._cancelled = threading.Event()

    @property
    def spent(self) -> bool:
        """Whether the work must end now."""
        return self._cancelled.is_set() or self._clock() >= self._end

    def cancel(self) -> None:
        """Nobody waits for the work any more."""
        self._cancelled.set()


async def in_thread(work: Callable[[Budget], T], seconds: float = SECONDS) -> T:
    """What ``work`` returns, run in a thread. When cancelled, its budget is spent: it ends by itself and nobody sees its result."""
    budget = Budget(seconds)
    try:
        return await asyncio.to_thread(work, budget)
    finally:
        budget.cancel()
