"""The configured servers of one composition: started with the first turn that has them, kept as long as they are wanted and there.

What is offered to the model changes between turns only. A server that does not start is one sentence, for the person and the model, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from plan_mode_nb.agent.mcp import PLUGIN, Connect, Connection, Offered, Server, ServerFailed
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Tool
from plan_mode_nb.features.mcp.tool import described, public_name, recorded_tool, server_tool
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import notice_source, text_of, user_message

START_S: Final = 30.0
"""How long a server may take to start; a program that is fetched first takes its time. One that takes longer is not tried every turn."""
CLOSE_S: Final = 5.0
"""How long one may take to end before it is no longer waited for."""
_logger = logging.getLogger(__name__)


class _Running(Struct):
    """A server that was asked for. ``why``: why it is not there; ``is_slow``: it took long to say so."""

    server: Server
    connection: Connection
    tools: tuple[Offered, ...] = ()
    is_there: bool = False
    why: str = ""
    is_slow: bool = False


class Servers(Struct):
    """One per composition of plugins, and longer than any: a setting that has nothing to do with it restarts no server.

    ``wanted`` may be set between turns, on any thread; everything else happens on the agent's loop.
    """

    connect: Connect
    wanted: tuple[Server, ...] = ()
    _running: dict[str, _Running] = field(default_factory=dict)
    _registered: list[Undo] = field(default_factory=list)

    def states(self) -> list[tuple[str, int | None, str]]:
        """Name, how many tools (None: not there), and why not, of each server that was asked for."""
        return [(name, len(each.tools) if each.is_there else None, each.why) for name, each in list(self._running.items())]

    def install(self, seams: Seams, results: Results) -> Undo:
        """Add the pre-step that has them ready. The undo takes their tools out; what was started goes on."""

        async def pre_step(step: Step, call_next: CallNext) -> Decision:
            # A child takes what its owner's turn has.
            begins = step.step == 1 and step.agent.parent is None
            said = await self._ready(seams, results, step) if begins else ()
            decision = await call_next(step)
            match decision:
                case Enter(messages) if said and step.runs(messages):
                    notices = [user_message(each, id=seams.new_id(), source=notice_source(PLUGIN, each)) for each in said]
                    return Enter((*notices, *messages))
                case Enter() | Reject():
                    return decision

        return undo_all([seams.pre_step.register(pre_step), lambda: undo_all(self._registered)()])

    async def aclose(self) -> None:
        """Let go of all."""
        running, self._running = self._running, {}
        await asyncio.gather(*(_closed(each) for each in running.values()))

    # -- inside

    async def _ready(self, seams: Seams, results: Results, step: Step) -> Sequence[str]:
        recorded = seams.servers.of(step)
        if recorded is not None:
            self._offer(seams, [recorded_tool(schema) for schema in recorded.schemas])
            return recorded.notices
        await self._start()
        tools, left_out = self._tools(seams, results)
        self._offer(seams, tools)
        told = step.agent.session.fold(TOLD)
        return [each for each in (*self._failures(), *left_out) if each not in told]

    async def _start(self) -> None:
        """Have exactly those running that are wanted and can be had."""
        wanted = {server.name: server for server in self.wanted}
        stale = [name for name, each in self._running.items() if wanted.get(name) != each.server or not (each.is_there or each.is_slow)]
        await asyncio.gather(*(_closed(self._running.pop(name)) for name in stale))
        new = [_Running(server, self.connect(server)) for server in self.wanted if server.name not in self._running]
        # Before they are there: where the turn is stopped meanwhile, the next one lets go of those that are not.
        self._running.update({each.server.name: each for each in new})
        await asyncio.gather(*map(_started, new))
        for each in self._running.values():
            if each.is_there:
                await _listed(each)

    def _tools(self, seams: Seams, results: Results) -> tuple[list[Tool], list[str]]:
        """In the order of the setting, each server's in its own; and a sentence for each that cannot be offered."""
        tools: dict[str, Tool] = {}
        left_out = []
        for server in self.wanted:
            running = self._running[server.name]
            for offered in running.tools if running.is_there else ():
                name = public_name(server.name, offered.name)
                if described(offered) is None or name in tools:
                    left_out.append(f"A tool of the MCP server {server.name} is left out, because it cannot be described: {name}.")
                    continue
                tools[name] = server_tool(seams, results, server.name, running.connection, offered, _gone(running))
        return list(tools.values()), left_out

    def _offer(self, seams: Seams, tools: Sequence[Tool]) -> None:
        """Register these in place of those before, in this order."""
        undo_all(self._registered)()
        self._registered = [seams.tools.register(tool) for tool in tools]

    def _failures(self) -> list[str]:
        return [
            f"The MCP server {each.server.name} did not start: {each.why}. Its tools are not there."
            + (" It is tried again once its setting changes or the extension is loaded again." if each.is_slow else "")
            for each in self._running.values()
            if not each.is_there
        ]


class ToldFold:
    """Events -> what the model was told of servers so far."""

    types: Final = frozenset({"user/message"})

    def start(self) -> set[str]:
        """Nothing."""
        return set()

    def step(self, state: set[str], event: Event) -> set[str]:
        """The state after one more event."""
        if event.data.get("source", {}).get("plugin") == PLUGIN:
            state.add(text_of(event.data["content"]))
        return state

    def value(self, state: set[str]) -> frozenset[str]:
        """The sentences."""
        return frozenset(state)


TOLD: Final = ToldFold()


async def _started(running: _Running) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        await running.connection.open(START_S)
        running.is_there = True
    except ServerFailed as error:
        running.why, running.is_slow = str(error).rstrip("."), loop.time() - began >= START_S


async def _listed(running: _Running) -> None:
    try:
        running.tools = tuple(await running.connection.offered())
    except ServerFailed as error:
        running.is_there, running.why = False, str(error).rstrip(".")


async def _closed(running: _Running) -> None:
    try:
        await asyncio.wait_for(running.connection.close(), CLOSE_S)
    except Exception:
        _logger.warning("the MCP server %s did not end well", running.server.name, exc_info=True)


def _gone(running: _Running) -> Callable[[], None]:
    def gone() -> None:
        running.is_there, running.why = False, "it ended"

    return gone
