"""Putting plan mode into a composition, and taking it out."""

from __future__ import annotations

from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.plan.command import plan_command
from plan_mode_nb.plan.config import PlanModeConfig
from plan_mode_nb.plan.controller import PlanMode
from plan_mode_nb.plan.exit_tool import ExitTool
from plan_mode_nb.plan.kept import kept_plan

SECTION = "plan:policy"
SECTION_ORDER = 500
"""Late: nothing before the section moves, so a provider's prefix cache keeps everything ahead of it."""


def install(seams: Seams, config: PlanModeConfig) -> Undo:
    """Register section, pre-step, tool, kept text, command and projection; the last two only where the composition has their registries.

    Returns the undo: open reviews then fail with "present it again", and everything is as before.

    Raises:
        ValueError: a name is taken, so plan mode is installed already; nothing stays registered.
    """
    controller, exit_tool = PlanMode(seams, config), ExitTool(seams)
    undos: list[Undo] = [exit_tool.close]
    undo = undo_all(undos)
    try:
        undos.append(seams.sections.register(SECTION, SECTION_ORDER, controller.section, changes=True))
        undos.append(seams.pre_step.register(controller.pre_step, "outermost"))
        undos.append(seams.tools.register(exit_tool.tool()))
        undos.append(seams.compaction.keeps.register("plan", kept_plan))
        if seams.commands is not None:
            undos.append(seams.commands.register(plan_command(seams)))
        if seams.projections is not None:
            undos.append(seams.projections.register("plan", PLAN))
    except ValueError:
        undo()
        raise
    return undo
