"""What ``doctor`` found, as lines."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Finding(Struct, frozen=True):
    """One line. ``fix``: ``text`` says what to do; ``ok``: nothing need be done."""

    mark: Literal["ok", "fix"]
    what: str
    text: str


def ok(what: str, text: str) -> Finding:
    """Nothing need be done."""
    return Finding("ok", what, text)


def fix(what: str, text: str) -> Finding:
    """Something is missing or wrong; the text says what to do."""
    return Finding("fix", what, text)


def line(finding: Finding) -> str:
    """A finding for people, on one line."""
    from plan_mode_nb.plan.visible import visible_line

    return f"{finding.mark:<4} {finding.what:<17} {visible_line(finding.text)}"
