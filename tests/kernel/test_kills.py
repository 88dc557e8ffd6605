"""Nothing that was displayed is lost to ``kill -9``."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.faults import Slow

from .agent_kernel import AgentKernel

KILLS = int(os.environ.get("PLAN_MODE_NB_KILLS", "500"))
KERNEL_KILLS = int(os.environ.get("PLAN_MODE_NB_KERNEL_KILLS", "6"))
WORKERS = 2
"""Kernels that are killed side by side: while one starts, the other one works."""
LINES = "get_ipython()._plan_mode_nb[0].agent().session.lines"


@pytest.mark.timeout(170 + KILLS)
def test_every_displayed_event_of_a_killed_agent_is_in_its_journal() -> None:
    """Killed anywhere, a log opens, is closed as deepseek-harness closes it, and plan mode is what was decided; 0 events lost."""
    script = Path(__file__).with_name("killing.py")
    workers = [
        subprocess.Popen([sys.executable, str(script), str(seed), str(KILLS // 2)], stdout=subprocess.PIPE, text=True)
        for seed in (1, 100_001)
    ]
    results = [json.loads(worker.communicate()[0]) for worker in workers]
    total = {name: sum(result[name] for result in results) for name in results[0] if name != "faults"}
    assert [fault for result in results for fault in result["faults"]] == [], total
    assert (total["kills"], total["lost"]) == (KILLS // 2 * 2, 0)
    assert total["open_turns"] > KILLS / 4, "most kills must fall into a turn"
    assert total["approved"] > KILLS / 100, "some must fall between an approval and the step that applies it"
    assert total["compacting"] > 0, "some must fall into a compaction"
    assert total["displayed"] > KILLS


@pytest.mark.timeout(240 + 30 * KERNEL_KILLS)
def test_what_a_killed_kernel_had_shown_is_found_again() -> None:
    """Real kernels, killed at random points of a turn: every tool card that a front end had got stands in the log that comes back."""
    with ThreadPoolExecutor(WORKERS) as pool:
        shown = list(pool.map(_killed, range(WORKERS), [KERNEL_KILLS // WORKERS] * WORKERS))
    assert sum(shown) >= KERNEL_KILLS


def _killed(worker: int, kills: int) -> int:
    """So many kills of one kernel, which starts again under the same id; how many cards had been shown in all."""
    chance = random.Random(11 + worker)
    shown = 0
    with AgentKernel(sys.executable) as agent:
        for kill in range(kills):
            marks = [f"mark-{kill}-{step}" for step in range(6)]
            agent.begin(*[[Slow(0.01), say("word " * 10), call("python", {"code": f"'{mark}'"}), usage(1, 1)] for mark in marks])
            agent.kernel.must("%sandbox danger-full-access")
            cell = agent.kernel.send("%plan work")
            wanted = chance.randrange(12, 60)
            agent.kernel.until(lambda cell=cell, wanted=wanted: _has_got(agent, cell, wanted), 120)
            agent.kernel.kill()
            outputs = json.dumps(agent.kernel.cell(cell).outputs)
            seen = [mark for mark in marks if mark in outputs]
            shown += len(seen)
            agent.kernel.must("%load_ext plan_mode_nb")
            kept = agent.kernel.must(f"print(*{LINES}, sep='\\n')")
            assert [mark for mark in seen if mark not in kept] == []
    return shown


def _has_got(agent: AgentKernel, cell: str, wanted: int) -> bool:
    """Whether the front end has so many messages of a cell, or all that there will be."""
    found = agent.kernel.cell(cell)
    return len(found.messages) >= wanted or found.status is not None
