"""A text that grows, printed as it comes."""

from __future__ import annotations

import sys
from collections.abc import Callable

from plan_mode_nb.plan.visible import may_hide, visible

Write = Callable[[str], object]


def to_terminal(text: str) -> None:
    """Write to whatever standard output is now, at once; what its encoding lacks is written as an escape."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


class Growing:
    """One text, never printed twice. Hiding characters are made visible.

    Whether such a character hides can depend on what follows it in its line, so a line that has one waits until it is complete.
    """

    def __init__(self, write: Write) -> None:
        self.text = ""
        self._write = write
        self._written = 0
        self._last = "\n"

    def add(self, text: str) -> None:
        """More of it."""
        self.text += text
        start = self.text.rfind("\n") + 1
        self._write_to(start if may_hide(self.text[start:]) else len(self.text))

    def end(self) -> None:
        """No more comes: print what waits, and end the last line."""
        self._write_to(len(self.text))
        if self._last != "\n":
            self._write("\n")
            self._last = "\n"

    def _write_to(self, end: int) -> None:
        if end <= self._written:
            return
        # The line that is open on the screen was written as it is, so its part of the visible text has the same length.
        start = self.text.rfind("\n", 0, self._written) + 1
        shown = visible(self.text[start:end])[self._written - start :].replace("\r\n", "\n")
        self._written = end
        if shown:
            self._write(shown)
            self._last = shown[-1]
