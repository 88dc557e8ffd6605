"""A tool from a plain function: the schema from its signature, strict arguments from the raw JSON.

msgspec does both, without the import cost of a validation framework: unknown keys, wrong kinds and missing arguments are refused with a
sentence, nothing is coerced (``"7"`` is not ``7``). Descriptions of arguments come from ``Annotated[..., msgspec.Meta(description=…)]``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from plan_mode_nb.agent.tools import Outcome, Presentation, Replayed, Tool, ToolCall, ToolError, ToolResult, text_result


def tool_from(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    replay: Replayed = "played",
    present_call: Callable[[str], Presentation | None] = lambda arguments: None,
    replay_call: Callable[[str], Replayed] | None = None,
) -> Tool:
    """Build a tool. The function's docstring is its description; a first parameter annotated ``ToolCall`` receives the call.

    The function may be a coroutine function and may return text, a ``ToolResult`` or an ``Outcome``.

    Raises:
        TypeError: a parameter has no annotation, or is positional-only or variadic; the function has no docstring.
    """
    tool_name = name or function.__name__
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())
    wants_call = bool(parameters) and hints.get(parameters[0].name) is ToolCall
    fields = [_field(tool_name, parameter, hints) for parameter in parameters[wants_call:]]
    description = inspect.getdoc(function)
    if not description:
        raise TypeError(f"the tool {tool_name} needs a docstring: it is what the model reads")
    struct = msgspec.defstruct(f"{tool_name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    decode = msgspec.json.Decoder(struct).decode
    names = [each[0] for each in fields]

    async def run(call: ToolCall) -> Outcome:
        try:
            arguments = decode(call.arguments.strip() or "{}")
        except msgspec.MsgspecError as error:
            raise ToolError(f"the arguments of {tool_name} are not right: {error}; send one JSON object", code="BAD_ARGUMENTS") from None
        values = {each: getattr(arguments, each) for each in names}
        result = function(call, **values) if wants_call else function(**values)
        return _outcome(await result if inspect.isawaitable(result) else result)

    return Tool(tool_name, description, _schema(struct), run, replay=replay, present_call=present_call, replay_call=replay_call)


def _field(tool: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> tuple[Any, ...]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or parameter.name not in hints:
        raise TypeError(f"the tool {tool}: parameter {parameter.name!r} needs an annotation and a name")
    annotated = (parameter.name, hints[parameter.name])
    return annotated if parameter.default is parameter.empty else (*annotated, parameter.default)


def _schema(struct: type) -> dict[str, Any]:
    """One JSON schema object without a top-level reference; nested shapes stay under ``$defs``."""
    (root,), shared = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    schema = dict(shared.pop(root["$ref"].rsplit("/", 1)[1]))
    schema.pop("title", None)
    schema["additionalProperties"] = False
    return {**schema, "$defs": shared} if shared else schema


def _outcome(value: Any) -> Outcome:
    if isinstance(value, Outcome):
        return value
    if isinstance(value, ToolResult):
        return Outcome(value)
    return Outcome(text_result("(no output)" if value is None else str(value)))
