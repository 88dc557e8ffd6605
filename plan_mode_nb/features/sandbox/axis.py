"""The sandbox mode: what the agent's tools may touch. An axis of its own; it knows no tool and no other axis.

Code in the kernel process cannot be confined (an audit hook stopped ``open`` and missed ``os.open``, ctypes and sqlite3), so outside
``danger-full-access`` an unconfined run needs an approval, each one. Nothing is called a sandbox here that is not one.
"""

from __future__ import annotations

from typing import Final, Literal

from plan_mode_nb.agent.axis import Axis
from plan_mode_nb.agent.permission import Allowed, UnconfinedRun, Verdict, verdict_of
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.policies import SANDBOX_MODE
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]
_KERNEL: Final = "Code in the kernel process cannot be confined, so each such call needs an approval."
AXIS: Final[Axis[SandboxMode]] = Axis(
    command="sandbox",
    title="Sandbox mode",
    type="sandbox/mode",
    key="mode",
    fold=SANDBOX_MODE,
    meanings={
        "read-only": f"Tools that can be confined may write nothing. {_KERNEL}",
        "workspace-write": f"Tools that can be confined may write in the workspace only. {_KERNEL}",
        "danger-full-access": "Nothing is confined, and code runs in the kernel process without an approval.",
    },
    default="workspace-write",
    strictest="read-only",
)


def _owed(session: Session) -> list[Draft]:
    """Full access that was granted to another kernel is not granted to this one: a notebook may come from anybody."""
    return [draft("sandbox/mode", {"mode": AXIS.default})] if AXIS.value(session) == "danger-full-access" else []


def install(seams: Seams) -> Undo:
    """Check every unconfined run, and add the ``sandbox`` command where the composition has commands.

    Raises:
        ValueError: a name is taken, so the axis is installed already; nothing stays registered.
    """

    async def check(run: UnconfinedRun) -> Verdict:
        mode = AXIS.in_force(run.agent)
        match mode:
            case "danger-full-access":
                return Allowed()
            case "read-only" | "workspace-write":
                reason = f"{run.reason}, and the sandbox mode is {mode}"
                approving = seams.approvals.decide(run.agent, run.call.name, run.preview, reason=reason, call_id=run.call.call_id)
                return verdict_of(await approving, run.call.name)

    return AXIS.install(
        seams, lambda: seams.permissions.register("sandbox mode", check), lambda: seams.reopening.register("sandbox mode", _owed)
    )
