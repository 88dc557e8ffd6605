"""The tools of MCP servers: started with a turn, offered as they are, asked for like any code that nothing confines."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_shop import PICTURE

from plan_mode_nb.agent.mcp import Address, Answer, Connection, Offered, Part, Program, Server, ServerFailed
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.features import approval_policy, mcp, sandbox
from plan_mode_nb.features.mcp.tool import public_name
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.mcp import McpConnection, connect
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing import ScriptedApprovals, ScriptedServer, ServerContract, Workbench

SHOP = Path(__file__).with_name("mcp_shop.py")
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "title": "n"}
ADD = Offered("add", "Adds two numbers.", NUMBERS)


class Bench:
    """A workbench with servers by name, in the order of their names here."""

    def __init__(self, *steps: Any, mode: str = "danger-full-access", answers: Any = (), **servers: ScriptedServer) -> None:
        self.scripted: dict[str, list[ScriptedServer]] = {name: [server] for name, server in servers.items()}
        self.approvals = ScriptedApprovals(answers)
        self.servers = mcp.Servers(self._connect, tuple(Server(name, Program(name)) for name in servers))
        self.bench = Workbench(
            *steps,
            install=[
                sandbox.install,
                approval_policy.install,
                lambda seams: seams.approvals.provide(self.approvals),
                lambda seams: self.servers.install(seams, Results(seams.redactions.text)),
            ],
        )
        self.bench.session.append(draft("sandbox/mode", {"mode": mode}))
        self.made: list[str] = []

    def _connect(self, server: Server) -> Connection:
        self.made.append(server.name)
        return self.scripted[server.name][0]

    def ask(self, *prompts: str) -> Bench:
        async def body() -> None:
            for prompt in prompts:
                await self.bench.ask(prompt)

        asyncio.run(body())
        return self

    @property
    def offered(self) -> list[str]:
        return [each["name"] for each in self.bench.seams.tools.schemas()]

    @property
    def results(self) -> list[tuple[str, str | None]]:
        found = []
        for event in self.bench.events("tool/result"):
            content = event.data["message"]["content"][0]["content"]
            found.append((content[0].get("text", content[0]["type"]), event.data.get("error", {}).get("code")))
        return found

    @property
    def told(self) -> list[str]:
        messages = self.bench.events("user/message")
        return [event.data["content"][0]["text"] for event in messages if event.data["source"].get("plugin") == "mcp"]


def adds(**arguments: Any) -> Any:
    return call("mcp__shop__add", arguments)


def test_servers_start_with_the_first_turn_and_stay_for_the_next() -> None:
    """Their tools are in its first request, after both names, with the schema as given; nothing is started before, or again."""
    shop = ScriptedServer(ADD)
    made = Bench(adds(a=1, b=2), say("one"), say("two"), shop=shop)
    assert (shop.opened, made.offered) == (0, [])
    made.ask("add", "and?")
    assert (shop.opened, made.made) == (1, ["shop"])
    assert shop.calls == [("add", {"a": 1, "b": 2})]
    assert made.results == [("add done", None)]
    tools = [event.data["header"]["tools"] for event in made.bench.events("request/header")]
    assert tools == [[{"name": "mcp__shop__add", "description": "Adds two numbers.", "parameters": NUMBERS}]]
    asyncio.run(made.servers.aclose())
    assert shop.closed == 1


def test_a_server_that_does_not_start_is_one_sentence_once_and_is_tried_again_with_the_next_turn() -> None:
    """The turn goes on with the others; when it is there, so are its tools, in the order of the setting."""
    bad, shop = ScriptedServer(ADD, fails="no such file"), ScriptedServer(ADD)
    made = Bench(say("one"), say("two"), say("three"), bad=bad, shop=shop).ask("go", "on")
    assert made.told == ["The MCP server bad did not start: no such file. Its tools are not there."]
    assert made.offered == ["mcp__shop__add"]
    assert made.servers.states() == [("shop", 1, ""), ("bad", None, "no such file")]
    bad.fails = ""
    made.ask("and on")
    assert made.offered == ["mcp__bad__add", "mcp__shop__add"]
    assert (bad.opened, shop.opened) == (3, 1)


def test_a_changed_setting_takes_effect_with_the_next_turn() -> None:
    """What is no longer wanted is closed, what is new is started, and what stays is left alone."""
    first, second, third = ScriptedServer(ADD), ScriptedServer(ADD), ScriptedServer(ADD)
    made = Bench(say("one"), say("two"), first=first, second=second, third=third)
    made.servers.wanted = made.servers.wanted[:2]
    made.ask("go")
    wanted = {server.name: server for server in (Server("third", Program("third")), Server("second", Program("second")))}
    made.servers.wanted = tuple(wanted.values())
    made.ask("on")
    assert made.offered == ["mcp__third__add", "mcp__second__add"]
    assert [(each.opened, each.closed) for each in (first, second, third)] == [(1, 1), (1, 0), (1, 0)]


def test_a_server_that_ends_is_said_in_the_call_and_started_again_with_the_next_turn() -> None:
    """Nothing is sent twice."""

    def gone(tool: str, arguments: dict[str, Any]) -> Answer:
        raise ServerFailed("Connection closed")

    shop = ScriptedServer(ADD, answer=gone)
    made = Bench([adds(a=1, b=2)], say("one"), say("two"), shop=shop).ask("go")
    assert made.results == [
        ("Error: the MCP server shop is gone (Connection closed); go on without it: it is started again with the user's next message",
         "MCP_SERVER_GONE")
    ]  # fmt: skip
    made.ask("on")
    assert (shop.opened, shop.closed, len(shop.calls)) == (2, 1, 1)


def test_a_call_that_its_server_refuses_is_an_error_and_the_server_stays() -> None:
    """As the protocol has it: the tool's own errors, and requests that it does not take."""

    def refuse(tool: str, arguments: dict[str, Any]) -> Answer:
        if arguments["a"]:
            raise ServerFailed("Invalid params", is_gone=False)
        return Answer((Part("text", "a is nought"),), is_error=True)

    shop = ScriptedServer(ADD, answer=refuse)
    made = Bench([adds(a=1, b=2), adds(a=0, b=2), call("mcp__shop__add", "[1]")], say("one"), say("two"), shop=shop).ask("go", "on")
    assert [code for _, code in made.results] == ["MCP_REFUSED", "MCP_TOOL_ERROR", "BAD_ARGUMENTS"]
    assert made.results[1][0] == "Error: a is nought"
    assert shop.opened == 1


@pytest.mark.parametrize(("mode", "asked"), [("read-only", 1), ("workspace-write", 1), ("danger-full-access", 0)])
def test_outside_full_access_each_call_asks_and_says_what_is_sent(mode: str, asked: int) -> None:
    """What is rejected is not sent."""
    shop = ScriptedServer(ADD)
    made = Bench([adds(a=1, b=2)], [adds(a=3, b=4)], say("one"), mode=mode, answers=["allowed-once", "rejected"], shop=shop).ask("go")
    assert len(made.approvals.requests) == 2 * asked
    if asked:
        assert made.approvals.requests[0].preview == "add of the MCP server shop\na: 1\nb: 2"
        assert made.approvals.requests[0].reason == f"an MCP server is a program that nothing here confines, and the sandbox mode is {mode}"
        assert [code for _, code in made.results] == [None, "APPROVAL_REJECTED"]
        assert len(shop.calls) == 1


def test_stop_while_servers_start_ends_the_turn_and_leaves_nothing_half() -> None:
    """The next turn starts them anew."""

    async def body() -> Bench:
        entered = asyncio.Event()
        shop = ScriptedServer(ADD, wait=lambda: _wait(entered))
        made = Bench(say("one"), shop=shop)
        turn = asyncio.ensure_future(made.bench.ask("go"))
        await asyncio.wait_for(entered.wait(), 60)
        made.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert made.bench.events("turn/end")[0].data["reason"]["kind"] == "aborted"
        made.scripted["shop"] = [ScriptedServer(ADD)]
        await made.bench.ask("again")
        assert shop.closed == 1
        return made

    assert asyncio.run(body()).offered == ["mcp__shop__add"]


async def _wait(entered: asyncio.Event) -> None:
    entered.set()
    await asyncio.Event().wait()


def test_answers_become_results_capped_without_secrets_and_with_their_images() -> None:
    """What the model cannot be shown is said."""
    parts = (
        Part("text", "x" * 50_000),
        Part("image", "image/png", PICTURE),
        Part("image", "image/tiff", b"II*"),
        Part("other", "audio, audio/wav"),
    )
    shop = ScriptedServer(ADD, answer=lambda tool, arguments: Answer(parts if arguments["a"] else parts[1:2]))
    made = Bench([adds(a=1, b=2), adds(a=0, b=0)], say("done"), shop=shop).ask("go")
    first, second = (event.data["message"]["content"][0]["content"] for event in made.bench.events("tool/result"))
    assert [block["type"] for block in first] == ["text", "image"]
    assert len(first[0]["text"]) <= 30_000
    assert "[an image (image/tiff) that cannot be shown to you" in first[0]["text"]
    assert first[0]["text"].endswith("[audio, audio/wav: not shown to you]")
    assert [block["type"] for block in second] == ["image"]
    assert list(made.bench.seams.attachments.values()) == [PICTURE]


def test_a_tool_that_no_log_could_hold_is_left_out_and_said() -> None:
    """Half a character, a number that is none, the same name twice. The others are there."""
    odd = [Offered("half", "\ud800", NUMBERS), Offered("none", "", {"default": float("nan")}), Offered("add", "again", {})]
    made = Bench(say("one"), say("two"), shop=ScriptedServer(ADD, *odd, Offered("bare", "", {}))).ask("go", "on")
    assert made.offered == ["mcp__shop__add", "mcp__shop__bare"]
    assert [re.findall(r"mcp__\w+", each) for each in made.told] == [["mcp__shop__half"], ["mcp__shop__none"], ["mcp__shop__add"]]
    assert made.bench.seams.tools.schemas()[1]["parameters"] == {"type": "object", "properties": {}}


def test_taken_out_their_tools_go_and_the_servers_stay_until_they_are_closed() -> None:
    """A setting that has nothing to do with them restarts none."""
    shop = ScriptedServer(ADD)
    made = Bench(say("one"), say("two"), shop=shop).ask("go")
    made.bench.undos[-1]()
    assert made.offered == []
    made.servers.install(made.bench.seams, Results(str))
    made.ask("on")
    assert (made.offered, shop.opened, shop.closed) == (["mcp__shop__add"], 1, 0)


def test_a_server_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does one that fails at it keep the others."""

    class Stubborn(ScriptedServer):
        async def close(self) -> None:
            await super().close()
            await asyncio.Event().wait()

    class Broken(ScriptedServer):
        async def close(self) -> None:
            raise RuntimeError("no")

    monkeypatch.setattr("plan_mode_nb.features.mcp.servers.CLOSE_S", 0.05)
    stubborn, shop = Stubborn(ADD), ScriptedServer(ADD)
    made = Bench(say("one"), stubborn=stubborn, broken=Broken(ADD), shop=shop).ask("go")
    asyncio.run(asyncio.wait_for(made.servers.aclose(), 60))
    assert (stubborn.closed, shop.closed, made.servers.states()) == (1, 1, [])
    assert [record.getMessage() for record in caplog.records] == [
        f"the MCP server {name} did not end well" for name in ("broken", "stubborn")
    ]


BOTH = st.tuples(st.from_regex(r"[ab_-]{1,4}", fullmatch=True), st.text(alphabet="ab_-.é", min_size=1, max_size=90))


@given(st.lists(BOTH, min_size=2, max_size=6, unique=True))
def test_names_are_what_every_provider_takes_and_never_meet(offered: list[tuple[str, str]]) -> None:
    """Whatever servers and their tools are called; a name depends on the two and nothing else."""
    names = [public_name(server, tool) for server, tool in offered]
    assert all(re.fullmatch(r"mcp__[A-Za-z0-9_-]{1,59}", name) for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("setting", "at"),
    [
        ({"command": "npx", "args": ["-y", "shop"], "env": {"KEY": "${TOKEN}"}}, Program("npx", ("-y", "shop"), {"KEY": "t0"})),
        ({"command": "shop", "cwd": "/srv", "type": "stdio", "args": None}, Program("shop", cwd="/srv")),
        ({"command": "${HOME_OF:-/opt}/shop"}, Program("/opt/shop")),
        ({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "type": "http"},
         Address("http://127.0.0.1:1/mcp", {"Authorization": "Bearer t0"})),
    ],
)  # fmt: skip
def test_a_setting_has_the_shape_of_other_tools_files(setting: dict[str, Any], at: Program | Address) -> None:
    """The whole of such a file, too; a server that is disabled is left out."""
    environ = {"TOKEN": "t0"}
    assert mcp.configured({"shop": setting}, environ) == (Server("shop", at),)
    assert mcp.configured({"mcpServers": {"shop": setting, "off": {"url": "http://x", "disabled": True}}}, environ) == (Server("shop", at),)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ([], "must be an object of servers by name"),
        ({"a b": {"command": "x"}}, "'a b' cannot name a server"),
        ({"s": "npx"}, "must be an object with a command or a url"),
        ({"s": {}}, "either a command or a url"),
        ({"s": {"command": "x", "url": "http://x"}}, "either a command or a url"),
        ({"s": {"command": "x", "arg": []}}, "has no key 'arg'; it may have command, args"),
        ({"s": {"url": "http://x", "env": {}}}, "has no key 'env'; it may have url, headers"),
        ({"s": {"command": "x", "args": "y"}}, "`args` must be a list of texts"),
        ({"s": {"command": "x", "env": {"A": 1}}}, "`env` must be an object of texts"),
        ({"s": {"command": ""}}, "`command` must be a text"),
        ({"s": {"command": "x", "type": "http"}}, "has the type 'http'; with a command it can be stdio"),
        ({"s": {"url": "file:///x"}}, "must begin with http:// or https://"),
        ({"s": {"command": "x", "disabled": "yes"}}, "`disabled` must be true or false"),
        ({"s": {"command": "x", "env": {"A": "${NOT_SET}"}}}, "names the environment variable NOT_SET, which is not set"),
    ],
)
def test_a_setting_that_cannot_work_is_one_sentence_that_names_it(setting: Any, says: str) -> None:
    """Server and key."""
    with pytest.raises(ConfigError, match=re.escape(says)) as refused:
        mcp.configured(setting, {})
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("PlanAgent.mcp_servers")


# ---- real servers


def over_streams(*arguments: str) -> Server:
    return Server("shop", Program(sys.executable, (str(SHOP), *arguments)))


class TestScripted(ServerContract):
    def make(self) -> Connection:
        return ScriptedServer(ADD, answer=lambda tool, arguments: Answer((Part("text", str(arguments["a"] + arguments["b"])),)))


class TestProgram(ServerContract):
    def make(self) -> Connection:
        return McpConnection(over_streams())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a server listens on this machine."""
    server = subprocess.Popen([sys.executable, str(SHOP), "http"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.kill()
    server.communicate()


class TestAddress(ServerContract):
    @pytest.fixture(autouse=True)
    def listening(self, address: str) -> None:
        self.address = address

    def make(self) -> Connection:
        return McpConnection(Server("shop", Address(self.address)))


def test_a_real_server_in_a_turn(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """List, picture, an environment without secrets, its end in the middle of a call, its restart; and why another did not start.

    Nothing that a server prints among its messages, or that the client's libraries make of it, gets out: a cell's output is the turn's.
    """
    monkeypatch.setenv("TOKEN_OF_MINE", "not for servers")
    made = Bench([call(f"mcp__shop__{each}", {}) for each in ("stock", "picture", "environment", "close", "stock")], say("one"),
                 call("mcp__shop__add", {"a": 20, "b": 22}), say("two"), shop=ScriptedServer())  # fmt: skip
    made.servers.connect = connect
    noisy = f"import runpy; print('starting', flush=True); runpy.run_path({str(SHOP)!r}, run_name='__main__')"
    shop = Server("shop", Program(sys.executable, ("-c", noisy)))
    made.servers.wanted = (shop, Server("bad", Program(sys.executable, (str(SHOP), "fail", "the till is empty"))))

    async def body() -> None:
        await made.bench.ask("go")
        await made.bench.ask("on")
        await made.servers.aclose()

    asyncio.run(body())
    texts = [text for text, _ in made.results]
    assert texts[:2] == ["apples\npears", "image"]
    assert "TOKEN_OF_MINE" not in texts[2]
    assert "PATH" in texts[2]
    assert [code for _, code in made.results[3:]] == ["MCP_SERVER_GONE", "MCP_SERVER_GONE", None]
    assert texts[-1] == "42"
    assert made.told == ["The MCP server bad did not start: the till is empty. Its tools are not there."]
    assert json.dumps(made.bench.seams.tools.schemas())
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_started_or_reached_says_why() -> None:
    """In the words of whoever knows."""

    async def body() -> None:
        for server, says in (
            (Server("s", Program("/nowhere/shop")), "No such file or directory"),
            (Server("s", Address("http://127.0.0.1:9/mcp")), "connection attempts failed"),
        ):
            with pytest.raises(ServerFailed, match=says):
                await McpConnection(server).open(60)
        silent = McpConnection(Server("s", Program("sleep", ("1000",))))
        with pytest.raises(ServerFailed, match="did not answer within 1 s"):
            await silent.open(1)

    asyncio.run(body())
