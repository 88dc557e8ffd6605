"""MCP servers: the tools of programs and services that the person configured."""

from plan_mode_nb.features.mcp.config import configured
from plan_mode_nb.features.mcp.servers import Servers

__all__ = ["Servers", "configured"]
