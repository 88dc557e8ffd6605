"""Drift: the guidance or a tool's description that the installed package supplies is no longer the recorded one.

That is no difference in what happened. It is told apart, named by section or tool with both texts, and can be accepted offline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plan_mode_nb.replay.compare import Comparison, Difference

Header = Mapping[str, Any]


def header_difference(seq: int, recorded: Header, now: Header, sections: Mapping[str, str], comparison: Comparison) -> Difference | None:
    """How two headers differ; None when they do not. ``sections``: name -> text of what the live system prompt was assembled from.

    A difference in ``config`` is none of drift: a replay takes the recorded one.
    """
    return next(_differences(seq, recorded, now, sections, comparison), None)


def _differences(seq: int, recorded: Header, now: Header, sections: Mapping[str, str], comparison: Comparison) -> Iterator[Difference]:
    before, after = recorded.get("system", ""), now.get("system", "")
    if not comparison.same_text(before, after):
        yield _section(seq, before, sections, comparison)
    yield from _tools(seq, recorded.get("tools", []), now.get("tools", []), comparison)
    for key in ("config", "adapterDefaults"):
        if recorded.get(key) != now.get(key):
            yield Difference(seq, f"the request's {key}", _json(recorded.get(key)), _json(now.get(key)))


def _section(seq: int, recorded: str, sections: Mapping[str, str], comparison: Comparison) -> Difference:
    """The first section whose text the recorded prompt does not hold, and what the recorded prompt has in its place."""
    left = recorded
    changed: list[tuple[str, str]] = []
    for name, text in sections.items():
        at = left.find(text) if text else -1
        if at >= 0:
            left = f"{left[:at]}\0{left[at + len(text) :]}"
        elif text:
            changed.append((name, text))
    pieces = [piece.strip("\n") for piece in left.split("\0") if piece.strip("\n")]
    if not changed:
        return Difference(seq, "a section of the system prompt that nobody supplies now", "\n\n".join(pieces), "", drift=True)
    name, text = changed[0]
    # As many pieces as changed sections stand in the same order; otherwise all that is left belongs to the first.
    before = pieces[0] if len(pieces) == len(changed) else "\n\n".join(pieces)
    return Difference(seq, f"section {name} of the system prompt", before, text, drift=True)


def _tools(seq: int, recorded: Sequence[Header], now: Sequence[Header], comparison: Comparison) -> Iterator[Difference]:
    before, after = {tool["name"]: tool for tool in recorded}, {tool["name"]: tool for tool in now}
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in before or name not in after or comparison.same(before[name], after[name]) is not None:
            yield Difference(seq, f"tool {name}", _tool(before.get(name)), _tool(after.get(name)), drift=True)
    if list(before) != list(after):
        yield Difference(seq, "the order of the tools", ", ".join(before), ", ".join(after), drift=True)


def _tool(schema: Header | None) -> str:
    if schema is None:
        return "(no such tool)"
    return f"{schema.get('description', '')}\n{json.dumps(schema.get('parameters'), ensure_ascii=False, indent=1)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
