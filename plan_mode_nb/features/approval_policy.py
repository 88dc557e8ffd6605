"""The approval policy: whether a call that needs an approval may ask the person. An axis of its own; it knows no tool and no other axis."""

from __future__ import annotations

from typing import Final, Literal

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.axis import Axis
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.policies import APPROVAL_POLICY

ApprovalPolicy = Literal["ask", "never"]
NEVER: Final = "the approval policy of this session is `never`; the user can change it with %approval ask"
AXIS: Final[Axis[ApprovalPolicy]] = Axis(
    command="approval",
    title="Approval policy",
    type="approval/policy",
    key="policy",
    fold=APPROVAL_POLICY,
    meanings={
        "ask": "A call that needs an approval waits for your answer; where nobody can answer it is denied.",
        "never": "A call that needs an approval is denied without asking you.",
    },
    default="ask",
    strictest="never",
)


def policy(request: ApprovalRequest) -> Decided | None:
    """Under ``never`` every request is rejected before anybody is asked (deepseek-harness's rule); ``ask`` leaves it open."""
    match AXIS.in_force(request.agent):
        case "ask":
            return None
        case "never":
            return Decided("rejected", by="policy", reason=NEVER)


def install(seams: Seams) -> Undo:
    """Govern the approvals, and add the ``approval`` command where the composition has commands.

    Raises:
        ValueError: a name is taken, so the axis is installed already; nothing stays registered.
    """
    return AXIS.install(seams, lambda: seams.approvals.govern("approval policy", policy))
