"""Saved outputs against those of a replay, as nbval compares them: texts exactly, pictures and widgets not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from plan_mode_nb.document.outputs import EVENTS_MIME
from plan_mode_nb.replay.compare import short_diff

SKIPPED: Final = frozenset({"image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json", EVENTS_MIME})
Output = Mapping[str, Any]


def output_difference(saved: Sequence[Output], now: Sequence[Output], sanitize: Sequence[tuple[str, str]] = ()) -> str:
    """The first difference as a short diff, "" where there is none. Streams of one name count as one, as a person sees them."""
    before, after = (_comparable(outputs, sanitize) for outputs in (saved, now))
    for number, (old, new) in enumerate(zip(before, after, strict=False), start=1):
        for key in [*old, *(key for key in new if key not in old)]:
            if old.get(key) != new.get(key):
                return f"output {number}, {key}\n{short_diff(old.get(key, '(none)'), new.get(key, '(none)'))}"
    if len(before) != len(after):
        extra = (before[len(after) :] or after[len(before) :])[0]
        kept = "is missing now" if len(before) > len(after) else "was not there"
        return f"output {min(len(before), len(after)) + 1} {kept}\n{next(iter(extra.values()), '')}"
    return ""


def _comparable(outputs: Sequence[Output], sanitize: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    streams: dict[str, dict[str, str]] = {}
    for output in outputs:
        if output["output_type"] == "stream":
            name = output["name"]
            if name not in streams:
                streams[name] = {name: ""}
                found.append(streams[name])
            streams[name][name] += _text(output["text"])
        elif output["output_type"] == "error":
            found.append({"error": f"{output['ename']}: {output['evalue']}"})
        else:
            found.append({mime: _text(value) for mime, value in output["data"].items() if mime not in SKIPPED})
    return [{key: _clean(text, sanitize) for key, text in each.items()} for each in found]


def _text(value: Any) -> str:
    """A text, which in a file may be a list of lines; anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _clean(text: str, sanitize: Sequence[tuple[str, str]]) -> str:
    for pattern, replacement in sanitize:
        text = re.sub(pattern, replacement, text)
    return text
