"""How a tool's text becomes a result: storable, without secrets, and not longer than a limit.

In this order, because a secret that the cut splits would no longer be recognised as one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

_logger = logging.getLogger(__name__)
LIMIT: Final = 30_000
"""Characters of a result that the model sees at once."""
_NOTE_ROOM: Final = 400
Spill = Callable[[str], str]
"""Keeps a whole text somewhere and returns the path where the model finds it. Raises OSError when it cannot."""


def storable(text: str) -> str:
    """The text with every lone surrogate written out: the log is JSON in UTF-8 and could not keep it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cap_text(text: str, limit: int = LIMIT, spill: Spill | None = None) -> str:
    """The text, or its head and tail with a line between them that says how much was left out and where the whole is.

    The result has at most ``limit`` characters (a spill's path counts; a limit has room for the line from 800 on). Cuts fall on line ends
    where one is near.
    """
    if len(text) <= limit:
        return text
    where = _kept(text, spill)
    room = max(limit - _NOTE_ROOM - len(where), 2)
    head, tail = _head(text, room * 2 // 3), _tail(text, room // 3)
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[{left_out:,} of {len(text):,} characters left out here{where}]\n{tail}"


def _kept(text: str, spill: Spill | None) -> str:
    if spill is None:
        return ""
    try:
        return f"; the whole text is in {spill(text)}"
    except OSError as error:
        _logger.warning("a long result could not be kept in a file: %s", error)
        return "; the whole text could not be kept"


def _head(text: str, size: int) -> str:
    end = text.rfind("\n", size - size // 8, size)
    return text[: size if end < 0 else end]


def _tail(text: str, size: int) -> str:
    start = len(text) - size
    begin = text.find("\n", start, start + size // 8)
    return text[start if begin < 0 else begin + 1 :]


def spill_into(folder: Path) -> Spill:
    """A spill that keeps each text once, in a private file of ``folder`` named by its hash."""

    def spill(text: str) -> str:
        data = text.encode("utf-8")
        path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.txt"
        if not path.is_file():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(partial, path)
            except OSError:
                Path(partial).unlink(missing_ok=True)
                raise
        return str(path)

    return spill


class Results(Struct, frozen=True):
    """One composition's way to bring text into a result. ``redact`` takes secrets out."""

    redact: Callable[[str], str]
    spill: Spill | None = None
    limit: int = LIMIT

    def clean(self, text: str) -> str:
        """Storable and without secrets, uncut."""
        return self.redact(storable(text))

    def text(self, text: str) -> str:
        """Storable, without secrets, capped."""
        return cap_text(self.clean(text), self.limit, self.spill)
