"""An MCP server from lists, and the suite that it passes together with the client for real ones."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from plan_mode_nb.agent.mcp import Answer, Connection, Offered, Part, ServerFailed

Answering = Callable[[str, dict[str, Any]], Answer]


class ScriptedServer:
    """Satisfies the Connection protocol. ``calls``: what was called, in order; ``opened``, ``closed``: how often.

    ``fails``: why it does not start. ``answer``: gives a call's answer, and raises ServerFailed where there is none. ``wait``: awaited
    while it starts, as a place where a test can hold or cancel it.
    """

    def __init__(
        self,
        *tools: Offered,
        answer: Answering = lambda tool, arguments: Answer((Part("text", f"{tool} done"),)),
        fails: str = "",
        wait: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.tools: Sequence[Offered] = tools
        self.answer = answer
        self.fails = fails
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.opened = self.closed = 0
        self._wait = wait
        self._is_open = False

    async def open(self, seconds: float) -> None:
        """Unless it fails."""
        self.opened += 1
        if self._wait is not None:
            await self._wait()
        if self.fails:
            raise ServerFailed(self.fails)
        self._is_open = True

    async def offered(self) -> Sequence[Offered]:
        """The tools of the list."""
        self._check()
        return self.tools

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """The scripted answer."""
        self._check()
        self.calls.append((tool, arguments))
        if tool not in [each.name for each in self.tools]:
            return Answer((Part("text", f"Unknown tool: {tool}"),), is_error=True)
        return self.answer(tool, arguments)

    async def close(self) -> None:
        """Counted."""
        self.closed += 1
        self._is_open = False

    def _check(self) -> None:
        if not self._is_open:
            raise ServerFailed("it is not connected")


class ServerContract:
    """What every connection does. The server of ``make`` offers ``add`` (two numbers ``a`` and ``b``, the sum as text)."""

    @abstractmethod
    def make(self) -> Connection:
        """A connection that is not open yet."""

    def test_it_offers_its_tools_with_their_schemas_and_answers_calls(self) -> None:
        """Opened in one task, called in another, closed in a third. A tool that it does not have is an error of that call."""

        async def body() -> None:
            connection = self.make()
            await asyncio.create_task(connection.open(60))
            offered = {each.name: each for each in await connection.offered()}
            assert set(offered["add"].parameters["properties"]) == {"a", "b"}
            assert offered["add"].description
            answer = await asyncio.create_task(connection.call("add", {"a": 1, "b": 2}))
            assert ([part.text for part in answer.parts], answer.is_error) == (["3"], False)
            assert (await connection.call("subtract", {})).is_error
            await asyncio.create_task(connection.close())

        asyncio.run(body())

    def test_what_is_not_open_fails_and_closing_it_does_no_harm(self) -> None:
        """Before it was opened and after it was closed, twice."""

        async def body() -> None:
            connection = self.make()
            assert await _failed(connection.offered())
            await connection.close()
            await connection.open(60)
            await connection.close()
            await connection.close()
            assert await _failed(connection.call("add", {"a": 1, "b": 2}))

        asyncio.run(body())


async def _failed(asked: Awaitable[object]) -> bool:
    """Whether it failed because the server is gone."""
    try:
        await asked
    except ServerFailed as error:
        return error.is_gone
    return False
