"""The only module that names plugins. A composition is data: a list of plugins, each one line; taking a line out takes the plugin out."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from plan_mode_nb import plan
from plan_mode_nb.agent.confinement import Enforced
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.agent.shell import Shell
from plan_mode_nb.features import (
    approval_policy,
    ask_user,
    children,
    compaction,
    mcp,
    missing_tools,
    redaction,
    restart,
    retry,
    sandbox,
    todo,
)
from plan_mode_nb.features.code_mode import tool as run_code
from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.tools import bash, change, files, kernel
from plan_mode_nb.features.tools.cap import Results, spill_into
from plan_mode_nb.features.tools.closed import Closed
from plan_mode_nb.models.mcp import connect

INSTRUCTIONS = "agent:instructions"
INSTRUCTIONS_ORDER = 0
"""First: nothing in it changes within a session, so a provider's cache keeps it."""


class Plugin(Struct, frozen=True):
    """A plugin's name, for messages, and how it is installed."""

    name: str
    install: Install


class Surroundings(Struct, frozen=True):
    """What only a host knows of the place that the agent works in. Paths are absolute.

    ``network``: whether confined programs may use it. ``hidden``: folders that they see empty (connection files, journals). ``trusted``:
    folders that code or settings are loaded from outside the sandbox. ``results``: where results too long for the model are kept whole;
    None: nowhere. ``scratch``: the program that runs code as a cell would, in a process beside the kernel (its lines:
    ``features.tools.dialogue``); empty: there is none.
    """

    network: bool = False
    hidden: tuple[Path, ...] = ()
    trusted: tuple[Path, ...] = ()
    results: Path | None = None
    scratch: tuple[str, ...] = ()


def notebook(
    plan_config: plan.PlanModeConfig,
    instructions: str,
    shell: Shell,
    root: Path,
    *,
    surroundings: Surroundings = Surroundings(),
    retries: retry.RetryPolicy = retry.STANDARD,
    compacted_at: float = compaction.STANDARD.at,
    max_child_depth: int = children.MAX_DEPTH,
    sleep: retry.Sleep = asyncio.sleep,
) -> tuple[Plugin, ...]:
    """The composition of a notebook's agent.

    ``root``: the workspace: relative paths start there, and programs. ``compacted_at``: the share of what the model can read at which the
    conversation is compacted, 0 for never by itself. ``max_child_depth``: how deep tasks may be handed to child agents. ``sleep``: how a
    retry waits (a replay does not).
    """
    spill = None if surroundings.results is None else spill_into(surroundings.results)
    policy = compaction.CompactionPolicy(compacted_at, () if plan_config.model is None else (plan_config.model,))
    return (
        Plugin("redaction", redaction.install),
        Plugin("instructions", lambda seams: seams.sections.register(INSTRUCTIONS, INSTRUCTIONS_ORDER, lambda context: instructions)),
        Plugin("python", lambda seams: kernel.install(seams, shell, spill, scratch_program=surroundings.scratch)),
        Plugin("bash", lambda seams: bash.install(seams, spill)),
        Plugin("files", lambda seams: files.install(seams, root, spill, closed=_closed(root, surroundings))),
        Plugin("changes", lambda seams: change.install(seams, root)),
        Plugin("todo", todo.install),
        Plugin("questions", ask_user.install),
        Plugin("children", lambda seams: children.install(seams, max_child_depth)),
        Plugin("restart", restart.install),
        Plugin("missing tools", missing_tools.install),
        Plugin("retry", lambda seams: retry.install(seams, retries, sleep=sleep)),
        Plugin("compaction", lambda seams: compaction.install(seams, policy)),
        Plugin("plan", lambda seams: plan.install(seams, plan_config)),
        Plugin("sandbox", sandbox.install),
        Plugin("confinement", lambda seams: sandbox.confine(seams, _grounds(root, surroundings))),
        Plugin("approval", approval_policy.install),
    )


def in_programs(around: Surroundings) -> Plugin:
    """One more plugin for those who want it: the tools of a composition as functions of one program."""
    spill = None if around.results is None else spill_into(around.results)
    return Plugin("code mode", lambda seams: run_code.install(seams, spill))


def mcp_servers() -> mcp.Servers:
    """What keeps the MCP servers of a shell, none of them wanted yet. It outlives compositions."""
    return mcp.Servers(connect)


def with_servers(servers: mcp.Servers, around: Surroundings) -> Plugin:
    """The plugin that offers their tools."""
    spill = None if around.results is None else spill_into(around.results)
    return Plugin("MCP servers", lambda seams: servers.install(seams, Results(seams.redactions.text, spill)))


def _closed(root: Path, surroundings: Surroundings) -> Closed:
    """What the kernel's own process reads for nobody. A workspace that lies in such a folder is open all the same."""
    opened = (str(root.absolute()), *(() if surroundings.results is None else (str(surroundings.results),)))
    return Closed(tuple(str(folder) for folder in surroundings.hidden), opened)


def _grounds(root: Path, surroundings: Surroundings) -> sandbox.Grounds:
    """Where programs are confined. This package is trusted like the rest of the environment: it is what confines them."""
    package = Path(__file__).resolve().parent
    environment = (Path(sys.prefix), Path(sys.base_prefix), package)
    results = () if surroundings.results is None else (surroundings.results,)
    return sandbox.Grounds(
        root.absolute(),
        home=Path(os.path.expanduser("~")),
        network=surroundings.network,
        hidden=surroundings.hidden,
        shown=(*environment, *results),
        trusted=(Path(sys.prefix), package, *surroundings.trusted),
    )


def enforced(*, network: bool = False) -> Enforced:
    """What confines programs on this machine. Tries it out, once in the life of a process."""
    return backends.enforced(backends.detect(), network=network)


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
