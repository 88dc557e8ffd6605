"""What a provider caches is the longest common prefix: requests of a session share all they can, also across a switch of plan mode."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from live_model import PROVIDERS, environ_for

from plan_mode_nb.agent.registry import undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import call, say, think
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.workbench import Workbench

FIRST, GUIDE = "You are the agent.\n\nBe brief.", "Plan first.\n\nHand in the plan."
Json = dict[str, Any]


def look(name: str) -> str:
    """Look."""
    return f"{name} is 3"


def composed(seams: Seams) -> Any:
    return undo_all(
        [
            seams.sections.register("first", 0, lambda context: FIRST),
            seams.tools.register(tool_from(look)),
            install(seams, PlanModeConfig(GUIDE)),
        ]
    )


def bodies_of(provider: str) -> list[Json]:
    """Six requests: two of a turn, one with plan mode on, one more of it, and one with it off again."""
    steps = [
        [think("hm", "SIGNED"), call("look", '{"name":  "x"}', "c-1")],
        say("It is 3."),
        [think("hm", "SIGNED"), call("look", {"name": "y"}, "c-2")],
        say("I would do this."),
        say("Fine."),
    ]

    async def body(server: LoopbackServer) -> list[Json]:
        model = PydanticAIModel(provider, "gpt-6.1-sol" if provider == "openai" else "loopback", ModelSettings(), environ_for(server))
        bench = Workbench(install=[composed])
        bench.agent.models = lambda name: model
        await bench.ask("What is x?")
        PlanMode.set(bench.agent, True)
        await bench.ask("Plan it.")
        PlanMode.set(bench.agent, False)
        await bench.ask("Never mind.")
        await model.aclose()
        return [request.body for request in server.requests]

    with LoopbackServer(steps) as server:
        bodies = asyncio.run(asyncio.wait_for(body(server), 30))
    assert len(bodies) == 5
    return bodies


def said(body: Json) -> list[Json]:
    """The conversation behind the system prompt."""
    messages = cast("list[Json]", body.get("messages", body.get("input")))
    return [message for message in messages if message.get("role") not in ("system", "developer")]


def system(body: Json) -> str:
    """The system prompt as one text."""
    told = body.get("system", body.get("instructions"))
    if told is None:
        told = next(
            message["content"] for message in body.get("messages", body.get("input", [])) if message["role"] in ("system", "developer")
        )
    return told if isinstance(told, str) else "\n\n".join(block["text"] for block in told)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_request_begins_with_the_one_before_it(provider: str) -> None:
    """Tools and conversation only ever grow at their end; within a state of plan mode the system prompt does not change either."""
    bodies = bodies_of(provider)
    for earlier, later in itertools.pairwise(bodies):
        assert later["tools"] == earlier["tools"]
        assert _unmarked(said(later))[: len(said(earlier))] == _unmarked(said(earlier))
        assert set(later) == set(earlier)
        same = {key for key in later if key not in ("messages", "input", "system", "instructions")}
        assert {key: later[key] for key in same} == {key: earlier[key] for key in same}
    assert system(bodies[0]) == system(bodies[1]) == system(bodies[4]) == FIRST
    assert system(bodies[2]) == system(bodies[3])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_switch_changes_the_plan_section_and_nothing_ahead_of_it(provider: str) -> None:
    assert system(bodies_of(provider)[2]) == f"{FIRST}\n\n{GUIDE}"


def test_anthropic_caches_after_the_tools_ahead_of_the_plan_section_and_after_the_last_message() -> None:
    """The marker of the system prompt stays where it is on a switch, so that what it covers is found again."""
    for body in bodies_of("anthropic"):
        assert ["cache_control" in tool for tool in body["tools"]] == [False] * (len(body["tools"]) - 1) + [True]
        first, *rest = body["system"]
        assert (first["text"], "cache_control" in first) == (FIRST, True)
        assert [(block["text"], "cache_control" in block) for block in rest] in ([], [(GUIDE, False)])
        # A top-level marker has the server put it behind the last block that can be cached, and move it as the conversation grows.
        assert body["cache_control"]["type"] == "ephemeral"


def _unmarked(messages: list[Json]) -> list[Json]:
    """Without cache markers, which move with the end and are no part of what is cached."""
    stripped: list[Json] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            content = [{key: value for key, value in block.items() if key != "cache_control"} for block in content]
        stripped.append({**message, "content": content} if "content" in message else message)
    return stripped
