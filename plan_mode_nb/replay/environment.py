"""How a replay reaches a kernel: by the environment of its process, which no notebook can set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from plan_mode_nb.exceptions import ConfigError

Mode = Literal["strict", "headers", "record"]
MODE: Final = "PLAN_MODE_NB_REPLAY"
NOTEBOOK: Final = "PLAN_MODE_NB_NOTEBOOK"
SANITIZE: Final = "PLAN_MODE_NB_REPLAY_SANITIZE"
"""The path of a sanitize file, in nbval's format."""
TOOLS: Final = "PLAN_MODE_NB_REPLAY_TOOLS"
"""``all``: every tool runs again and is compared, not only those whose results later cells need."""
REPORT: Final = "PLAN_MODE_NB_REPLAY_REPORT"
"""A file to which the kernel appends what it has to say beside the outputs (see :mod:`plan_mode_nb.replay.report`)."""
_PAIR: Final = re.compile(r"^regex: (.*)$\n^replace: (.*)$", re.MULTILINE)


def sanitize_patterns(path: str | None) -> list[tuple[str, str]]:
    """The pairs of a sanitize file: a regular expression and what takes its place; none where no file is named.

    Raises:
        ConfigError: the file cannot be read, or holds an expression that is none.
    """
    if not path:
        return []
    try:
        found = _PAIR.findall(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the sanitize file {path} cannot be read ({error}); name another") from None
    for pattern, _ in found:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"the sanitize file {path} holds {pattern!r}, which is no regular expression: {error}") from None
    return [(pattern, replacement) for pattern, replacement in found]
