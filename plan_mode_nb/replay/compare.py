"""Two logs of one conversation, event for event: what must be equal, and the first difference in words that a person can act on.

Ids are renamed by first appearance. ``time``, ``by``, the cell's id and the folder are not compared; everything else is, exactly.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct

from plan_mode_nb.agent.dispatch import INSIDE
from plan_mode_nb.log.events import Event

_MESSAGE_IDS: Final = ("id",)
GENERATED: Final[Mapping[str, tuple[str, ...]]] = {
    "user/message": _MESSAGE_IDS,
    "assistant/message": ("message.id",),
    "tool/result": ("message.id", "meta.child.session"),
    "agent/inbox/spliced": ("inserted.*.id",),
    "command/run": ("commandId",),
    "command/done": ("commandId",),
    "notebook/cell": ("command",),
    "question/asked": ("requestId",),
    "question/answered": ("requestId",),
    "approval/asked": ("id",),
    "approval/decided": ("id",),
    "llm/retry": ("retryId",),
    "llm/retry-started": ("retryId",),
    "compaction/start": ("compactionId",),
}
"""Where an event holds an id that this package made up. A model's own ids (of its calls) are compared as they are."""
IGNORED: Final[Mapping[str, tuple[str, ...]]] = {
    "question/answered": ("by",),
    "approval/decided": ("by",),
    "notebook/cell": ("cell",),
}
MARK: Final = {"replay": "recorded"}
"""The ``meta`` of a result that was taken from the recording though its tool ran again."""
REDACTED: Final = re.compile(r"\[redacted:[^\]\n]{1,200}\]")
_FOLDER: Final = "{folder}"
_CONTEXT: Final = 2
_MOST_LINES: Final = 24
_MOST_CHARS: Final = 400


class Difference(Struct, frozen=True):
    """``seq``: the event; ``where``: what differs, in words; ``recorded`` and ``now``: the two texts. ``drift``: only what the package or
    its configuration supplies differs (guidance, a tool's description), not what happened."""

    seq: int
    where: str
    recorded: str
    now: str
    drift: bool = False

    def __str__(self) -> str:
        return f"{self.where}\n{short_diff(self.recorded, self.now)}"


class Comparison:
    """Remembers which recorded id stands for which live one. ``recorded_folder`` and ``folder``: what paths in texts may begin with.

    ``sanitize``: pairs of a regular expression and its replacement, for results of tools (nbval's sanitize file).
    """

    def __init__(self, recorded_folder: str = "", folder: str = "", sanitize: Sequence[tuple[str, str]] = ()) -> None:
        self._folders = (recorded_folder.rstrip("/\\"), folder.rstrip("/\\"))
        self._sanitize = [(re.compile(pattern), replacement) for pattern, replacement in sanitize]
        self._to_live: dict[str, str] = {}
        self._to_recorded: dict[str, str] = {}

    def compare(self, recorded: Event, live: Event) -> Difference | None:
        """The first difference of two events at the same place; None when they are equal in all that counts."""
        if recorded.type != live.type:
            return Difference(live.seq, f"event {live.seq}", _line(recorded), _line(live))
        for name in ("surface_op", "source_event_seqs", "ignorable"):
            had, has = getattr(recorded, name), getattr(live, name)
            if had != has:
                where = f"event {live.seq} ({live.type}), {name}"
                return Difference(live.seq, where, "none" if had is UNSET else str(had), "none" if has is UNSET else str(has))
        is_marked = live.type in ("tool/result", INSIDE) and live.data.get("meta") == MARK
        datas = [_unmarked(each.data) if is_marked else each.data for each in (recorded, live)]
        found = self._value(datas[0], datas[1], live.type, "")
        if found is None:
            return None
        path, before, now = found
        return Difference(live.seq, f"event {live.seq} ({live.type}), {path or 'data'}", _shown(before), _shown(now))

    def same(self, recorded: Any, live: Any) -> tuple[str, Any, Any] | None:
        """The first difference of two JSON values that hold no id of ours but those already seen: its path and both values."""
        return self._value(recorded, live, "", "")

    def same_text(self, recorded: str, live: str) -> bool:
        """Whether two texts are equal: the folder left out, and a recorded ``[redacted:…]`` standing for whatever was there."""
        if recorded == live:
            return True
        before, now = self._placed(recorded, 0), self._placed(live, 1)
        if before == now:
            return True
        if not REDACTED.search(before):
            return False
        pattern = ".+?".join(re.escape(piece) for piece in REDACTED.split(before))
        return re.fullmatch(pattern, now, re.DOTALL) is not None

    def same_result(self, recorded: str, live: str) -> bool:
        """The same for the text of a tool that ran again, after the sanitize file."""
        return self.same_text(recorded, live) or self.same_text(self._clean(recorded), self._clean(live))

    def _clean(self, text: str) -> str:
        for pattern, replacement in self._sanitize:
            text = pattern.sub(replacement, text)
        return text

    def _placed(self, text: str, side: int) -> str:
        folder = self._folders[side]
        return text.replace(folder, _FOLDER) if len(folder) > 1 else text

    def _value(self, recorded: Any, live: Any, kind: str, path: str) -> tuple[str, Any, Any] | None:
        if isinstance(recorded, dict) and isinstance(live, dict):
            return self._objects(recorded, live, kind, path)
        if isinstance(recorded, list) and isinstance(live, list):
            for place, (before, now) in enumerate(zip(recorded, live, strict=False)):
                found = self._value(before, now, kind, f"{path}.{place}" if path else str(place))
                if found is not None:
                    return found
            return None if len(recorded) == len(live) else (f"{path}: {len(recorded)} entries, now {len(live)}", recorded, live)
        if isinstance(recorded, str) and isinstance(live, str):
            equal = self._renamed(recorded, live, _fits(path, GENERATED.get(kind, ()))) or self.same_text(recorded, live)
            return None if equal else (path, recorded, live)
        equal = type(recorded) is type(live) and recorded == live
        return None if equal else (path, recorded, live)

    def _objects(self, recorded: dict[str, Any], live: dict[str, Any], kind: str, path: str) -> tuple[str, Any, Any] | None:
        for key in [*recorded, *(key for key in live if key not in recorded)]:
            inner = f"{path}.{key}" if path else key
            if _fits(inner, IGNORED.get(kind, ())):
                continue
            if key not in recorded or key not in live:
                return (inner, recorded.get(key, "(absent)"), live.get(key, "(absent)"))
            found = self._value(recorded[key], live[key], kind, inner)
            if found is not None:
                return found
        return None

    def _renamed(self, recorded: str, live: str, is_new: bool) -> bool:
        """Whether a live id stands for a recorded one. ``is_new``: it may stand there for the first time."""
        known = self._to_live.get(recorded), self._to_recorded.get(live)
        if known == (live, recorded):
            return True
        if known == (None, None) and is_new:
            self._to_live[recorded], self._to_recorded[live] = live, recorded
            return True
        return False


def _unmarked(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "meta"}


def _fits(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path is one of these; ``*`` stands for a place in a list."""
    plain = re.sub(r"(?<=\.)\d+(?=\.)", "*", path)
    return path in patterns or plain in patterns


def _line(event: Event) -> str:
    return f"{event.type} {_shown(event.data)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def short_diff(recorded: str, now: str) -> str:
    """Two texts as a short diff; of long lines the part around the first difference."""
    before, after = recorded.splitlines() or [""], now.splitlines() or [""]
    if len(before) == len(after) == 1:
        before, after = _around(before[0], after[0])
    lines = [line for line in difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=_CONTEXT) if not line.startswith("@@")]
    lines = [line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…" for line in lines]
    return "\n".join(lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"])


def _around(before: str, after: str) -> tuple[list[str], list[str]]:
    if max(len(before), len(after)) <= _MOST_CHARS:
        return [before], [after]
    first = next((place for place, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start = max(0, first - _MOST_CHARS // 4)
    cut: Callable[[str], str] = lambda text: f"{'…' if start else ''}{text[start : start + _MOST_CHARS // 2]}"  # noqa: E731
    return [cut(before)], [cut(after)]
