"""deepseek-harness's packed rows: one storage row for a run of ``assistant/chunk`` events. Only its files hold them, never a log here.

``text-chunks`` and ``reasoning-chunks`` are ``{type, seq0, time0, data: {turn, step, index, dt, texts}}``; ``tool-call-chunks`` has ``id``,
``name?`` and ``args`` for ``texts``. Member k has seq ``seq0 + k`` and time ``time0 + sum(dt[:k])``. Strings are never joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from plan_mode_nb.log.codec import SAFE_INTEGER
from plan_mode_nb.log.events import Event

TAGS: Final = ("text-chunks", "reasoning-chunks", "tool-call-chunks")
_ENVELOPE = {"type", "seq0", "time0", "data"}
_TEXT = {"turn", "step", "index", "dt", "texts"}
_CALL = {"turn", "step", "index", "id", "dt", "args"}


class Malformed(ValueError):
    """A row with a packed tag that is not exactly one. It counts as a line that cannot be parsed."""


def is_packed(row: object) -> bool:
    """Whether a parsed row says that it is packed."""
    return isinstance(row, dict) and row.get("type") in TAGS


def expand(row: dict[str, Any]) -> list[Event]:
    """The events a packed row holds, in order.

    Raises:
        Malformed: the row is not exactly a packed row.
    """
    data = row["data"] if row.keys() == _ENVELOPE else None
    if not isinstance(data, dict):
        raise Malformed("its keys must be type, seq0, time0 and data")
    seq, time = row["seq0"], row["time0"]
    if not _is_safe(seq) or seq < 0 or not _is_safe(time):
        raise Malformed("`seq0` and `time0` must be safe integers")
    events = []
    for chunk, gap in _members(row["type"], data):
        time += gap
        if not _is_safe(seq) or not _is_safe(time):
            raise Malformed("a member's seq or time is not a safe integer")
        events.append(Event("assistant/chunk", seq, time, {"turn": data["turn"], "step": data["step"], "chunk": chunk}))
        seq += 1
    return events


def _members(tag: str, data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Each member's chunk and its gap to the member before (0 for the first)."""
    is_call = tag == "tool-call-chunks"
    if (data.keys() - {"name"} if is_call else data.keys()) != (_CALL if is_call else _TEXT):
        raise Malformed("its `data` has a key too many or too few")
    if not all(_is_number(data[key]) for key in ("turn", "step", "index")):
        raise Malformed("`turn`, `step` and `index` must be numbers")
    texts, gaps = data["args" if is_call else "texts"], data["dt"]
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Malformed("it must hold a list of one or more strings")
    if not isinstance(gaps, list) or len(gaps) != len(texts) - 1 or not all(_is_safe(gap) for gap in gaps):
        raise Malformed("`dt` must hold one integer fewer than there are members")
    if not is_call:
        kind = "text-delta" if tag == "text-chunks" else "reasoning-delta"
        return zip(({"type": kind, "index": data["index"], "text": text} for text in texts), (0, *gaps), strict=True)
    identity: dict[str, Any] = {key: data[key] for key in ("id", "name") if key in data}
    if not all(isinstance(value, str) for value in identity.values()):
        raise Malformed("`id` and `name` must be strings")
    head: dict[str, Any] = {"type": "tool-call-delta", "index": data["index"], **identity}
    return zip(({**head, "argumentsDelta": text} for text in texts), (0, *gaps), strict=True)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_safe(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SAFE_INTEGER
