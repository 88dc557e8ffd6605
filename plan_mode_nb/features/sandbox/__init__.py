"""The sandbox mode: an axis of its own, and what makes it hold for the programs that tools start."""

from plan_mode_nb.features.sandbox.axis import AXIS, SandboxMode, install

__all__ = ["AXIS", "SandboxMode", "install"]
