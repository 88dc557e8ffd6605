"""Messages and their blocks, in deepseek-harness's shapes: plain JSON objects, because the log keeps them unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

Block = dict[str, Any]
"""``{"type": "text" | "reasoning" | "image" | "tool-call" | "tool-result", …}``"""
Message = dict[str, Any]
"""``{"role", "content": [Block], "source", "id"}``"""

USER_SOURCE: dict[str, Any] = {"kind": "user"}
ATTACHMENT_ID = "sha256:"
"""How an ``attachmentId`` begins; the digest of the bytes follows, in hex. deepseek-harness reads no other form."""
_ATTACHMENT = "attachmentId"
_NAMED = re.compile(rf'"{_ATTACHMENT}":"(?:{ATTACHMENT_ID})?([0-9a-f]{{64}})"')
SUMMARY_LIMIT = 120
"""dsh's bound on a notice's summary, in characters."""


def text_block(text: str) -> Block:
    """A block of plain text."""
    return {"type": "text", "text": text}


def text_of(blocks: Sequence[Block]) -> str:
    """The text blocks' texts, joined by newlines."""
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def attachment_id(digest: str) -> str:
    """The ``attachmentId`` of bytes with this sha256."""
    return f"{ATTACHMENT_ID}{digest}"


def digest_of(attachment_id: str) -> str:
    """The sha256 that an ``attachmentId`` names, in hex: what attachments are kept under."""
    return attachment_id.removeprefix(ATTACHMENT_ID)


def digests_in(value: object) -> set[str]:
    """The digests of all attachments that a JSON value names, at any depth."""
    if isinstance(value, dict):
        own = value.get("attachmentId")
        return {digest_of(own)} if isinstance(own, str) else set().union(*map(digests_in, value.values()))
    return set().union(*map(digests_in, value)) if isinstance(value, list) else set()


def digests_in_lines(lines: Iterable[str]) -> set[str]:
    """The sha256 of every attachment that event lines name. In text that quotes such a name it is found as well."""
    return {digest for line in lines if _ATTACHMENT in line for digest in _NAMED.findall(line)}


def user_message(content: str | Sequence[Block], *, id: str, source: dict[str, Any] = USER_SOURCE) -> Message:
    """A message on the user's side: a person's, or a plugin's by its source."""
    blocks = [text_block(content)] if isinstance(content, str) else list(content)
    return {"content": blocks, "source": dict(source), "role": "user", "id": id}


def notice_source(plugin: str, summary: str) -> dict[str, Any]:
    """The source of a notice that a plugin adds to a step."""
    bounded = summary if len(summary) <= SUMMARY_LIMIT else summary[: SUMMARY_LIMIT - 1] + "…"
    return {"kind": "plugin", "plugin": plugin, "form": "notice", "summary": bounded}


def assistant_message(content: Sequence[Block], *, id: str, provider: str, model: str, replay_state: Any = None) -> Message:
    """What a model answered. ``replay_state``: provider-private data that the provider needs back unchanged."""
    source = {"kind": "model", "provider": provider, "model": model}
    if replay_state is not None:
        source["replayState"] = replay_state
    return {"role": "assistant", "content": list(content), "source": source, "id": id}


def tool_result_message(call_id: str, content: Sequence[Block], *, id: str, is_error: bool) -> Message:
    """The result of one call: a user-side message holding one ``tool-result`` block."""
    result = {"type": "tool-result", "toolCallId": call_id, "content": list(content), "isError": is_error}
    return {"source": {"kind": "tool", "callId": call_id}, "content": [result], "role": "user", "id": id}
