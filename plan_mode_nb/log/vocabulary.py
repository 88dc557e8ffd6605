"""The event types of this build. The vocabulary belongs to the build, not to which plugins are installed.

An unknown type refuses the whole log unless the event says ``ignorable`` (log.md); so a newer log is never half understood.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from plan_mode_nb.log.events import APPEND, Draft, Event, SurfaceOp

SURFACE: frozenset[str] = frozenset({"user/message", "assistant/message", "tool/result"})
"""The types the model sees. Only these may carry a surface operation, and they must."""

OURS: frozenset[str] = frozenset({"plan/selected", "question/asked", "question/answered", "notebook/cell"})
"""Beyond deepseek-harness; always written ``ignorable``, so its reader skips them."""

KNOWN: frozenset[str] = (
    OURS
    | SURFACE
    | frozenset(
        """
    agent-preset/selected agent/inbox/spliced approval/asked approval/decided approval/policy assistant/chunk
    command/done command/run compaction/end compaction/prune compaction/start compaction/summary feedback/record
    goal/change hook/invoked hook/result llm/retry llm/retry-started permission/preset plan/mode request/context
    request/header sandbox/mode schedule/change session/end-seed session/title session/title-llm-request step/end
    step/start subagent/descriptor team/member team/message/delivered team/message/queued team/task todo/write
    tool-workflow/agent-end tool-workflow/agent-start tool-workflow/run-end tool-workflow/run-start tool/call
    tool/code-dispatch tool/code-dispatch-start turn/end turn/start web/deepseek-search-llm-request
    """.split()
    )
)

CHUNK: Final = "assistant/chunk"
DELTA: Final = "delta"
"""The kind of a streamed piece of an answer: an ``assistant/chunk`` that no fold reads. Every other event's kind is its type."""
_PIECES: Final = frozenset({"text-delta", "reasoning-delta", "tool-call-delta", "block-start", "block-end"})

RETIRED: frozenset[str] = frozenset({"request/header-delta", "mode/set"})
"""Types of older logs that no build reads any more: refused with the reason."""


def kind_of(event: Event) -> str:
    """A checked event's type, or DELTA."""
    return DELTA if event.type == CHUNK and event.data["chunk"]["type"] in _PIECES else event.type


def draft(type: str, data: dict[str, Any]) -> Draft:
    """A log-only event. Ours are marked ``ignorable`` here, once, so that no caller can forget it."""
    return Draft(type, data, ignorable=True if type in OURS else UNSET)


def surface(type: str, data: dict[str, Any], *, op: SurfaceOp = APPEND, sources: list[int] | None = None) -> Draft:
    """An event of the surface. ``sources``: seqs of earlier events it was made from, in order."""
    return Draft(type, data, surface_op=op, source_event_seqs=UNSET if sources is None else sources)
