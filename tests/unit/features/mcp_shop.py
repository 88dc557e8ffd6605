"""An MCP server for tests, over standard streams, or over HTTP on a port of this machine.

``mcp_shop.py`` | ``mcp_shop.py http`` (prints its address once it listens) | ``mcp_shop.py fail WORDS``.
"""

from __future__ import annotations

import os
import socket
import sys

from mcp.server.mcpserver import Image, MCPServer

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000300000002080000000053a9ca7f0000000d4944415478da636868406000000e0401019a4d0d1b0000000049454e44ae426082"
)


def shop() -> MCPServer:
    """The server."""
    server = MCPServer("shop")

    @server.tool()
    def add(a: int, b: int) -> str:
        """Adds two numbers."""
        return str(a + b)

    @server.tool()
    def stock() -> list[str]:
        """What there is."""
        return ["apples", "pears"]

    @server.tool()
    def picture() -> Image:
        """What it looks like."""
        return Image(data=PICTURE, format="png")

    @server.tool()
    def environment() -> str:
        """The names of its environment variables."""
        return " ".join(sorted(os.environ))

    @server.tool()
    def process() -> int:
        """The number of its process."""
        return os.getpid()

    @server.tool()
    def close() -> str:
        """The shop closes in the middle of a sale."""
        os._exit(3)

    return server


def main(arguments: list[str]) -> None:
    """Serve, or fail."""
    if arguments[:1] == ["fail"]:
        sys.exit(arguments[1])
    if arguments != ["http"]:
        shop().run()
        return
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    app = shop().streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1:])
