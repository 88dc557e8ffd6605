"""Which notebook cell runs now: what a turn or a command says it stands in."""

from __future__ import annotations

import hashlib
from typing import Any


class CurrentCell:
    """Follows the cell that a person runs. Code that the agent runs inside a turn is not one."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._source = ""
        self._cell_id: str | None = None
        self.nested = False
        shell.events.register("pre_run_cell", self._begin)

    def close(self) -> None:
        """Stop following."""
        self._shell.events.unregister("pre_run_cell", self._begin)

    def _begin(self, info: Any) -> None:
        if not self.nested:
            self._source = info.raw_cell or ""
            self._cell_id = getattr(info, "cell_id", None)

    @property
    def reference(self) -> dict[str, str]:
        """``{source: sha256 of the cell's source, cell?: its id}`` (log.md, ``notebook/cell``)."""
        reference = {"source": hashlib.sha256(self._source.encode("utf-8", "surrogatepass")).hexdigest()}
        return reference if self._cell_id is None else {**reference, "cell": self._cell_id}
