"""Selecting plan mode and applying the selection.

There is no live mirror: what is in force, what is pending and what the model was last told are folds of the session.
"""

from __future__ import annotations

import logging
from typing import Final, Literal, final

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import LogError, StoreError
from plan_mode_nb.folds.plan import PLAN, PLAN_PLUGIN, TOLD, PlanState
from plan_mode_nb.log.events import Draft, SessionId
from plan_mode_nb.log.messages import notice_source, user_message
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.plan.config import PlanModeConfig

SetOutcome = Literal["committed", "queued", "cancelled", "noop"]
NOTICES: Final = {
    True: "The user switched this session to plan mode.",
    False: "The user switched this session back to the default mode.",
}
_logger = logging.getLogger(__name__)


def selected(active: bool, *, narrate: bool) -> Draft:
    """A pending selection. ``narrate``: true for a person's choice, false for an approved exit (informational)."""
    return draft("plan/selected", {"active": active, "narrate": narrate})


@final
class PlanMode:
    """The controller of one composition: the section, the pre-step, and the two calls that everybody else uses."""

    def __init__(self, seams: Seams, config: PlanModeConfig) -> None:
        self._seams = seams
        self._config = config
        self._reported: set[SessionId] = set()

    @staticmethod
    def get(agent: Agent) -> PlanState:
        """What is in force, and what is awaited."""
        return agent.session.fold(PLAN)

    @staticmethod
    def set(agent: Agent, active: bool) -> SetOutcome:
        """Select a state for an agent. It never wakes the loop and never forces a step.

        Without an open turn a change is logged now (``committed``). In an open turn it is pending until the next accepted pre-step
        (``queued``). Selecting the logged value while the other is pending clears that (``cancelled``). Otherwise ``noop``.

        Raises:
            LogError, StoreError: the log refused or could not keep it; the selection was not made.
        """
        session = agent.session
        state = session.fold(PLAN)
        if active == state.active:
            if state.pending is None:
                return "noop"
            session.append(selected(active, narrate=True))
            return "cancelled"
        if session.place.turn is None:
            session.append(draft("plan/mode", {"active": active}))
            return "committed"
        if active == state.pending:
            return "noop"
        session.append(selected(active, narrate=True))
        return "queued"

    def section(self, context: PromptContext) -> str:
        """The prompt section: the configured text exactly when the fold says active."""
        return self._config.section if context.agent is not None and self.get(context.agent).active else ""

    async def pre_step(self, step: Step, call_next: CallNext) -> Decision:
        """Ask the rest; only when they accept, apply what is pending and tell the model if it was last told otherwise.

        A step that will not run, because nothing is left to say or the turn is being stopped, applies nothing: a notice is never the
        reason a step runs.
        """
        decision = await call_next(step)
        match decision:
            case Reject():
                return decision
            case Enter(messages) if not step.runs(messages):
                return decision
            case Enter(messages):
                self._apply(step.agent)
                if step.model is None and self.get(step.agent).active:
                    step.model = self._config.model
                notice = self._notice(step.agent)
                return decision if notice is None else Enter((*messages, notice))

    def _apply(self, agent: Agent) -> None:
        """Append the pending value. A failure never blocks the turn: the choice stays pending, and it is reported once a session."""
        pending = self.get(agent).pending
        if pending is None:
            return
        try:
            agent.session.append(draft("plan/mode", {"active": pending}))
        except (LogError, StoreError) as error:
            if agent.session.id not in self._reported:
                self._reported.add(agent.session.id)
                _logger.warning("plan mode stays %s for now, the switch could not be logged: %s", "off" if pending else "on", error)
        else:
            self._reported.discard(agent.session.id)

    def _notice(self, agent: Agent) -> dict[str, object] | None:
        state, told = self.get(agent), agent.session.fold(TOLD)
        if state.pending is not None or told is None or told == state.active:
            return None
        text = NOTICES[state.active]
        return user_message(text, id=self._seams.new_id(), source=notice_source(PLAN_PLUGIN, text))
