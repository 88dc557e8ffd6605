"""``step_us``: a tool-calling step, from one request to the next, at the end of logs of different lengths.

Real parts but for the model: the loop, plan mode, a tool, and the journal, which takes every event before it counts.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.made_logs import closed_lines
from benchmarks.measuring import gaps, rounded
from plan_mode_nb.agent.model import Request
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.script import Part, call, say
from plan_mode_nb.plan import PlanModeConfig, install
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.workbench import Workbench

LENGTHS = (0, 1_000, 10_000, 100_000)
"""Events before the turn."""
STEPS = 20
ROUNDS = 7
now = time.process_time


def measure() -> dict[str, Any]:
    """``{"step_us": {length: µs}}``."""
    before = {length: closed_lines(length) for length in LENGTHS}
    taken: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for _ in range(ROUNDS):
        for length, lines in before.items():
            taken[length] += one_turn(lines)
    return {"step_us": {str(length): rounded(statistics.median(seconds) * 1e6) for length, seconds in taken.items()}}


def one_turn(lines: Sequence[str]) -> list[float]:
    """Processor seconds of each step of one turn after these lines."""
    moments: list[float] = []

    def calls(request: Request) -> Part:
        moments.append(now())
        return call("note", {"text": "x"}) if len(moments) <= STEPS else say("Done.")

    with tempfile.TemporaryDirectory() as folder:
        bench = a_bench(logs.new_session(lines=lines), Path(folder), calls)
        end = asyncio.run(bench.ask("Take notes."))
        assert end.reason == {"kind": "completed"}, end
        assert bench.session.sink is not None
        bench.session.sink.close()  # type: ignore[attr-defined]  # it is the journal made below
    return gaps(moments)


def a_bench(session: Session, folder: Path, answer: Any) -> Workbench:
    """An agent with plan mode, one tool and a journal in ``folder``."""
    session.sink = Journal(folder, session.header, session.lines, kernel="k", notebook=None, pid=os.getpid())
    plugins = [lambda seams: seams.tools.register(tool_from(note)), lambda seams: install(seams, PlanModeConfig("Plan first."))]
    return Workbench(*[answer] * (STEPS + 1), install=plugins, session=session, config=LoopConfig())


def note(text: str) -> str:
    """Take a note."""
    return f"noted {text}"
