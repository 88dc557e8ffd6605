"""What a replaying kernel says beside its outputs: lines of a file, each one JSON object. Whoever started the kernel reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct


class Note(Struct, frozen=True):
    """What was taken from the recording instead of being compared, one sentence."""

    text: str


class Drift(Struct, frozen=True):
    """A header that differs by drift alone: the event ``seq`` of a session, and the header of now."""

    session: str
    seq: int
    header: dict[str, Any]


def note_line(text: str) -> str:
    """The line of a note."""
    return json.dumps({"note": text}, ensure_ascii=False)


def drift_line(session: str, seq: int, header: dict[str, Any]) -> str:
    """The line of a drifted header."""
    return json.dumps({"drift": {"session": session, "seq": seq, "header": header}}, ensure_ascii=False)


def read_report(path: Path, start: int = 0) -> Iterator[Note | Drift]:
    """The lines from line ``start`` on, in order; a line that is still being written is left for the next reading."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True)[start:]:
        if line.endswith("\n"):
            value = json.loads(line)
            yield Note(value["note"]) if "note" in value else Drift(**value["drift"])
