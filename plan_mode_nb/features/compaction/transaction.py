"""One compaction: a span of the surface replaced by its summary, or left as it is; the log says which (deepseek-harness's events).

``compaction/start`` stands before the model is asked, so that an attempt that a dead process left is seen; ``compaction/summary``, the
message that replaces the span, and ``compaction/end`` are one append, so that nothing between two of them can be lost. An attempt that
failed or was stopped ends in a ``compaction/end`` that says why. One that a killed process left is over with the next ``session/end-seed``.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.compaction import STOPPED, Span
from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import InvariantError, ModelError, PlanModeError, StoreError
from plan_mode_nb.features.compaction.span import shadowed
from plan_mode_nb.features.compaction.summary import Summary, checkpoint, summarized, summary_request
from plan_mode_nb.folds.history import message_of
from plan_mode_nb.folds.tokens import MEASURE, estimate_message
from plan_mode_nb.log.events import Draft, Replace
from plan_mode_nb.log.messages import Message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface

_logger = logging.getLogger(__name__)


class Compacted(Struct, frozen=True):
    """``messages``: how many were replaced; ``tokens``: of them, and ``summary_tokens``: of what replaced them, both estimated."""

    messages: int
    tokens: int
    summary_tokens: int


class Attempt(Struct, frozen=True):
    """What is compacted for whom. ``command``: the id of the command that asked, None where nobody did; ``words``: what it asks."""

    agent: Agent
    seams: Seams
    model: Model
    span: Span
    command: str | None = None
    words: str = ""


async def compact(attempt: Attempt) -> Compacted:
    """Make the summary and put it in the span's place. The surface is as it was whenever this raises.

    Raises:
        ModelError, LogError: no summary came, or none that can be used; the log says why.
        StoreError: the log cannot be written.
        asyncio.CancelledError: it was stopped.
    """
    session, seams = attempt.agent.session, attempt.seams
    source = {"compactionId": seams.new_id(), **({} if attempt.command is None else {"sourceCommandId": attempt.command})}
    bracket = {**source, "turn": session.place.turn}
    start = session.append(draft("compaction/start", bracket))[0].seq
    try:
        seqs = shadowed(session, attempt.span)
        request = summary_request(attempt.agent, seams, attempt.model, seqs, attempt.words)
        summary = await summarized(attempt.model, request, seams)
        made, compacted = _replacement(attempt, summary, source, start, seqs)
        session.append(*made, draft("compaction/end", bracket))
    except BaseException as error:
        _end(session, {**bracket, "error": seams.redactions.text(reason_of(error))})
        raise
    return compacted


def reason_of(error: BaseException) -> str:
    """Why an attempt failed, as the log has it."""
    if isinstance(error, asyncio.CancelledError):
        return STOPPED
    return str(error) if isinstance(error, PlanModeError) else f"{type(error).__name__}: {error}"


def _replacement(
    attempt: Attempt, summary: Summary, source: dict[str, Any], start: int, seqs: list[int]
) -> tuple[tuple[Draft, Draft], Compacted]:
    """The log-only summary and the message that replaces the span.

    Raises:
        InvariantError: the span is another one now.
        ModelError: nothing would be won.
    """
    session, seams, span = attempt.agent.session, attempt.seams, attempt.span
    measure = session.fold(MEASURE)
    nodes = list(measure.nodes)
    if span.end not in nodes or nodes[: nodes.index(span.end) + 1] != seqs:
        raise InvariantError("the conversation changed while its summary was made")
    tokens = sum(measure.prices[: len(seqs)])
    staying = _messages(session, nodes[len(seqs) :])
    kept = [seams.redactions.text(text) for text in seams.compaction.keeps.texts(session, staying)]
    message = checkpoint(summary.blocks, kept, source, id=seams.new_id())
    new_tokens = estimate_message(message)
    if new_tokens >= tokens:
        raise ModelError(f"the summary would not be shorter (about {new_tokens:,} tokens for {tokens:,})", code="BAD_SUMMARY")
    config = summary.config
    said = {
        **source,
        "summary": summary.blocks,
        "rawOutput": summary.raw,
        "llmStreamCall": True,
        "shadowedRange": {"start": span.start, "end": span.end},
        "shadowedSeqs": seqs,
        "shadowedTokenCount": tokens,
        "provider": config["provider"],
        "model": config["model"],
        **({"maxTokens": config["maxTokens"]} if "maxTokens" in config else {}),
        **({} if summary.usage is None else {"usage": summary.usage}),
    }
    told = draft("compaction/summary", said)
    replacing = surface("user/message", message, op=Replace(span.start, span.end), sources=[start, len(session) + session.owed, *seqs])
    return (told, replacing), Compacted(len(seqs), tokens, new_tokens)


def _messages(session: Session, seqs: list[int]) -> list[Message]:
    return [message for message in (message_of(session.events[seq]) for seq in seqs) if message is not None]


def _end(session: Session, data: dict[str, Any]) -> None:
    """Say that the attempt is over. A log that cannot be written now has it ahead of its next event."""
    end = draft("compaction/end", data)
    try:
        session.append(end)
    except StoreError:
        _logger.warning("the end of compaction %s cannot be written yet", data["compactionId"], exc_info=True)
        session.owe([end], time=session.events[-1].time)
