"""An agent whose ``python`` tool has a real scratch process, confined where this machine can."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plan_mode_nb
from plan_mode_nb.agent.approval import ApprovalOutcome
from plan_mode_nb.features import approval_policy, redaction, sandbox
from plan_mode_nb.features.sandbox.backends import Backend, detect
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner
from plan_mode_nb.features.tools import kernel
from plan_mode_nb.hosts.kernel.surroundings import SCRATCH
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.shells import PlainShell
from plan_mode_nb.testing.workbench import Workbench


@dataclass
class Scratched:
    """What happened."""

    bench: Workbench
    shell: PlainShell
    approvals: ScriptedApprovals

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The result of each call, in order."""
        return [event.data["message"]["content"][0] for event in self.bench.events("tool/result")]

    @property
    def texts(self) -> list[str]:
        return [str(block["content"][0]["text"]) for block in self.blocks]

    @property
    def codes(self) -> list[str | None]:
        return [event.data.get("error", {}).get("code") for event in self.bench.events("tool/result")]

    def said(self, place: int = 0) -> str:
        """What code printed, without the line that says where it ran."""
        text, _, where = self.texts[place].rpartition("\n")
        assert where.startswith("[ran in "), self.texts[place]
        return text


def python(code: str, *variables: str, **more: Any) -> Any:
    """A call of the scratch process."""
    given = {"code": code, "where": "scratch", **({"variables": list(variables)} if variables else {}), **more}
    return call("python", json.dumps(given))


def ready(
    root: Path,
    *steps: Any,
    variables: dict[str, Any] | None = None,
    mode: str = "workspace-write",
    policy: str = "ask",
    answers: Sequence[ApprovalOutcome] = (),
    environ: dict[str, str] | None = None,
    found: Backend | None = None,
    program: Sequence[str] = SCRATCH,
) -> Scratched:
    """Everything, before the turn; a step for each of ``steps``. ``found``: what confines, in place of what this machine has."""
    root.mkdir(exist_ok=True)
    shell, approvals = PlainShell({} if variables is None else variables), ScriptedApprovals(answers)
    grounds = sandbox.Grounds(
        root, home=root.parent / "home", hidden=(root.parent / "runtime",), shown=(Path(sys.prefix), Path(plan_mode_nb.__file__).parent)
    )
    bench = Workbench(
        *steps,
        say("done"),
        install=[
            lambda seams: redaction.install(seams, environ or {}),
            sandbox.install,
            approval_policy.install,
            lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
            lambda seams: seams.confinement.provide(SandboxConfiner(grounds, detect=detect if found is None else lambda: found)),
            lambda seams: seams.approvals.provide(approvals),
            lambda seams: kernel.install(seams, shell, scratch_program=program),
        ],
    )
    bench.session.append(draft("sandbox/mode", {"mode": mode}), draft("approval/policy", {"policy": policy}))
    return Scratched(bench, shell, approvals)


def scratched(root: Path, *steps: Any, **how: Any) -> Scratched:
    """Run the steps in one turn."""
    made = ready(root, *steps, **how)
    asyncio.run(made.bench.ask("go"))
    return made


def processes_in(folder: Path) -> list[int]:
    """Processes that work in a folder. One that ends meanwhile is none."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/cwd") == str(folder):
                    found.append(int(entry))
            except OSError:
                continue
    return found


async def gone_from(folder: Path) -> bool:
    """Once no process works there."""
    async with asyncio.timeout(60):
        while processes_in(folder):
            await asyncio.sleep(0.01)
    return True
