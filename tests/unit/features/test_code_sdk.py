"""The tools as signatures: what a program is written against. Whatever schema a tool has, the section is valid text and always the same."""

from __future__ import annotations

import ast
import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.features import code_mode, todo
from plan_mode_nb.features.code_mode import sdk
from plan_mode_nb.features.code_mode.tool import SECTION
from plan_mode_nb.models.script import say
from plan_mode_nb.plan import PlanModeConfig, install
from plan_mode_nb.testing.workbench import Workbench


def schema(properties: Any = None, required: Any = (), name: str = "look", **more: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required), **more}
    return {"name": name, "description": "", "parameters": parameters}


@pytest.mark.parametrize(
    ("given_schema", "signature", "parameters"),
    [
        (schema({"a": {"type": "string"}, "b": {"type": "integer", "default": 3}}, ["a"]), "def look(a: str, b: int = 3)", ("a", "b")),
        (schema({"a": {"type": "string"}, "b": {"type": "number"}}, ["b"]), "def look(b: float, a: str = ...)", ("b", "a")),
        (schema({"a": {"enum": ["x", "y"]}}, ["a"]), "def look(a: Literal['x', 'y'])", ("a",)),
        (schema({"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}), "def look(a: str | None = None)", ("a",)),
        (schema({"a": {"type": ["string", "integer"]}}, ["a"]), "def look(a: str | int)", ("a",)),
        (schema({"a": {"type": "array", "items": {"$ref": "#/$defs/T"}}}, ["a"]), "def look(a: list[dict])", ("a",)),
        (schema({"a": True, "b": {}}, ["a"]), "def look(a: Any, b: Any = ...)", ("a", "b")),
        (schema({"a-b": {"type": "string"}, "class": {}}), "def look(**{'a-b': str, 'class': Any})", ("a-b", "class")),
        (schema({}, additionalProperties=False), "def look()", ()),
        (schema(additionalProperties=False), "def look()", ()),
        (schema(), "def look(**arguments)", None),
        (schema({"a": {"type": "string"}}, ["a"], additionalProperties=True), "def look(a: str)", None),
        (schema({"q": {"type": "string"}}, ["q"], name="mcp__web__search-all"), "tools['mcp__web__search-all'](q: str)", ("q",)),
        ({"name": "look", "description": "", "parameters": None}, "def look(**arguments)", None),
    ],
)
def test_a_schema_as_a_signature(given_schema: dict[str, Any], signature: str, parameters: tuple[str, ...] | None) -> None:
    """Required ones first, in the schema's order; what has no short form is ``Any``."""
    function = sdk.function(given_schema)
    assert (function.signature, function.parameters) == (signature, parameters)


def test_tools_stand_in_order_of_name_whatever_the_order_they_came_in() -> None:
    """And `run_code` is none of them."""
    schemas = [schema({}, name=name) for name in ("write", "run_code", "bash", "a-b")]
    assert [each.name for each in sdk.functions(schemas)] == ["a-b", "bash", "write"]
    assert sdk.section(schemas) == sdk.section(schemas[::-1])


KEYS = st.sampled_from(["type", "items", "enum", "anyOf", "default", "$ref", "const", "a b"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=4), JSON)
def test_any_schema_that_a_server_sends_gives_one_line(properties: Any, required: Any) -> None:
    """Never an error: an MCP server writes what it likes."""
    parameters = {"type": "object", "properties": properties, "required": required}
    found = sdk.function({"name": "look", "description": "", "parameters": parameters})
    assert len(found.signature.splitlines()) <= 1
    if all(name.isidentifier() for name in properties) and "**" not in found.signature:
        ast.parse(f"{found.signature}: pass")


def test_the_text_is_the_same_in_both_states_of_plan_mode() -> None:
    """As the tool schemas are: a provider's cache keeps both across a switch."""
    bench = Workbench(
        say("one"), say("two"), install=[todo.install, lambda seams: install(seams, PlanModeConfig("Plan.")), code_mode.install]
    )

    def now() -> tuple[str, Any]:
        return bench.seams.sections.texts(PromptContext(bench.agent))[SECTION], bench.seams.tools.schemas()

    async def body() -> None:
        before = now()
        await bench.ask("go")
        assert bench.seams.commands is not None
        await bench.seams.commands.run("plan", CommandCall(bench.agent, ""))
        await bench.ask("go on")
        assert now() == before

    asyncio.run(body())
    first, second = (event.data["header"] for event in bench.events("request/header"))
    assert first["tools"] == second["tools"]
    assert second["system"].startswith(first["system"])
    assert "def exit_plan_mode(plan: str)" in first["system"]


def test_taken_out_again_it_leaves_nothing() -> None:
    """Neither the tool nor the section."""
    bench = Workbench(install=[code_mode.install])
    bench.undos[0]()
    assert bench.seams.tools.schemas() == []
    assert bench.seams.sections.texts(PromptContext(None)) == {}
