"""Loading into an IPython shell: the one place that knows which front end a shell has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def load(shell: Any) -> None:
    """``%load_ext plan_mode_nb``, in a kernel or in a terminal. Loaded already: nothing is doubled.

    Raises:
        UsageError: the configuration cannot work; one sentence, and nothing of the extension stays.
    """
    from plan_mode_nb.hosts.kernel import extension
    from plan_mode_nb.hosts.kernel.host import KernelHost

    if getattr(shell, "kernel", None) is not None:
        from plan_mode_nb.hosts.kernel.front_end import CellFrontEnd

        extension.load(shell, CellFrontEnd, _leader(os.environ))
        return
    from plan_mode_nb.hosts.terminal.front_end import TerminalFrontEnd

    def terminal(host: KernelHost) -> TerminalFrontEnd:
        return TerminalFrontEnd(lambda: host.settings.agent.log_file)

    extension.load(shell, terminal)


def _leader(environ: Mapping[str, str]) -> Any:
    """Who leads the turns of a kernel, by the environment alone: what a notebook holds never switches a replay on."""
    from plan_mode_nb.replay.environment import MODE

    if MODE not in environ:
        return None
    from plan_mode_nb.hosts.kernel import rerecording, strict

    if strict.is_asked_for(environ):
        return strict.Strict
    return rerecording.Rerecording if rerecording.is_asked_for(environ) else None


def unload(shell: Any) -> None:
    """``%unload_ext plan_mode_nb``: nothing of the extension stays in the shell; the log stays where it is."""
    from plan_mode_nb.hosts.kernel import extension

    extension.unload(shell)
