"""The journals of this kernel's sessions: the sink that every append goes through before it counts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.hosts.kernel import sources
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.store.journal import Journal, journal_folder

_logger = logging.getLogger(__name__)


class Journals:
    """One journal for each session that is written to. ``make`` and ``sync`` are called on the agent thread."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._moved: Path | None = None
        self._journals: dict[str, Journal] = {}
        self._chosen: dict[str, int] = {}

    @property
    def notebook(self) -> Path | None:
        """The notebook's file, as far as this kernel knows it."""
        return self._moved or sources.notebook_path(self._shell)

    def make(self, name: str, session: Session, chosen: int, images: Callable[[], Mapping[str, bytes]]) -> Sink:
        """The sink of a session: its journal in this kernel. ``name``: the agent whose session it is; a child answers to none.

        ``chosen``: how often that name was sent to another session. Where that has just happened the journal is there at once, because the
        choice must outlive the kernel. ``images()``: those that no notebook holds yet, by sha256.
        """
        path = self.notebook
        notebook = None if path is None else str(path)
        is_child = session.header.origin is not UNSET
        before = self._journals.pop(session.id, None)
        if before is not None:
            before.close()  # its file is taken over by the new one, which holds no less
        journal = Journal(
            journal_folder(create=False),
            session.header,
            session.lines,
            kernel=kernel_id(self._shell),
            notebook=notebook,
            pid=os.getpid(),
            agent=None if is_child else name,
            chosen=0 if is_child else chosen,
            images=images,
        )
        self._journals[session.id] = journal
        if not is_child and chosen > self._chosen.setdefault(name, chosen):
            self._chosen[name] = chosen
            try:
                journal.keep()
            except StoreError as error:
                # The next event is refused with the same sentence; until then only the choice is at stake.
                _logger.warning("plan_mode_nb: that %s goes on with session %s is not kept yet: %s", name, session.id, error)
        return journal

    def moved(self, notebook: Path) -> None:
        """The notebook has another path now; the journals record it."""
        self._moved = notebook
        for journal in self._journals.values():
            journal.moved(str(notebook))

    def close(self) -> None:
        """Let the files go; they stay until their events are in the notebook."""
        for journal in self._journals.values():
            journal.close()


def kernel_id(shell: Any) -> str:
    """This kernel as the server knows it: its connection file is named ``kernel-<id>.json``. A restart keeps it."""
    if getattr(shell, "kernel", None) is None:
        return f"terminal-{os.getpid()}"
    from ipykernel.connect import get_connection_file

    try:
        return Path(get_connection_file()).stem.removeprefix("kernel-")
    except RuntimeError:
        return f"process-{os.getpid()}"
