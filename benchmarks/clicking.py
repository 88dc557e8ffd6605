"""``click_ms``: from a click on a review card in a real kernel to the model's server having the next request. Time on the wall."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from benchmarks.measuring import rounded
from plan_mode_nb.models.script import call, say

CLICKS = 40
WARM = 5
PLAN = "# Plan {number}\n\n1. Look at the keys.\n2. Deduplicate.\n"


def measure() -> dict[str, Any]:
    """``{"click_ms": {"p50": ms, "p95": ms}}``."""
    from tests.kernel.agent_kernel import AgentKernel

    arrived: list[float] = []

    def answer(body: dict[str, Any]) -> Any:
        arrived.append(time.perf_counter())
        done = len(arrived) > CLICKS
        return say("Done.") if done else call("exit_plan_mode", {"plan": PLAN.format(number=len(arrived))})

    with AgentKernel(sys.executable, [answer] * (CLICKS + 1)) as agent:
        cell = agent.kernel.send("%plan look at the tables")
        clicked = []
        for number in range(1, CLICKS + 1):
            agent.next_card()
            clicked.append(time.perf_counter())
            given = {"id": "plan-review", "selected": ["Keep planning"], "custom": "More."}
            agent.act("review", {"kind": "answer", "answers": [given]})
            assert agent.server.wait_for_requests(number + 1, 60), f"no request after click {number}"
        assert agent.kernel.wait(cell, 60).status == "ok"
    waited = [(request - click) * 1e3 for click, request in zip(clicked, arrived[1:], strict=True)][WARM:]
    return {"click_ms": {"p50": rounded(statistics.median(waited)), "p95": rounded(statistics.quantiles(waited, n=20)[-1])}}
