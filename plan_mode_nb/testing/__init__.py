"""The public fakes and the contract suites: every seam's fake passes the same suite as the real thing.

The model server stands in :mod:`plan_mode_nb.testing.loopback`, apart, because it also runs as a program.
"""

from __future__ import annotations

from plan_mode_nb.models.script import call, fail, finish, hold, say, think, usage
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.model_contract import ModelContract
from plan_mode_nb.testing.nursery import MemoryNursery
from plan_mode_nb.testing.questions import QuestionProviderContract, ScriptedAnswers, dismiss, pick
from plan_mode_nb.testing.servers import ScriptedServer, ServerContract
from plan_mode_nb.testing.workbench import MemorySink, Workbench, counted_clock, counted_ids

__all__ = [
    "MemoryNursery",
    "MemorySink",
    "ModelContract",
    "QuestionProviderContract",
    "ScriptedAnswers",
    "ScriptedApprovals",
    "ScriptedModel",
    "ScriptedServer",
    "ServerContract",
    "Workbench",
    "call",
    "counted_clock",
    "counted_ids",
    "dismiss",
    "fail",
    "finish",
    "hold",
    "pick",
    "say",
    "think",
    "usage",
]
