"""What msgspec found wrong with a value, in the words of this log: which key, and what it must be."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from plan_mode_nb.exceptions import bounded

_FAULT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<key>.*)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_EXPECTED: Final = re.compile(r"Expected `(?P<kinds>[^`]*)`(?P<bound> .*?)?(?:, got `(?P<found>.*)`)?")
_INVALID: Final = re.compile(r"Invalid (?:enum )?value (?P<value>.*)", re.DOTALL)
_FROM_ZERO: Final = {" >= 0": ", 0 or more"}
_MUST: Final = {
    "int": "a safe integer",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_FOUND: Final = {**_MUST, "int": "a number", "float": "a number", "bool": "a boolean"}


def sentence(error: msgspec.ValidationError, whole: str) -> str:
    """A clause such as "`message.id` must be a string, not null"; bounded, as a value from outside is part of it.

    ``whole``: what to call the value itself, when no key of it is wrong.
    """
    found = _FAULT.fullmatch(str(error))
    what, where = (found["what"], found["where"]) if found else (str(error), None)
    key = f"`{where}`" if where else whole
    missing, unknown, invalid, expected = (pattern.fullmatch(what) for pattern in (_MISSING, _UNKNOWN, _INVALID, _EXPECTED))
    if missing:
        return f"`{'.'.join(filter(None, (where, missing['key'])))}` is missing"
    if unknown:
        return f"{key} may not have `{bounded(unknown['key'])}`"
    if invalid:
        return f"{key} may not be {bounded(invalid['value'])}"
    if not expected:
        return f"{key}: {bounded(what)}"
    kinds = " or ".join(_MUST.get(kind, kind) for kind in expected["kinds"].split(" | "))
    if expected["bound"]:
        kinds = "a string that is not empty" if expected["kinds"] == "str" else kinds + _FROM_ZERO.get(expected["bound"], "")
    return f"{key} must be {kinds}" + (f", not {_FOUND.get(expected['found'], expected['found'])}" if expected["found"] else "")
