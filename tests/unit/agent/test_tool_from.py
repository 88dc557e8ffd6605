"""A tool from a function: its schema is its signature, and arguments are taken strictly."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
import pytest

from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, ToolCall, ToolError, ToolResult, text_result


class Row(msgspec.Struct):
    """One row."""

    name: str
    size: int = 0


def pick(call: ToolCall, rows: list[Row], mode: Annotated[Literal["a", "b"], msgspec.Meta(description="which")] = "a") -> str:
    """Pick rows."""
    return f"{call.call_id} {mode} {[row.name for row in rows]}"


def run(tool: Any, arguments: str) -> Outcome:
    return asyncio.run(tool.run(ToolCall(tool.name, arguments, "c", 1, 1, None)))


def test_the_schema_is_one_object_that_says_what_the_signature_says() -> None:
    """Required, defaults, descriptions and nested shapes; nothing else is allowed; the call itself is no argument."""
    tool = tool_from(pick)
    assert (tool.name, tool.description) == ("pick", "Pick rows.")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            "mode": {"enum": ["a", "b"], "description": "which", "default": "a"},
        },
        "required": ["rows"],
        "additionalProperties": False,
        "$defs": tool.parameters["$defs"],
    }
    assert tool.parameters["$defs"]["Row"]["required"] == ["name"]


def test_arguments_are_decoded_once_and_handed_over_by_name() -> None:
    """Objects become what the annotation says."""
    assert run(tool_from(pick), '{"mode": "b", "rows": [{"name": "x"}]}').result == text_result("c b ['x']")


@pytest.mark.parametrize(
    "arguments", ['{"rows": [], "mode": "c"}', '{"rows": "x"}', '{"rows": [{"size": "7", "name": "x"}]}', '{"rows": [], "x": 1}']
)
def test_nothing_is_coerced_and_nothing_unknown_is_dropped(arguments: str) -> None:
    """The message says where the fault is and to send one JSON object."""
    with pytest.raises(ToolError, match=r"the arguments of pick are not right: .*; send one JSON object") as caught:
        run(tool_from(pick), arguments)
    assert caught.value.code == "BAD_ARGUMENTS"


def test_a_function_may_return_text_nothing_a_result_or_an_outcome_and_may_be_a_coroutine() -> None:
    """Each becomes one outcome."""

    async def nothing() -> None:
        """Nothing."""

    def number() -> int:
        """Number."""
        return 7

    def result() -> ToolResult:
        """Result."""
        return text_result("r", is_error=True)

    def outcome() -> Outcome:
        """Outcome."""
        return Outcome(text_result("o"))

    texts = [run(tool_from(function), "").result.content[0]["text"] for function in (nothing, number, result, outcome)]
    assert texts == ["(no output)", "7", "r", "o"]


def test_a_function_that_makes_no_clear_tool_is_refused_by_name() -> None:
    """No annotation, no docstring, no variadic parameters."""

    def bare(a) -> str:  # type: ignore[no-untyped-def]
        """Bare."""
        return str(a)

    def many(*a: int) -> str:
        """Many."""
        return str(a)

    def silent(a: int) -> str:
        return str(a)

    for function, reason in [(bare, "parameter 'a' needs an annotation"), (many, "parameter 'a' needs"), (silent, "needs a docstring")]:
        with pytest.raises(TypeError, match=f"the tool {function.__name__}.*{reason}"):
            tool_from(function)
