"""Recording a notebook again: its cells run live, and the person is the one of the last recording. Switched on by the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.questions import QuestionRequest, Reply
from plan_mode_nb.exceptions import ConfigError, ReplayError
from plan_mode_nb.hosts.front_end import People
from plan_mode_nb.hosts.kernel import sources
from plan_mode_nb.hosts.kernel.led import NotLed
from plan_mode_nb.hosts.kernel.refusals import one_line
from plan_mode_nb.hosts.kernel.strict import read
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.replay.answers import RecordedAnswers, RecordedApprovals
from plan_mode_nb.replay.environment import MODE
from plan_mode_nb.replay.matching import Matching

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks to record again."""
    return environ.get(MODE) == "record"


class RecordedPeople:
    """Satisfies People. ``missing``: what was asked beyond the recording, one sentence each."""

    def __init__(self, matching: Matching) -> None:
        # Whether or not its cells still fit: that they do not is a reason to record again.
        # What a session was forked with was answered in the one before it.
        recorded = [*matching.sessions.values(), *matching.children.values()]
        events = [event for each in recorded for event in each.events[each.stored.header.seed_length or 0 :]]
        events.sort(key=lambda event: event.time)
        self._answers, self._approvals = RecordedAnswers(events), RecordedApprovals(events)
        self.missing: list[str] = []

    async def ask(self, request: QuestionRequest) -> Reply:
        """The next recorded reply."""
        reply = await self._answers.ask(request)
        if reply.outcome == "unavailable":
            self.missing.append(reply.reason)
        return reply

    async def decide(self, request: ApprovalRequest) -> Decided:
        """The next recorded decision."""
        decided = await self._approvals.decide(request)
        if decided.outcome == "unavailable":
            self.missing.append(f"the recording has no decision for this call of {request.tool}")
        return decided


class Rerecording(NotLed):
    """As if nobody led, but for who answers; a question that the recording cannot answer fails its cell."""

    def __init__(self, host: KernelHost) -> None:
        """Read the last recording.

        Raises:
            ConfigError, StoreError, FormatError: there is none that can be read.
        """
        super().__init__(host)
        path = sources.notebook_path(host.shell)
        if path is None:
            raise ConfigError(f"{MODE} asks to record again, but {sources.NOTEBOOK_VARIABLE} names no notebook; give its path there")
        self._people = RecordedPeople(read(path)[1])

    @property
    def people(self) -> People:
        """The recorded ones."""
        return self._people

    def done(self, agent: LoopAgent) -> None:
        """Fail where an answer was missing.

        Raises:
            ReplayError: says what was asked, and what to do.
        """
        missing, self._people.missing = self._people.missing, []
        if missing:
            raise one_line(ReplayError(f"{missing[0]}: run this notebook in Jupyter and answer there")) from None
