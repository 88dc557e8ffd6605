"""Loading into an IPython shell and leaving it without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plan_mode_nb.exceptions import PlanModeError

if TYPE_CHECKING:
    from plan_mode_nb.hosts.front_end import FrontEnd
    from plan_mode_nb.hosts.kernel.host import KernelHost
    from plan_mode_nb.hosts.kernel.led import Led

_ATTRIBUTE = "_plan_mode_nb"


def load(shell: Any, front_end: Callable[[KernelHost], FrontEnd], led: Callable[[KernelHost], Led] | None = None) -> None:
    """Make the shell's host, with the front end that ``front_end(host)`` makes. Loaded already: nothing is doubled.

    ``led(host)`` makes whoever leads its turns; None: nobody does.

    Raises:
        UsageError: the configuration cannot work; one sentence, and nothing of the extension stays.
    """
    from IPython.core.error import UsageError

    from plan_mode_nb.hosts.kernel.host import KernelHost
    from plan_mode_nb.hosts.kernel.magics import install_magics

    if hasattr(shell, _ATTRIBUTE):
        return
    try:
        host = KernelHost(shell, front_end) if led is None else KernelHost(shell, front_end, led)
    except PlanModeError as error:
        raise UsageError(str(error)) from None
    setattr(shell, _ATTRIBUTE, (host, install_magics(shell, host)))


def unload(shell: Any) -> None:
    """``%unload_ext plan_mode_nb``: magics, hooks, comm, thread and settings go; the log stays in the notebook."""
    loaded = getattr(shell, _ATTRIBUTE, None)
    if loaded is None:
        return
    delattr(shell, _ATTRIBUTE)
    host, undo_magics = loaded
    undo_magics()
    host.close()
