"""MCP through pydantic-ai's client. It, and what it stands on, is imported with the first connection: that takes seconds.

The client's ``call_tool`` is used rather than the toolset's, which turns a text that looks like JSON into a value of its own.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import importlib
import logging
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, Final, final

from plan_mode_nb.agent.mcp import Address, Answer, Offered, Part, Program, Server, ServerFailed

if TYPE_CHECKING:
    from pydantic_ai.mcp import MCPToolset

INSTALL: Final = "MCP servers need more packages than are installed; pip install 'plan-mode-nb[mcp]' and restart the kernel"
_CLOSED: Final = -32_000
"""The protocol's code for a connection that is closed."""
_LAST: Final = 2_000
"""Characters of what a program complained about that are looked at."""
_WORDS: Final = 300
_LOUD: Final = ("fastmcp", "mcp")


@final
class McpConnection:
    """Satisfies Connection."""

    def __init__(self, server: Server) -> None:
        """Nothing is started yet."""
        self._server = server
        self._toolset: MCPToolset[None] | None = None
        self._complaints: IO[str] | None = None

    async def open(self, seconds: float) -> None:
        """Start or reach the server."""
        try:
            await asyncio.to_thread(_import_client)
        except ImportError:
            raise ServerFailed(INSTALL) from None
        toolset = self._made(seconds)
        try:
            await asyncio.wait_for(toolset.__aenter__(), seconds)
        except TimeoutError:
            self._complained()
            raise ServerFailed(f"it did not answer within {seconds:g} s") from None
        except Exception as error:  # noqa: BLE001 -- the client's, the transport's and the system's own errors, all of them one failure
            raise ServerFailed(self._complained() or _said(error)) from None
        except asyncio.CancelledError:
            self._complained()
            raise
        self._toolset = toolset

    async def offered(self) -> Sequence[Offered]:
        """The server's tools."""
        try:
            tools = await self._open().list_tools()
        except Exception as error:  # noqa: BLE001 -- as above
            raise self._failed(error) from None
        described = [tool.model_dump(mode="json", by_alias=True) for tool in tools]
        return [Offered(each["name"], each.get("description") or "", each.get("inputSchema") or {}) for each in described]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """The answer, errors of the tool's own included."""
        try:
            result = await self._open().client.call_tool(tool, arguments, raise_on_error=False)
        except Exception as error:  # noqa: BLE001 -- as above
            raise self._failed(error) from None
        parts = tuple(_part(block.model_dump(mode="json", by_alias=True)) for block in result.content)
        return Answer(parts, bool(result.is_error), _unwrapped(result.structured_content))

    async def close(self) -> None:
        """End the session, and the program."""
        toolset, self._toolset = self._toolset, None
        if toolset is not None:
            await toolset.__aexit__(None, None, None)
        self._complained()

    def _made(self, seconds: float) -> MCPToolset[None]:
        from fastmcp.client.transports import StdioTransport
        from pydantic_ai.mcp import MCPToolset

        match self._server.at:
            case Program(command, args, env, cwd):
                # What a program complains about must not get into the cell's output, where it would end up otherwise.
                self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- open as long as the program
                transport = StdioTransport(command, list(args), dict(env), cwd, keep_alive=False, log_file=self._complaints)
                return MCPToolset(transport, id=self._server.name, init_timeout=seconds)
            case Address(url, headers):
                return MCPToolset(url, id=self._server.name, headers=dict(headers), init_timeout=seconds)

    def _open(self) -> MCPToolset[None]:
        if self._toolset is None:
            raise ServerFailed("it is not connected")
        return self._toolset

    def _failed(self, error: Exception) -> ServerFailed:
        if isinstance(error, ServerFailed):
            return error
        code = getattr(getattr(error, "error", error), "code", _CLOSED)
        return ServerFailed(_said(error), is_gone=code == _CLOSED)

    def _complained(self) -> str:
        """The last line of what the program wrote to its standard error, which is let go of; "" where it wrote none."""
        complaints, self._complaints = self._complaints, None
        if complaints is None:
            return ""
        with complaints:
            size = complaints.seek(0, 2)
            complaints.seek(max(0, size - _LAST))
            lines = [line.strip() for line in complaints.read().splitlines() if line.strip()]
        return lines[-1] if lines else ""


def _import_client() -> None:
    """What it logs would stand in the output of whatever cell runs. Whoever uses it themselves has set it up before, and keeps that."""
    is_ours = not any(name in sys.modules for name in _LOUD)
    importlib.import_module("pydantic_ai.mcp")
    if is_ours:
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def connect(server: Server) -> McpConnection:
    """A connection to a server, not opened yet."""
    return McpConnection(server)


def _said(error: Exception) -> str:
    """An error in a few words."""
    words = " ".join(str(error).split()).removeprefix("Client failed to connect: ") or type(error).__name__
    return words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"


def _unwrapped(value: Any) -> Any:
    """What the tool returned: a value that is no object travels in one with the one key ``result``."""
    return value["result"] if isinstance(value, dict) and set(value) == {"result"} else value


def _part(block: dict[str, Any]) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Part("text", text)
        case {"type": "image", "data": str(data), "mimeType": kind}:
            return Part("image", str(kind), _bytes(data))
        case {"type": "audio", "mimeType": kind}:
            return Part("other", f"audio, {kind}")
        case {"type": "resource", "resource": {"text": str(text)}}:
            return Part("text", text)
        case {"type": "resource", "resource": {"uri": uri, **about}}:
            return Part("other", f"resource {uri}, {about.get('mimeType') or 'binary'}")
        case {"type": "resource_link", "uri": uri}:
            return Part("other", f"resource {uri}")
        case _:
            return Part("other", str(block.get("type")))


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return b""
