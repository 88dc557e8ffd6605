"""The request that asks for a summary, what may come of it, and the message that then stands for the summarized span.

The request is the conversation's own: its system prompt and tools as the last request had them, the messages of the span unchanged, and
one more message that asks. So a provider's cache has all of it but the last message, and everything but that message's fixed text is a
function of the log. The summary itself costs that cache: the next request agrees with the one before only as far as the first message.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.answer import Answer
from plan_mode_nb.agent.compaction import COMPACT
from plan_mode_nb.agent.model import Model, Request
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams, stable_length
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.folds.header import HEADER
from plan_mode_nb.folds.history import message_of
from plan_mode_nb.folds.tokens import estimate_message
from plan_mode_nb.log.messages import Block, Message, text_block, user_message

OPEN: Final = "<compacted-summary>"
CLOSE: Final = "</compacted-summary>"
"""deepseek-harness's: a session may go on there, and its model then knows what it reads."""

INSTRUCTION: Final = f"""\
Stop here for a moment. The conversation above is about to be replaced by a summary, so that there is room to go on, and you write that \
summary now. Whoever goes on from it sees nothing else of what stands above, so everything that is still needed has to be in it.

Write it in English, as terse bullets under exactly these headings, in this order; under a heading that has nothing, write "(none)":

## What the user wants
The goals as they stand now, corrections and preferences included; where the wording matters, the user's own words in quotation marks.
## What was decided
Decisions with their reasons, answers to questions, limits that the user set, the state of a plan and which of its steps are done.
## The notebook
Variables, functions and imports that exist in the kernel and what they hold (shape, columns, units); figures and files that were made.
## Files
Each path that matters, what is in it, and what was changed.
## What went wrong
Errors word for word, what was tried, and what helped.
## Where the work stands
What was being done last, and with what result; numbers and findings that were reported.
## What comes next
What is still to be done, in order, and what waits for the user.

Keep names, paths, commands, code, numbers and error messages exactly as they are. Leave out pleasantries and whatever was overtaken. If a \
{OPEN} stands above, it is an earlier summary: carry over what still holds, and drop the rest. Do not call a tool, do not go on with the \
work, and do not mention this request: answer with the summary alone."""
WISHES: Final = "The user asks in particular of this summary:"

PREAMBLE: Final = (
    "The conversation up to here was long and was replaced by this summary of it. Take what it says as having happened, and go on from the "
    "messages that follow, without repeating it and without remarking on it."
)


class Summary(Struct, frozen=True):
    """``blocks``: its text; ``raw``: all that the model answered; ``config``: of the request; ``usage``: as told, dsh's object."""

    blocks: list[Block]
    raw: list[Block]
    config: dict[str, Any]
    usage: dict[str, int] | None


def summary_request(agent: Agent, seams: Seams, model: Model, seqs: Sequence[int], words: str) -> Request:
    """The request for a summary of these events. ``words``: what a person asks of it, "" for nothing in particular."""
    session = agent.session
    header = session.fold(HEADER) or {}
    messages = [message for message in (message_of(session.events[seq]) for seq in seqs) if message is not None]
    asked = INSTRUCTION if not words else f"{INSTRUCTION}\n\n{WISHES}\n{words}"
    system = header.get("system", "")
    return Request(
        config=dict(model.config),
        system=system,
        tools=header.get("tools", []),
        messages=[*messages, user_message(asked, id=seams.new_id(), source={"kind": "plugin", "plugin": COMPACT})],
        images=seams.attachments,
        stable=stable_length(system, seams, PromptContext(agent)),
    )


async def summarized(model: Model, request: Request, seams: Seams) -> Summary:
    """The summary that the model gives. Nothing of it is shown before it is whole.

    Raises:
        ModelError: the request failed, or what came is no summary; one sentence.
    """
    answer = Answer()
    stream = model.stream(request)
    try:
        async for chunk in stream:
            answer.push(chunk)
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    if answer.finish is None:
        raise ModelError("the model's summary broke off", code="TRANSPORT")
    if answer.finish.kind == "max-tokens":
        raise ModelError("the summary was cut off at the model's token limit (PlanAgent.max_tokens, where it is set)", code="MAX_TOKENS")
    raw = seams.redactions.blocks(answer.blocks())
    if any(block["type"] == "tool-call" for block in raw):
        raise ModelError("the model called a tool instead of writing a summary", code="BAD_SUMMARY")
    blocks = [block for block in raw if block["type"] == "text" and block["text"].strip()]
    if not blocks:
        raise ModelError("the model's summary was empty", code="BAD_SUMMARY")
    return Summary(blocks, raw, dict(request.config), answer.usage)


def checkpoint(summary: Sequence[Block], kept: Sequence[str], source: dict[str, Any], *, id: str) -> Message:
    """The message that stands for the span: the summary in its frame, then what stays word for word."""
    framed = [text_block(f"{PREAMBLE}\n\n{OPEN}"), *summary, text_block(CLOSE)]
    return user_message([*framed, *map(text_block, kept)], id=id, source={"kind": "plugin", "plugin": COMPACT, **source})


FRAME: Final = estimate_message(checkpoint((), (), {}, id=""))
"""Tokens of the message without a summary: a span that has no more cannot become shorter."""
