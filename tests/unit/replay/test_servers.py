"""MCP servers came from outside: in a replay none is started, their tools are offered as recorded, and what they answered is played."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from leading import Conversation, again

from plan_mode_nb.agent.mcp import Offered, Program, Server
from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.features import mcp
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.replay.replay import Rules
from plan_mode_nb.testing import ScriptedServer

ADD = Offered("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
SERVERS = (Server("bad", Program("bad")), Server("shop", Program("shop")))


def served(held: Conversation, **by_name: ScriptedServer) -> mcp.Servers:
    """The same conversation with servers that are wanted."""
    servers = mcp.Servers(lambda server: by_name[server.name], SERVERS)
    servers.install(held.bench.seams, Results(str))
    held.bench.seams.permissions.register("test", _allowed)
    return servers


async def _allowed(run: Any) -> Any:
    from plan_mode_nb.agent.permission import Allowed

    return Allowed()


def held() -> Conversation:
    """Two turns: one server is there in both, the other from the second on."""
    live = Conversation(
        [say("I add."), call("mcp__shop__add", {"a": 1}), usage(10, 2)],
        [say("Added."), usage(20, 5)],
        [call("mcp__bad__add", {"a": 2}), usage(30, 2)],
        [say("Both are there."), usage(40, 5)],
    )
    bad, shop = ScriptedServer(ADD, fails="no till"), ScriptedServer(ADD)
    served(live, bad=bad, shop=shop)

    async def body() -> None:
        await live.run("%agent add")
        bad.fails = ""
        await live.run("%agent and there?")

    asyncio.run(body())
    return live


def forbidden() -> ScriptedServer:
    return ScriptedServer(ADD, fails="nothing may be started in a replay")


@pytest.mark.parametrize("runs_all", [False, True])
def test_no_server_is_started_and_their_tools_and_answers_are_the_recorded_ones(runs_all: bool) -> None:
    """Each turn has those that it had, and the model is told what it was told; also where every other tool runs again."""
    live = held()
    started: list[ScriptedServer] = [forbidden(), forbidden()]
    led, replay = again(
        live.notebook(), Rules(runs_all=runs_all), prepare=lambda each: served(each, bad=started[0], shop=started[1]) and None
    )
    assert [event.type for event in led.bench.session.events] == live.bench.types
    headers = [[tool["name"] for tool in event.data["header"]["tools"]][-2:] for event in live.bench.events("request/header")]
    assert headers[0][-1:] == ["mcp__shop__add"]
    assert headers[1] == ["mcp__bad__add", "mcp__shop__add"]
    assert [each.opened for each in started] == [0, 0]
    assert replay.is_over
    assert sum(event.data["source"].get("plugin") == "mcp" for event in led.bench.events("user/message")) == 1


def test_a_changed_answer_of_a_server_is_seen_by_the_next_request() -> None:
    """It is played, so the log is what it says; what the model then answered belongs to it."""
    live = held()

    def edit(events: list[dict[str, Any]]) -> None:
        result = next(event for event in events if event["type"] == "tool/result")
        result["data"]["message"]["content"][0]["isError"] = True

    led, _ = again(live.notebook(edit), prepare=lambda each: served(each, bad=forbidden(), shop=forbidden()) and None)
    assert led.bench.events("tool/result")[0].data["message"]["content"][0]["isError"] is True


def test_a_call_of_a_server_that_the_request_did_not_offer_is_named() -> None:
    """A hand that takes the tool out of the header takes it out of the replay."""

    def edit(events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["type"] == "request/header":
                event["data"]["header"]["tools"] = [tool for tool in event["data"]["header"]["tools"] if tool["name"] != "mcp__shop__add"]

    with pytest.raises(ReplayError, match="tool/result"):
        again(held().notebook(edit), prepare=lambda each: served(each, bad=forbidden(), shop=forbidden()) and None)
