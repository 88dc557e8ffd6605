"""Child agents: a task handed over, a turn of its own under the parent's limits, and its last words as the result."""

from plan_mode_nb.features.children.tools import FORK, MAX_DEPTH, SPAWN, install

__all__ = ["FORK", "MAX_DEPTH", "SPAWN", "install"]
