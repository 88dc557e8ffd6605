"""Plan mode for agents that live in notebooks.

``%load_ext plan_mode_nb`` in a notebook or in IPython; ``plan-mode-nb`` on the command line.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """IPython calls this for ``%load_ext plan_mode_nb``.

    Raises:
        UsageError: the configuration cannot work; one sentence that names the key.
    """
    from plan_mode_nb.hosts.loading import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """IPython calls this for ``%unload_ext plan_mode_nb``."""
    from plan_mode_nb.hosts.loading import unload

    unload(shell)
