"""An agent with the tools that change things, in a workspace of its own, really confined where this machine can."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.agent.approval import ApprovalOutcome
from plan_mode_nb.agent.confinement import Launch
from plan_mode_nb.features import approval_policy, redaction, sandbox
from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.sandbox.backends import Missing
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner
from plan_mode_nb.features.tools import bash, change
from plan_mode_nb.features.tools.cap import spill_into
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.workbench import Workbench

needs_a_sandbox = pytest.mark.skipif(
    sys.platform != "linux" or isinstance(backends.detect(), Missing), reason="nothing confines programs on this machine"
)


def beyond_private() -> Path:
    """A new folder that is in none of the sandbox's own: what is written there is really outside. Whoever asks removes it."""
    for candidate in ("/var/lib", "/opt", "/srv", str(Path.home())):
        if os.access(candidate, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="plan-mode-nb-test-", dir=candidate))
    pytest.skip("there is no folder outside /tmp that could be written")


@dataclass
class Hands:
    """What happened."""

    bench: Workbench
    approvals: ScriptedApprovals
    root: Path

    @property
    def results(self) -> list[tuple[str, str | None]]:
        """Text and error code of each call, in order."""
        return [(_text(event), event.data.get("error", {}).get("code")) for event in self.bench.events("tool/result")]

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.results]

    @property
    def decided(self) -> list[tuple[str, str]]:
        return [(event.data["outcome"], event.data["by"]) for event in self.bench.events("approval/decided")]


def _text(event: Event) -> str:
    text: str = event.data["message"]["content"][0]["content"][0]["text"]
    return text


def hands(root: Path, *calls: tuple[str, dict[str, Any]], **how: Any) -> Hands:
    """Run the calls in one turn, a step each. ``how``: as for `ready`."""
    made = ready(root, *calls, **how)
    asyncio.run(made.bench.ask("go"))
    return made


def ready(
    root: Path,
    *calls: tuple[str, dict[str, Any]],
    mode: str = "workspace-write",
    policy: str = "ask",
    answers: Sequence[ApprovalOutcome] = (),
    environ: dict[str, str] | None = None,
    wait: Callable[[], Any] | None = None,
    network: bool = False,
) -> Hands:
    """Everything, before the turn."""
    root.mkdir(exist_ok=True)
    approvals = ScriptedApprovals(answers, wait=wait)
    grounds = sandbox.Grounds(root, home=root.parent / "home", network=network, shown=(Path(sys.prefix), Path(change.__file__).parents[2]))
    known = {} if environ is None else environ
    bench = Workbench(
        *[call(name, arguments) for name, arguments in calls],
        say("done"),
        install=[
            lambda seams: redaction.install(seams, known),
            sandbox.install,
            approval_policy.install,
            lambda seams: seams.confinement.provide(SandboxConfiner(grounds)),
            lambda seams: seams.approvals.provide(approvals),
            lambda seams: bash.install(seams, spill_into(root.parent / "results")),
            lambda seams: change.install(seams, root),
        ],
    )
    bench.session.append(draft("sandbox/mode", {"mode": mode}), draft("approval/policy", {"policy": policy}))
    return Hands(bench, approvals, root)


def unlimited(argv: Sequence[str], root: Path) -> Launch:
    """A launch without limits."""
    return Launch(tuple(argv), {"PATH": "/usr/bin:/bin"}, str(root), "everything")
