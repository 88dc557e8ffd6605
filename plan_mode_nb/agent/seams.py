"""All seams of one composition, in one value. A plugin takes what it needs from here and returns its undo.

``commands`` and ``projections`` are None where a composition has none; a plugin must then do without.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from msgspec import Struct, field

from plan_mode_nb.agent.approval import Approvals
from plan_mode_nb.agent.commands import CommandRegistry
from plan_mode_nb.agent.compaction import Compaction
from plan_mode_nb.agent.confinement import Confinement
from plan_mode_nb.agent.delegation import Delegation
from plan_mode_nb.agent.mcp import Recordings
from plan_mode_nb.agent.permission import Permissions
from plan_mode_nb.agent.prestep import PreStepChain
from plan_mode_nb.agent.previews import Previews
from plan_mode_nb.agent.projections import Projections
from plan_mode_nb.agent.prompt import PromptContext, PromptSections
from plan_mode_nb.agent.questions import Questions
from plan_mode_nb.agent.redact import Redactions
from plan_mode_nb.agent.reopening import Reopening
from plan_mode_nb.agent.requests import RequestErrorChain
from plan_mode_nb.agent.tools import ToolRegistry


def random_id() -> str:
    """A new random id, 32 hex digits."""
    return uuid.uuid4().hex


class Seams(Struct):
    """Registries and protocols that the loop and the plugins meet in. ``new_id`` names messages, requests and commands."""

    new_id: Callable[[], str]
    sections: PromptSections
    tools: ToolRegistry
    pre_step: PreStepChain
    request_error: RequestErrorChain
    compaction: Compaction
    questions: Questions
    approvals: Approvals
    permissions: Permissions
    confinement: Confinement
    redactions: Redactions
    reopening: Reopening
    previews: Previews
    delegation: Delegation
    servers: Recordings
    commands: CommandRegistry | None
    projections: Projections | None
    attachments: dict[str, bytes] = field(default_factory=dict)
    """Image bytes by sha256: what messages name as ``attachmentId``."""

    @classmethod
    def create(cls, new_id: Callable[[], str] = random_id, *, commands: bool = True, projections: bool = True) -> Seams:
        """Empty seams. Create them on the agent thread's loop, or before any loop runs."""
        redactions = Redactions()
        return cls(
            new_id=new_id,
            sections=PromptSections(),
            tools=ToolRegistry(),
            pre_step=PreStepChain(),
            request_error=RequestErrorChain(),
            compaction=Compaction(),
            questions=Questions(new_id, redactions.text),
            approvals=Approvals(new_id),
            permissions=Permissions(),
            confinement=Confinement(),
            redactions=redactions,
            reopening=Reopening(),
            previews=Previews(),
            delegation=Delegation(),
            servers=Recordings(),
            commands=CommandRegistry(new_id, redactions.text) if commands else None,
            projections=Projections() if projections else None,
        )


Install = Callable[[Seams], Callable[[], None]]
"""What a plugin is to a composition: it takes the seams and returns its undo."""


def stable_length(system: str, seams: Seams, context: PromptContext) -> int:
    """How many characters of a logged system prompt the session does not change, as its sections stand now."""
    stable = seams.redactions.text(seams.sections.assemble_stable(context))
    return len(stable) if system.startswith(stable) else 0
