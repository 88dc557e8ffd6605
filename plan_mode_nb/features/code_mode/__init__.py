"""Code mode: one program in place of many calls. Its tools are the agent's, under the same limits, logged and reviewed alike."""

from plan_mode_nb.features.code_mode.tool import install

__all__ = ["install"]
