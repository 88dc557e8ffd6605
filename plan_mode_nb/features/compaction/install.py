"""Putting compaction into a composition: the command, the pre-step, and the listener to refused requests."""

from __future__ import annotations

import asyncio
import logging

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.commands import Command, CommandCall, CommandResult
from plan_mode_nb.agent.compaction import Question, Trigger
from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.requests import CallNext as AskNext
from plan_mode_nb.agent.requests import FailedRequest, RequestErrorAction
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import ConfigError, LogError, ModelError
from plan_mode_nb.features.compaction.policy import OVERFLOW, STANDARD, CompactionPolicy, due
from plan_mode_nb.features.compaction.transaction import Attempt, Compacted, compact
from plan_mode_nb.folds.header import HEADER

COMMAND = "compact"
_REFUSED = (ModelError, ConfigError, LogError)
"""Why an attempt may fail that leaves everything as it was, so that the turn can go on."""
_logger = logging.getLogger(__name__)


def install(seams: Seams, policy: CompactionPolicy = STANDARD) -> Undo:
    """Register everything; returns the undo.

    Raises:
        ValueError: the command's name is taken; nothing stays registered.
    """

    async def attempted(agent: Agent, trigger: Trigger) -> bool:
        """Whether the surface was compacted. A failure is in the log, and shown from there."""
        try:
            return await _compacted(seams, policy, Question(agent, trigger)) is not None
        except _REFUSED as error:
            _logger.info("session %s was not compacted: %s", agent.session.id, error)
            return False

    async def pre_step(step: Step, call_next: CallNext) -> Decision:
        decision = await call_next(step)
        match decision:
            case Enter(messages) if step.runs(messages):
                try:
                    await attempted(step.agent, "pressure")
                except asyncio.CancelledError:
                    # No model has heard what the step was to begin with: it waits again, and a stopped turn hands it back.
                    for message in step.messages:
                        step.agent.inbox.steer(message)
                    raise
            case Enter() | Reject():
                pass
        return decision

    async def refused(failed: FailedRequest, call_next: AskNext) -> RequestErrorAction:
        action = await call_next(failed)
        if action != "fail" or failed.error.code != OVERFLOW:
            return action
        return "derive" if await attempted(failed.agent, "overflow") else "fail"

    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        undos.append(seams.compaction.due.register(due(policy)))
        undos.append(seams.pre_step.register(pre_step))
        undos.append(seams.request_error.register(refused))
        if seams.commands is not None:
            undos.append(seams.commands.register(_command(seams, policy)))
    except ValueError:
        undo()
        raise
    return undo


def _command(seams: Seams, policy: CompactionPolicy) -> Command:
    """``compact [WORDS]``: now, however short the conversation is, between turns."""

    async def handle(call: CommandCall) -> CommandResult:
        agent = call.agent
        if agent.session.place.turn is not None:
            return CommandResult("error", "A turn is running: compact the conversation when its cell has ended.")
        words = seams.redactions.text(call.args.strip())
        try:
            done = await agent.maintain(lambda: _compacted(seams, policy, Question(agent, "asked"), call.id, words))
        except _REFUSED as error:
            return CommandResult("error", f"The conversation was not compacted and is as it was: {error}")
        return CommandResult("success", "There is nothing to compact yet." if done is None else said(done))

    return Command(COMMAND, "Replace the older part of the conversation by a summary", handle, hint="[WORDS]", magic=False)


async def _compacted(
    seams: Seams, policy: CompactionPolicy, question: Question, command: str | None = None, words: str = ""
) -> Compacted | None:
    """Compact what is due, or less of it where that fails and a shorter span is due then; None where nothing is.

    Raises:
        ModelError, ConfigError, LogError: nothing came of it; the surface is as it was.
    """
    span = await seams.compaction.due.ask(question)
    if span is None:
        return None
    while True:
        agent = question.agent
        try:
            return await compact(Attempt(agent, seams, _model(agent, policy), span, command, words))
        except ModelError as error:
            shorter = await seams.compaction.due.ask(Question(agent, "shorter", span, error))
            if shorter is None:
                raise
            span = shorter


def said(done: Compacted) -> str:
    """What a person is told."""
    messages = f"{done.messages} message{'' if done.messages == 1 else 's'}"
    return f"Compacted {messages} (about {done.tokens:,} tokens) into a summary of about {done.summary_tokens:,}."


def _model(agent: Agent, policy: CompactionPolicy) -> Model:
    """The model that answered last, whose cache has the conversation; the deployment's own where that one is none of its models.

    Raises:
        ConfigError, ModelError: it cannot be had.
    """
    own = agent.models(None)
    header = agent.session.fold(HEADER)
    if header is None or _is(own, header["config"]):
        return own
    others = (agent.models(name) for name in policy.models)
    return next((model for model in others if _is(model, header["config"])), own)


def _is(model: Model, config: dict[str, object]) -> bool:
    return all(model.config[key] == config[key] for key in ("provider", "model"))
