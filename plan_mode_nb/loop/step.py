"""One step: a request, its answer, and the calls that the answer asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Literal

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.answer import Answer, chunk_json
from plan_mode_nb.agent.model import Chunk, Finish, Model, ReasoningDelta, Request, TextDelta, UsageChunk
from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.agent.requests import FailedRequest, RequestErrorAction, failure_json
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.messages import Block, assistant_message
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.loop.calls import run_calls
from plan_mode_nb.loop.redacted import RedactedChunks
from plan_mode_nb.loop.request import derive_again

StepEnd = Literal["continue", "completed", "max-tokens"]


class StepContext(Struct, frozen=True):
    """Where a step stands. ``record_chunks``: log every chunk, not only usage and finish. ``is_stopped``: the turn is being stopped."""

    agent: Agent
    seams: Seams
    turn: int
    step: int
    record_chunks: bool
    is_stopped: Callable[[], bool]


async def run_step(context: StepContext, model: Model, request: Request) -> StepEnd:
    """Stream the answer, log it, run its calls.

    Raises:
        ModelError: the request failed for good; what its last attempt delivered is logged as an interrupted message.
        asyncio.CancelledError: the turn was stopped; the log is truthful up to here.
    """
    answer = await _answered(context, model, request)
    message = _log_answer(context, request, answer)
    if answer.finish is not None and answer.finish.kind == "max-tokens":
        return "max-tokens"
    calls = [block for block in message if block["type"] == "tool-call"]
    if not calls:
        return "completed"
    await run_calls(context.agent, context.seams, context.turn, context.step, calls, context.is_stopped)
    return "continue"


async def _answered(context: StepContext, model: Model, request: Request) -> Answer:
    """The answer of the first attempt that gives a whole one. An attempt that is made again leaves no message (dsh's rule)."""
    while True:
        answer, settled = Answer(), False
        try:
            await _stream(context, model, request, answer)
            settled = True
            return answer
        except ModelError as error:
            action = await _recover(context, request, error)
            settled = action != "fail"
            if not settled:
                raise
            if action == "derive":
                request = derive_again(request, context.agent.session)
        finally:
            if not settled:
                _log_answer(context, request, answer, interrupted=True)


async def _recover(context: StepContext, request: Request, error: ModelError) -> RequestErrorAction:
    """Log the failure and ask whether the request is made again.

    Raises:
        asyncio.CancelledError: the turn was stopped meanwhile.
    """
    seams, agent = context.seams, context.agent
    if context.is_stopped():
        raise asyncio.CancelledError
    failure = seams.redactions.json(failure_json(error))
    _append_chunk(context, {"type": "finish", "reason": {"kind": "error", "failure": failure}})
    failed = FailedRequest(agent, context.turn, context.step, request.config["provider"], error)
    action = await seams.request_error.ask(failed)
    if context.is_stopped():
        raise asyncio.CancelledError
    return action


async def _stream(context: StepContext, model: Model, request: Request, answer: Answer) -> None:
    """One attempt, into ``answer``.

    Raises:
        ModelError: it failed, or ended without saying that it is whole.
    """
    context.seams.previews.send(Preview(context.agent.session.id, "start"))
    redacted = RedactedChunks(context.seams.redactions)
    stream = model.stream(request)
    try:
        async for chunk in stream:
            answer.push(chunk)
            for seen in redacted.push(chunk):
                _note(context, seen)
                _preview(context, seen)
        if context.is_stopped():
            raise asyncio.CancelledError
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    if answer.finish is None:
        raise ModelError("the model's answer broke off; run the cell again", code="TRANSPORT")


def _note(context: StepContext, chunk: Chunk) -> None:
    if context.record_chunks or isinstance(chunk, UsageChunk | Finish):
        _append_chunk(context, chunk_json(chunk))


def _preview(context: StepContext, chunk: Chunk) -> None:
    previews, session = context.seams.previews, context.agent.session
    match chunk:
        case TextDelta(index, text):
            previews.send(Preview(session.id, "text", index, text))
        case ReasoningDelta(index, text):
            previews.send(Preview(session.id, "reasoning", index, text))
        case _:
            pass


def _append_chunk(context: StepContext, chunk: dict[str, Any]) -> None:
    context.agent.session.append(draft("assistant/chunk", {"turn": context.turn, "step": context.step, "chunk": chunk}))


def _log_answer(context: StepContext, request: Request, answer: Answer, *, interrupted: bool = False) -> list[Block]:
    """Append the ``assistant/message``; an interrupted answer that delivered nothing visible leaves none."""
    session, seams = context.agent.session, context.seams
    said = answer.delivered() if interrupted else answer.blocks()
    blocks = seams.redactions.blocks(said)
    if interrupted and not blocks:
        return []
    config = request.config
    # A provider checks its signatures against its own words: with words that were redacted it would refuse them.
    replay_state = None if answer.finish is None or blocks != said else answer.finish.replay_state
    message = assistant_message(blocks, id=seams.new_id(), provider=config["provider"], model=config["model"], replay_state=replay_state)
    data: dict[str, Any] = {"turn": context.turn, "step": context.step, "message": message}
    if answer.usage is not None:
        data["usage"] = answer.usage
    if interrupted:
        data["interrupted"] = True
    session.append(surface("assistant/message", data, sources=_chunk_seqs(context)))
    return blocks


def _chunk_seqs(context: StepContext) -> list[int]:
    """The seqs of the last attempt's chunks: they follow the request or the retry, so looking back stops there."""
    events, seqs = context.agent.session.events, []
    for event in reversed(events):
        if event.type == "assistant/chunk":
            seqs.append(event.seq)
        elif event.type in ("request/header", "request/context", "step/start", "user/message", "llm/retry-started"):
            break
    return seqs[::-1]
