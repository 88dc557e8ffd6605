"""The only module that names plugins. A composition is data: a list of plugins, each one line; taking a line out takes the plugin out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plan_mode_nb import plan
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.agent.shell import Shell
from plan_mode_nb.features import approval_policy, restart, retry, sandbox, todo
from plan_mode_nb.features.tools import files, kernel

INSTRUCTIONS = "agent:instructions"
INSTRUCTIONS_ORDER = 0
"""First: nothing in it changes within a session, so a provider's cache keeps it."""


@dataclass(frozen=True)
class Plugin:
    """A plugin's name, for messages, and how it is installed."""

    name: str
    install: Install


def notebook(
    plan_config: plan.PlanModeConfig,
    instructions: str,
    shell: Shell,
    root: Path,
    *,
    retries: retry.RetryPolicy = retry.STANDARD,
    sleep: retry.Sleep = asyncio.sleep,
) -> tuple[Plugin, ...]:
    """The composition of a notebook's agent.

    ``root``: the folder that relative paths of the file tools start from. ``sleep``: how a retry waits (a replay does not).
    """
    return (
        Plugin("instructions", lambda seams: seams.sections.register(INSTRUCTIONS, INSTRUCTIONS_ORDER, lambda context: instructions)),
        Plugin("python", lambda seams: kernel.install(seams, shell)),
        Plugin("files", lambda seams: files.install(seams, root)),
        Plugin("todo", todo.install),
        Plugin("restart", restart.install),
        Plugin("retry", lambda seams: retry.install(seams, retries, sleep=sleep)),
        Plugin("plan", lambda seams: plan.install(seams, plan_config)),
        Plugin("sandbox", sandbox.install),
        Plugin("approval", approval_policy.install),
    )


def compose(seams: Seams, plugins: Sequence[Plugin]) -> Undo:
    """Install all, in order; returns the undo of all. When one fails, those before it are taken out again and its error is raised."""
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        for plugin in plugins:
            undos.append(plugin.install(seams))
    except Exception:
        undo()
        raise
    return undo
