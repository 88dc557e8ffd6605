"""Tracebacks of the agent's code as IPython formats them, without the lines of this package that stood in its way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plan_mode_nb.hosts.kernel.recorder import plain_text

_IN_THE_WAY: Final = tuple(
    str(Path("plan_mode_nb", "hosts", "kernel", name)) for name in ("interrupts.py", "user_code.py", "scratch_worker.py")
)
"""What raises an interrupt, and what refuses the keyboard, end on frames that say nothing about the code and name this machine's paths."""


def of_the_code(parts: Sequence[str]) -> list[str]:
    """``parts``: a traceback as IPython gives it to be shown, one part a frame."""
    return [part for part in parts if not _is_in_the_way(plain_text(part))]


def _is_in_the_way(part: str) -> bool:
    first = part.lstrip().partition("\n")[0]
    return first.startswith("File ") and any(name in first for name in _IN_THE_WAY)
