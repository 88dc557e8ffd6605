"""Logs to measure with: turns of one tool-calling step with streamed chunks, a tenth of the events messages."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from plan_mode_nb.document.document import StoredSession, one_session
from plan_mode_nb.log.codec import encode
from plan_mode_nb.log.events import Draft, Event
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.store.notebook import with_document
from plan_mode_nb.testing import logs

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
CHUNKS = 19
"""Makes a turn of 30 events, 3 of them messages."""


def one_turn(turn: int, chunks: int = CHUNKS) -> list[Draft]:
    """A turn whose step calls a tool. ``chunks``: streamed pieces of its answer that were logged."""
    call = f"c{turn}"
    asked = logs.call_block(call, "note", {"text": TEXT})
    pieces = [{"type": "text-delta", "index": 0, "text": f" word{index}"} for index in range(chunks)]
    return [
        logs.turn_start(turn),
        logs.step_start(turn, 1),
        logs.user(TEXT, id=f"u{turn}"),
        logs.request_header("change", system=TEXT),
        *(draft("assistant/chunk", {"turn": turn, "step": 1, "chunk": piece}) for piece in pieces),
        logs.usage_chunk(turn, 1, 1000, 50),
        logs.assistant(turn, 1, TEXT, asked, id=f"a{turn}", usage={"inputTokens": 1000, "outputTokens": 50}),
        logs.tool_call(turn, 1, call, "note", {"text": TEXT}),
        logs.tool_result(turn, 1, call, TEXT * 3),
        logs.plan_mode(turn % 2 == 0),
        logs.step_end(turn, 1),
        logs.turn_end(turn),
    ]


def closed_lines(events: int) -> list[str]:
    """The lines of a log of this many events, or a few less: whole turns. Nothing checks them before they are loaded."""
    turns = events // len(one_turn(1))
    drafts = itertools.chain.from_iterable(map(one_turn, range(1, turns + 1)))
    written = (
        Event(each.type, seq, logs.FIRST_TIME, each.data, each.surface_op, each.source_event_seqs) for seq, each in enumerate(drafts)
    )
    return list(map(encode, written))


def closed(events: int) -> Session:
    """A session of these lines."""
    return logs.new_session(lines=closed_lines(events))


def notebook_of(session: Session, path: Path) -> None:
    """Write a notebook that holds the session and nothing else, laid out as Jupyter does."""
    document = one_session(StoredSession(session.header, list(session.lines)), agent="main")
    notebook = {"cells": [], "metadata": with_document({}, document), "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
