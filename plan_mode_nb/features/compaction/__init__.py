"""Compaction: the older part of a conversation replaced by a summary that the model writes, when asked or when room is short.

Everything stays in the log; the model sees the summary in the span's place, then the newest messages word for word. Plan mode, the approved
plan, todos and the axes are folds of the log, which a summary does not touch; what of them the model reads only in the span stays in front
of it word for word. Going back is a fork at an event before the summary.
"""

from __future__ import annotations

from plan_mode_nb.features.compaction.install import COMMAND, install
from plan_mode_nb.features.compaction.policy import STANDARD, CompactionPolicy

__all__ = ["COMMAND", "STANDARD", "CompactionPolicy", "install"]
