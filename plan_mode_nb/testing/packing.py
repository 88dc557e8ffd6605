"""A log as deepseek-harness's writer stores it: runs of streamed chunks in packed rows. Its files are read here; ours are never packed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

MIN_RUN: Final = 3
"""Shorter runs stay one row an event."""
_TEXTS: Final = {"text-delta": "text-chunks", "reasoning-delta": "reasoning-chunks"}
_KEYS: Final = ({"type", "index", "text"}, {"type", "index", "id", "argumentsDelta"}, {"type", "index", "id", "name", "argumentsDelta"})
Row = dict[str, Any]


def packed(lines: Iterable[str], *, longest: int | None = None) -> list[str]:
    """The rows of these lines. ``longest``: members that a row may have, as a batch that was flushed early has fewer."""
    rows: list[str] = []
    run: list[Row] = []
    for line in lines:
        event = json.loads(line)
        if run and (len(run) == longest or _kind(event) != _kind(run[-1])):
            rows.extend(_flushed(run))
            run = []
        if _kind(event) is None:
            rows.append(line)
        else:
            run.append(event)
    return [*rows, *_flushed(run)]


def _kind(event: Row) -> tuple[Any, ...] | None:
    """What the members of a run have in common; None for an event that is not packed."""
    chunk = event["data"].get("chunk", {}) if event["type"] == "assistant/chunk" else {}
    if event.keys() != {"type", "seq", "time", "data"} or chunk.keys() not in _KEYS:
        return None
    return (event["data"]["turn"], event["data"]["step"], chunk["type"], chunk["index"], chunk.get("id"), chunk.get("name"))


def _flushed(run: list[Row]) -> list[str]:
    return [_text(event) for event in run] if len(run) < MIN_RUN else [_text(_row(run))]


def _row(run: list[Row]) -> Row:
    first = run[0]
    chunks = [event["data"]["chunk"] for event in run]
    gaps = [after["time"] - before["time"] for before, after in pairwise(run)]
    data = {"turn": first["data"]["turn"], "step": first["data"]["step"], "index": chunks[0]["index"], "dt": gaps}
    if chunks[0]["type"] in _TEXTS:
        data["texts"] = [chunk["text"] for chunk in chunks]
        return {"type": _TEXTS[chunks[0]["type"]], "seq0": first["seq"], "time0": first["time"], "data": data}
    data.update({key: chunks[0][key] for key in ("id", "name") if key in chunks[0]}, args=[chunk["argumentsDelta"] for chunk in chunks])
    return {"type": "tool-call-chunks", "seq0": first["seq"], "time0": first["time"], "data": data}


def _text(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
