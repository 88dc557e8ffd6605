"""``fold_1m_ms`` and ``state_read_us``: the plan state of a log of a million events, read cold, and read again after each new event."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.made_logs import closed
from benchmarks.measuring import interleaved, rounded
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.testing import logs

MILLION = 1_000_000
READS = 1_000


def measure() -> dict[str, Any]:
    """``{"fold_1m_ms": ms, "state_read_us": {length: µs}}``."""
    long = closed(MILLION)
    (cold,) = interleaved([lambda: fold_value(PLAN, long.events)], 3)
    reads = {"1000": closed(1_000), "1000000": long}
    return {"fold_1m_ms": rounded(cold * 1e3), "state_read_us": {name: rounded(_read(session) * 1e6) for name, session in reads.items()}}


def _read(session: Session) -> float:
    """Seconds for reading the state after one more event."""
    seconds = []
    session.fold(PLAN)
    for index in range(READS):
        session.append(logs.plan_selected(bool(index % 2)))
        start = time.perf_counter()
        session.fold(PLAN)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
