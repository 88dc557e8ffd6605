"""The models of a shell: kept while nothing changed, closed on the agent's loop when something did."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.hosts.kernel.choices import Choices
from plan_mode_nb.hosts.kernel.config import PlanAgent
from plan_mode_nb.models.script import say
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import a_request


def choices(**settings: Any) -> Choices:
    agent = PlanAgent(model="openai-chat:one", **settings)
    return Choices(agent, lambda path: [])


async def ask(model: Any) -> None:
    async for _ in model.stream(a_request()):
        pass


def test_both_phases_keep_their_model_through_any_number_of_switches() -> None:
    """Each has its own connections and its own converted history."""
    made = choices(plan_model="openai-chat:two")
    first, planning = made.choose(None), made.choose("openai-chat:two")
    assert made.choose(None) is first
    assert made.choose("openai-chat:two") is planning
    assert (first.why, planning.why) == ("set by PlanAgent.model", "set by PlanAgent.plan_model")
    assert made.choose("openai-chat:one") is first, "the same name is the same model"


@pytest.mark.parametrize("change", ["temperature", "model", "key"])
def test_a_changed_setting_or_key_makes_new_models_and_closes_the_old_ones_on_the_agents_loop(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the change was first seen by ``%session``, on another thread with another loop."""

    async def main(server: LoopbackServer) -> None:
        made = choices()
        old = made.model(None)
        await ask(old)
        assert old._open is not None  # type: ignore[attr-defined]
        match change:
            case "temperature":
                made._agent.temperature = 0.5
            case "model":
                made._agent.model = "openai-chat:other"
            case _:
                monkeypatch.setenv("OPENAI_API_KEY", "another")
        await asyncio.to_thread(asyncio.run, seen_elsewhere(made))
        assert old._open is not None, "another thread closes nothing"  # type: ignore[attr-defined]
        new = made.model(None)
        assert new is not old
        await ask(new)
        await made.aclose()
        assert (old._open, new._open) == (None, None)  # type: ignore[attr-defined]

    async def seen_elsewhere(made: Choices) -> None:
        made.choose(None)

    with LoopbackServer([say("1"), say("2")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asyncio.run(asyncio.wait_for(main(server), 30))


def test_a_name_that_cannot_work_is_refused_by_the_setting_it_stands_in() -> None:
    with pytest.raises(ConfigError, match=r"PlanAgent\.plan_model 'opanai:x': there is no provider 'opanai'; did you mean 'openai:x'\?"):
        choices().choose("opanai:x")


def test_a_model_that_cannot_be_closed_does_not_keep_the_others_open(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck:
        closed = 0

        async def aclose(self) -> None:
            Stuck.closed += 1
            raise OSError("stuck")

    async def main() -> None:
        made = choices()
        made._retired = [Stuck(), Stuck()]
        await made.aclose()

    asyncio.run(main())
    assert Stuck.closed == 2
    assert "could not be closed" in caplog.text
