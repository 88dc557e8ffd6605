"""Tools as the signatures of Python functions: what a model writes its program against. Pure, and the same for the same schemas."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

RUN_CODE: Final = "run_code"
_KINDS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict"}
_MOST_CHOICES: Final = 12
RULES: Final = """\
# Tools in a program

`run_code` runs a Python program in which your tools are functions. Use it where one program does the work of several calls: loops, \
conditions, filtering long results down to what you need. Only what the program prints, and the value of its last expression, comes back.

- Pass arguments by name. A call waits for its result; `await` is not needed (it is allowed). Calls run one after the other.
- A call returns the tool's text as a `str`; a tool with a structured result returns that instead, a dict or a list. A tool that fails, \
or is refused, raises `ToolCallError`, whose message is what it answered.
- Each call is what a call of your own is: it asks for approval where yours would, has the same limits, and is shown to the user.
- The program runs in a process of its own in the workspace folder, under the user's sandbox mode, without keyboard; nothing is kept \
until the next program. It reads files itself (`open`, `json`, any installed package). The user's variables are not in it: \
`python(code=…)` reaches those.
- Any tool is also `tools["its name"]`.
"""


class Function(Struct, frozen=True):
    """``parameters``: in the order of the signature; None where any are taken. ``signature``: as Python writes it."""

    name: str
    parameters: tuple[str, ...] | None
    signature: str


def functions(schemas: Sequence[Mapping[str, Any]]) -> list[Function]:
    """Every tool but ``run_code``, by name."""
    return [function(each) for each in sorted(schemas, key=lambda each: str(each["name"])) if each["name"] != RUN_CODE]


def function(schema: Mapping[str, Any]) -> Function:
    """One tool. ``schema``: ``{name, description, parameters}``, of which MCP servers write any."""
    name, parameters = str(schema["name"]), schema.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if not isinstance(properties, Mapping):
        taken = isinstance(parameters, Mapping) and parameters.get("additionalProperties") is False
        return Function(name, () if taken else None, f"{_called(name)}({'' if taken else '**arguments'})")
    asked = parameters.get("required") if isinstance(parameters, Mapping) else None
    required = asked if isinstance(asked, list) else []
    order = [key for key in properties if key in required] + [key for key in properties if key not in required]
    written = [_parameter(key, properties[key], key in required) for key in order if _is_name(key)]
    odd = [f"{key!r}: {_kind(properties[key])}" for key in order if not _is_name(key)]
    if odd:
        written.append(f"**{{{', '.join(odd)}}}")
    is_open = isinstance(parameters, Mapping) and parameters.get("additionalProperties") not in (False, None)
    return Function(name, None if is_open else tuple(order), f"{_called(name)}({', '.join(written)})")


def section(schemas: Sequence[Mapping[str, Any]]) -> str:
    """The prompt's section: the rules, then a line for each tool."""
    lines = "\n".join(f"{'' if _is_name(each.name) else '# '}{each.signature}" for each in functions(schemas))
    return f"{RULES}\n```python\n{lines}\n```"


def _called(name: str) -> str:
    return f"def {name}" if _is_name(name) else f"tools[{name!r}]"


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _parameter(name: str, schema: Any, required: bool) -> str:
    written = f"{name}: {_kind(schema)}"
    if required:
        return written
    default = schema.get("default", ...) if isinstance(schema, Mapping) else ...
    return f"{written} = {repr(default) if default is None or isinstance(default, str | int | float) else '...'}"


def _kind(schema: Any) -> str:
    """A JSON schema as an annotation; what has no short one is ``Any``: the tool's own schema says it whole."""
    if not isinstance(schema, Mapping):
        return "Any"
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list):
        return f"Literal[{', '.join(map(repr, choices))}]" if 0 < len(choices) <= _MOST_CHOICES else "Any"
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _either(map(_kind, schema[key]))
    match schema.get("type"):
        case list(kinds):
            return _either(_kind({**schema, "type": kind}) for kind in kinds)
        case "array":
            return f"list[{_kind(schema['items'])}]" if "items" in schema else "list"
        case str(kind):
            return _KINDS.get(kind, "Any")
        case _:
            return "dict" if "$ref" in schema else "Any"


def _either(kinds: Any) -> str:
    found = list(dict.fromkeys(kinds))
    return "Any" if not found or "Any" in found else " | ".join(found)
