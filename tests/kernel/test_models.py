"""Models in a real kernel: one for each phase, retries, what they cost, and nothing left open."""

from __future__ import annotations

import sys

import pytest

from plan_mode_nb.models.script import say, usage
from plan_mode_nb.testing.faults import Status

from .agent_kernel import AgentKernel

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]


def test_each_phase_has_its_model_a_failure_is_retried_and_session_says_it_all() -> None:
    """One kernel: a turn in each phase, a server that fails once in between, a bad name, and unloading."""
    steps = [
        [usage(90, 5, cache_read_tokens=10), say("First.")],
        Status(503, "busy"),
        [usage(200, 7), say("Planned.")],
        [usage(300, 9), say("Last.")],
    ]
    with AgentKernel(sys.executable, steps) as kernel:
        kernel.kernel.must("%config PlanAgent.plan_model = 'openai-chat:wise'")
        assert kernel.run("%agent hello").status == "ok"
        planned = kernel.run("%plan make a plan")
        assert planned.status == "ok"
        assert any("1 retry" in shown for shown in planned.shown)
        assert kernel.run("%plan off").status == "ok"
        assert kernel.run("%agent go on").status == "ok"
        assert [request.body["model"] for request in kernel.server.requests] == ["scripted", "wise", "wise", "scripted"]
        assert kernel.server.requests[1].raw == kernel.server.requests[2].raw
        told = kernel.kernel.must("%session")
        assert "openai-chat:scripted (set by PlanAgent.model); in plan mode openai-chat:wise (set by PlanAgent.plan_model)" in told
        assert "590 in, 10 cached, 21 out" in told
        assert "price" not in told, "what runs behind an address of one's own has no list price"
        assert kernel.types().count("llm/retry-started") == 1

        kernel.kernel.must("%config PlanAgent.plan_model = 'opanai:wise'")
        assert "there is no provider 'opanai'" in kernel.kernel.must("%session")
        kernel.kernel.must("%config PlanAgent.plan_model = ''\n%config PlanAgent.max_retries = 0")
        kernel.kernel.must("_models = list(get_ipython()._plan_mode_nb[0].composition._choices._by_name.values())")
        is_open = "print([each.model._open is not None for each in _models])"
        assert kernel.kernel.must(is_open).strip() == "[True, True]"
        kernel.kernel.must("%unload_ext plan_mode_nb")
        assert kernel.kernel.must(is_open).strip() == "[False, False]"
