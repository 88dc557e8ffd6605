"""What the agent's Python prints and displays, without secrets, before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plan_mode_nb.agent.redact import Redactions
from plan_mode_nb.hosts.front_end import Recorded
from plan_mode_nb.hosts.kernel.recorder import Display, Recording, Status

_TEXT: Final = ("text/", "application/json", "application/javascript", "application/vnd.", "image/svg+xml")
"""Kinds that hold words. The others are bytes as base64, in which a pattern could only match by chance."""


class Redacted(Struct, frozen=True):
    """Satisfies Recorded."""

    status: Status
    text: str
    displays: Sequence[Display]


def redacted(show: Callable[[str, Recorded | None], None], redactions: Redactions) -> Callable[[str, Recording | None], None]:
    """``show``, given recordings without secrets. While code runs, an end of its text that may become part of one waits."""

    def watch(call_id: str, recording: Recording | None) -> None:
        if recording is None:
            show(call_id, None)
            return
        text, running = recording.text, recording.status == "running"
        seen = text[: redactions.settled(text)] if running else text
        show(call_id, Redacted(recording.status, redactions.text(seen), [_display(each, redactions) for each in recording.displays]))

    return watch


def _display(shown: Display, redactions: Redactions) -> Display:
    data = {mime: redactions.json(value) if mime.startswith(_TEXT) else value for mime, value in shown.data.items()}
    return replace(shown, data=data)
