"""THE PLUGIN: plan mode. A soft, logged collaboration state: one prompt section while active, one tool, one command, a reviewed exit.

It never gates a tool and knows neither of the two axes that do. :func:`install` is all a composition needs; its undo leaves nothing behind.
"""

from __future__ import annotations

from plan_mode_nb.plan.config import PlanModeConfig, resolve_config
from plan_mode_nb.plan.controller import PlanMode, SetOutcome
from plan_mode_nb.plan.install import install

__all__ = ["PlanMode", "PlanModeConfig", "SetOutcome", "install", "resolve_config"]
