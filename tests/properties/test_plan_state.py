"""Plan mode under random interleavings: selections, commands, reviews, rejected and broken steps, refused writes, Stop, restarts."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_oracle import NOTICES
from plan_world import ACTIONS, GUIDE, Gate, Restart, Select, StepScript, Turn, World, live

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.plan import PlanMode


@settings(max_examples=250, deadline=None)
@given(actions=st.lists(ACTIONS, max_size=7), active=st.booleans())
def test_section_notices_tools_and_log_agree_under_every_interleaving(actions: list[Turn | Select | Restart], active: bool) -> None:
    """At every request and after every act, in every process."""
    logging.disable(logging.CRITICAL)
    try:
        world = asyncio.run(live(actions, active))
    finally:
        logging.disable(logging.NOTSET)
    assert world.requests > 0


@settings(max_examples=60, deadline=None)
@given(selections=st.lists(st.booleans(), max_size=8), active=st.booleans())
def test_any_selections_during_one_step_amount_to_their_last(selections: list[bool], active: bool) -> None:
    """At most one ``plan/mode`` and one notice, and none where the last one is what was so."""
    world = World()
    PlanMode.set(world.bench.agent, active)
    before = len(world.bench.events("plan/mode"))
    script = StepScript("accept", tuple(selections), ("note",), "approve", "go")
    asyncio.run(world.run(Turn((script,))))
    last = selections[-1] if selections else active
    switched = [event.data["active"] for event in world.bench.events("plan/mode")[before:]]
    told = [event for event in world.bench.events("user/message") if event.data["source"].get("plugin") == "plan-mode"]
    assert switched == ([] if last is active else [last])
    assert len(told) == len(switched)


def silent(self: PlanMode, agent: Agent) -> None:
    """Never tells."""


def chatty(self: PlanMode, agent: Agent) -> dict[str, object]:
    """Tells at every step."""
    return user_message(next(text for text, active in NOTICES.items() if active is self.get(agent).active), id="n", source=SOURCE)


async def eager(self: PlanMode, step: Step, call_next: CallNext) -> Decision:
    """Applies before the rest accepted."""
    self._apply(step.agent)
    return await call_next(step)


async def stubborn(self: PlanMode, step: Step, call_next: CallNext) -> Decision:
    """Applies whatever the rest said."""
    decision = await call_next(step)
    self._apply(step.agent)
    return decision


def hasty(self: PlanMode, context: PromptContext) -> str:
    """Shows the guidance for what is only pending."""
    return GUIDE if context.agent is not None and self.get(context.agent).target else ""


SOURCE = {"kind": "plugin", "plugin": "plan-mode", "form": "notice", "summary": "x"}


BROKEN: list[tuple[str, Any]] = [("_notice", silent), ("_notice", chatty), ("pre_step", eager), ("pre_step", stubborn), ("section", hasty)]


def step(gate: Gate = "accept", selections: tuple[bool, ...] = ()) -> StepScript:
    """A step that goes on."""
    return StepScript(gate, selections, ("note",), "approve", "go")


HISTORY = [Turn((step(), step(selections=(True,)), step("reject"))), Turn((step("refuse switch"), step())), Turn((step(),))]


@pytest.mark.parametrize(("name", "broken"), BROKEN, ids=[broken.__name__ for _, broken in BROKEN])
def test_a_broken_plan_mode_is_noticed(name: str, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The properties can fail: each of these plausible faults breaks one of them in a history that the real one passes."""
    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(live(HISTORY))
        monkeypatch.setattr(PlanMode, name, broken)
        with pytest.raises(AssertionError):
            asyncio.run(live(HISTORY))
    finally:
        logging.disable(logging.NOTSET)
