"""``click_ms``: from a click on a review card in a real kernel to the model's server having the next request. Time on the wall.

Half of the clicks take JupyterLab's way, whose comm messages go to a subshell, half that of other front ends; what each took is said on
stderr. The kernel works some 5 ms for each: a wait that is longer went to whoever else uses the machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, get_args

from benchmarks.measuring import rounded
from plan_mode_nb.models.script import call, say
from tests.kernel.agent_kernel import AgentKernel
from tests.kernel.driver import Route

CLICKS = 40
WARM = 5
PLAN = "# Plan {number}\n\n1. Look at the keys.\n2. Deduplicate.\n"


def measure() -> dict[str, Any]:
    """``{"click_ms": {"p50": ms, "p95": ms}}``."""
    waited: list[float] = []
    for route in get_args(Route):
        taken = clicks(route)
        print(f"click_ms: {route}: {_cuts(taken)}", file=sys.stderr)
        waited += taken
    return {"click_ms": _cuts(waited)}


def clicks(route: Route) -> list[float]:
    """Milliseconds from each click to its request, in order; the first few, which import what they need, are left out."""
    arrived: list[float] = []

    def answer(body: dict[str, Any]) -> Any:
        arrived.append(time.perf_counter())
        return say("Done.") if len(arrived) > CLICKS else call("exit_plan_mode", {"plan": PLAN.format(number=len(arrived))})

    with AgentKernel(sys.executable, [answer] * (CLICKS + 1), route=route) as agent:
        cell = agent.kernel.send("%plan look at the tables")
        clicked = [one_click(agent, number) for number in range(1, CLICKS + 1)]
        assert agent.kernel.wait(cell, 60).status == "ok"
    return [(request - click) * 1e3 for click, request in zip(clicked, arrived[1:], strict=True)][WARM:]


def one_click(agent: AgentKernel, number: int) -> float:
    """Send the next plan back; the moment of the click."""
    agent.next_card()
    clicked = time.perf_counter()
    agent.act("review", {"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Keep planning"], "custom": "More."}]})
    assert agent.server.wait_for_requests(number + 1, 60), f"no request after click {number}"
    return clicked


def _cuts(waited: Sequence[float]) -> dict[str, float]:
    return {"p50": rounded(statistics.median(waited)), "p95": rounded(statistics.quantiles(waited, n=20)[-1])}
