"""A server's tool as one of the agent's: named after both, asked for like any code that nothing confines, its answer as a result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final

import msgspec

from plan_mode_nb.agent.attachments import ImageError, image_block
from plan_mode_nb.agent.mcp import PREFIX, Answer, Connection, Offered, Part, ServerFailed
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, ToolError, ToolResult
from plan_mode_nb.exceptions import LogError
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.log.codec import stage
from plan_mode_nb.log.messages import Block, text_block
from plan_mode_nb.log.vocabulary import draft

MAX_IMAGES: Final = 10
MOST_NAME: Final = 64
"""Characters of a tool's name that every provider takes."""
REASON: Final = "an MCP server is a program that nothing here confines"
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 12


def public_name(server: str, tool: str) -> str:
    """``mcp__server__tool``. Where a provider would refuse that, or it could be read in two ways, one that a hash keeps apart."""
    name = f"{PREFIX}{server}__{tool}"
    plain = _ODD.sub("_", name)
    if plain == name and len(name) <= MOST_NAME and "__" not in f"{server}_" and not tool.startswith("_"):
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH]
    return f"{plain[: MOST_NAME - _HASH - 1]}_{mark}"


def described(tool: Offered) -> tuple[str, dict[str, Any]] | None:
    """Description and schema as they go into a request; None for what no log can hold (half a character, a number that is none)."""
    schema = tool.parameters if tool.parameters.get("type") == "object" else {"type": "object", "properties": {}, **tool.parameters}
    try:
        stage(draft("request/header", {"tools": [tool.name, tool.description, schema]}), 0, 0)
    except LogError:
        return None
    return tool.description, schema


def server_tool(seams: Seams, results: Results, server: str, connection: Connection, tool: Offered, gone: Callable[[], None]) -> Tool:
    """The tool. ``gone()`` is called when the server turns out to be. Describe it first (:func:`described`)."""
    name = public_name(server, tool.name)
    about = described(tool)
    assert about is not None
    description, parameters = about

    async def run(call: ToolCall) -> Outcome:
        arguments = _arguments(name, call.arguments)
        await seams.permissions.require(call, f"{tool.name} of the MCP server {server}\n{_shown(arguments)}", reason=REASON)
        try:
            answer = await connection.call(tool.name, arguments)
        except ServerFailed as error:
            if error.is_gone:
                gone()
                raise ToolError(
                    f"the MCP server {server} is gone ({error}); go on without it: it is started again with the user's next message",
                    code="MCP_SERVER_GONE",
                ) from None
            raise ToolError(f"the MCP server {server} refused the call: {error}", code="MCP_REFUSED") from None
        return Outcome(_result(answer, results, seams.attachments))

    return Tool(name, description, parameters, run)


def recorded_tool(schema: Mapping[str, Any]) -> Tool:
    """Stands for a server's tool where a recording is led along: its results are the recorded ones."""

    async def run(call: ToolCall) -> Outcome:
        raise ToolError(f"{call.name} has no recorded result, and its MCP server is not started in a replay", code="MCP_SERVER_GONE")

    return Tool(str(schema["name"]), str(schema.get("description", "")), dict(schema.get("parameters") or {}), run)


def _arguments(name: str, raw: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw.strip() or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ToolError(f"the arguments of {name} are not right: {error}; send one JSON object", code="BAD_ARGUMENTS") from None


def _shown(arguments: Mapping[str, Any]) -> str:
    """Exactly what is sent, a line each."""
    lines = [f"{key}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}" for key, value in arguments.items()]
    return "\n".join(lines) or "(no arguments)"


def _result(answer: Answer, results: Results, attachments: MutableMapping[str, bytes]) -> ToolResult:
    texts, images = _split(answer.parts, attachments)
    text = results.text("\n".join(texts))
    blocks = (text_block(text or "(no output)"), *images) if text or not images else tuple(images)
    if answer.is_error:
        return ToolResult((text_block(f"Error: {text}"), *images), is_error=True, error={"name": "ToolError", "code": "MCP_TOOL_ERROR"})
    return ToolResult(blocks, value=answer.value)


def _split(parts: Sequence[Part], attachments: MutableMapping[str, bytes]) -> tuple[list[str], list[Block]]:
    """Texts, with a line for whatever is none, and the images that a model can be shown."""
    texts: list[str] = []
    images: list[Block] = []
    for part in parts:
        match part.kind:
            case "text":
                texts.append(part.text)
            case "other":
                texts.append(f"[{part.text}: not shown to you]")
            case "image" if len(images) == MAX_IMAGES:
                texts.append(f"[an image more than the {MAX_IMAGES} that a result carries]")
            case "image":
                try:
                    images.append(image_block(attachments, part.data))
                except ImageError as error:
                    texts.append(f"[an image ({part.text}) that cannot be shown to you: {error}]")
    return texts, images
