"""What others may rely on: exported names and the event vocabulary, pinned. Changing one of these lists is a decision."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from plan_mode_nb.log import vocabulary

EXPORTED = {
    "plan_mode_nb": "__version__ load_ipython_extension unload_ipython_extension",
    "plan_mode_nb.plan": "PlanMode PlanModeConfig SetOutcome install resolve_config",
    "plan_mode_nb.testing": """
        MemoryNursery MemorySink ModelContract QuestionProviderContract ScriptedAnswers ScriptedApprovals
        ScriptedModel ScriptedServer ServerContract Workbench call counted_clock counted_ids dismiss fail finish hold pick say think usage
    """,
}
SURFACE = "assistant/message tool/result user/message"
OURS = "notebook/cell plan/selected question/answered question/asked"
THEIRS = """
    agent-preset/selected agent/inbox/spliced approval/asked approval/decided approval/policy assistant/chunk command/done command/run
    compaction/end compaction/prune compaction/start compaction/summary feedback/record goal/change hook/invoked hook/result llm/retry
    llm/retry-started permission/preset plan/mode request/context request/header sandbox/mode schedule/change session/end-seed session/title
    session/title-llm-request step/end step/start subagent/descriptor team/member team/message/delivered team/message/queued team/task
    todo/write tool-workflow/agent-end tool-workflow/agent-start tool-workflow/run-end tool-workflow/run-start tool/call tool/code-dispatch
    tool/code-dispatch-start turn/end turn/start web/deepseek-search-llm-request
"""
RETIRED = "mode/set request/header-delta"


def differences(module: ModuleType, pinned: str) -> list[str]:
    """How a module's exported names differ from the pinned ones, and names that it exports but does not have."""
    exported = list(module.__all__)
    missing = [f"{name} is exported but not there" for name in exported if not hasattr(module, name)]
    if sorted(exported) != exported:
        missing.append("__all__ is not in order")
    changed = set(exported) ^ set(pinned.split())
    return missing + [f"{name} is {'new' if name in exported else 'gone'}" for name in sorted(changed)]


@pytest.mark.parametrize("name", EXPORTED)
def test_the_exported_names_are_the_pinned_ones(name: str) -> None:
    """Of the package, of the plugin and of the public fakes."""
    assert differences(importlib.import_module(name), EXPORTED[name]) == []


def test_a_changed_export_is_noticed() -> None:
    """Added, removed, renamed, promised but absent, out of order."""
    module = ModuleType("made_up")
    module.a, module.b = 1, 2  # type: ignore[attr-defined]
    module.__all__ = ["a", "b"]  # type: ignore[attr-defined]
    assert differences(module, "a b") == []
    assert differences(module, "a") == ["b is new"]
    assert differences(module, "a b c") == ["c is gone"]
    module.__all__ = ["b", "a", "c"]  # type: ignore[attr-defined]
    assert differences(module, "a b c") == ["c is exported but not there", "__all__ is not in order"]


def test_the_vocabulary_is_the_pinned_one() -> None:
    """The types belong to the build: a log that holds another is refused, and a type that goes makes old logs unreadable."""
    assert sorted(vocabulary.SURFACE) == SURFACE.split()
    assert sorted(vocabulary.OURS) == OURS.split()
    assert sorted(vocabulary.KNOWN) == sorted([*SURFACE.split(), *OURS.split(), *THEIRS.split()])
    assert sorted(vocabulary.RETIRED) == RETIRED.split()
    assert not vocabulary.RETIRED & vocabulary.KNOWN


def test_every_type_of_ours_is_written_ignorable_and_no_other_is() -> None:
    """So that a reader that does not know it may skip it, and none skips what it must know."""
    for type in vocabulary.KNOWN:
        assert (vocabulary.draft(type, {}).ignorable is True) is (type in vocabulary.OURS)
