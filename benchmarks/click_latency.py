"""How long from a click on *Approve* to the model's next request, in a real kernel, by both routes of comm messages.

``python benchmarks/click_latency.py [--clicks N]`` prints one JSON object: for each route the number of clicks and milliseconds. The
clock starts when the front end sends the message and stops when the model server has read the request; what lies between is the
kernel's pump, the decision, one write of the journal, the switch of plan mode and the request itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from kernel.agent_kernel import AgentKernel
from kernel.driver import Route

from plan_mode_nb.models.script import call, say, usage

PLAN = "# Count the rows\n\n" + "".join(f"{number}. Step number {number} of the plan.\n" for number in range(1, 41))


def clicks(route: Route, count: int) -> list[float]:
    """Milliseconds of each click, in order; the first turn of the kernel, which imports the model's libraries, is not one of them."""
    submit = [say("Here is my plan."), call("exit_plan_mode", {"plan": PLAN}), usage(10, 5)]
    steps = [submit, [say("Done."), usage(10, 5)]] * (count + 1)
    with AgentKernel(sys.executable, steps, route=route) as agent:
        return [one_click(agent, turn) for turn in range(count + 1)][1:]


def one_click(agent: AgentKernel, turn: int) -> float:
    """One turn with one review, approved."""
    cell = agent.kernel.send("%plan count the rows")
    agent.next_card()
    started = time.monotonic()
    agent.act("review", {"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Approve"]}]})
    if not agent.server.wait_for_requests(2 * turn + 2, 30):
        raise TimeoutError(f"no request followed click {turn}")
    took = 1000 * (time.monotonic() - started)
    agent.kernel.wait(cell, 30)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Click to next request, in milliseconds.")
    parser.add_argument("--clicks", type=int, default=40)
    count = parser.parse_args().clicks
    measured: dict[str, dict[str, float]] = {}
    for route in get_args(Route):
        taken = clicks(route, count)
        cuts = statistics.quantiles(taken, n=20, method="inclusive")
        measured[route] = {"clicks": count, "p50": round(cuts[9], 1), "p95": round(cuts[18], 1), "max": round(max(taken), 1)}
    json.dump(measured, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
