"""The sandbox mode: an axis of its own, and what makes it hold for the programs that tools start."""

from plan_mode_nb.features.sandbox.axis import AXIS, SandboxMode, install
from plan_mode_nb.features.sandbox.confiner import confine
from plan_mode_nb.features.sandbox.profile import Grounds

__all__ = ["AXIS", "Grounds", "SandboxMode", "confine", "install"]
