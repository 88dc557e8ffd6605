"""A compaction is one line that opens to its summary, in a turn's outputs, in a timeline and in a transcript."""

from __future__ import annotations

from typing import Any

import pytest
from html_audit import audit

from plan_mode_nb.log.events import Event, Replace
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.render.transcript import timeline, transcript
from plan_mode_nb.render.turn_view import SUMMARY, TurnView
from plan_mode_nb.testing import logs

BRACKET = {"compactionId": "c", "turn": 1}
HOSTILE = "## Rows\n- <script>alert(1)</script> and *names* \x1b[31m"
USAGE = {"inputTokens": 900, "outputTokens": 70, "cacheReadTokens": 100}


def told(*more: tuple[str, dict[str, Any]]) -> list[Event]:
    """A turn whose conversation is compacted, as far as ``more`` goes."""
    session = logs.new_session()
    session.append(logs.turn_start(1), logs.user("hello " * 50, id="u"), draft("compaction/start", BRACKET))
    for type, data in more:
        session.append(draft(type, data))
        if type == "compaction/summary":
            message = logs.user("compacted", source={"kind": "plugin", "plugin": "compact", "compactionId": "c"}).data
            session.append(surface("user/message", message, op=Replace(1, 1), sources=[2, len(session) - 1, 1]))
    return list(session.events)


def made(blocks: Any) -> tuple[str, dict[str, Any]]:
    said = {"summary": blocks, "shadowedRange": {"start": 1, "end": 1}, "shadowedSeqs": [1], "shadowedTokenCount": 1_234}
    return "compaction/summary", {**BRACKET, **said, "provider": "p", "model": "m", "usage": USAGE}


DONE = [made([{"type": "text", "text": HOSTILE}]), ("compaction/end", BRACKET)]
FAILED = ("compaction/end", {**BRACKET, "error": "It is down: try again."})
STOPPED = ("compaction/end", {**BRACKET, "error": "stopped"})


def shown(events: list[Event]) -> list[tuple[str, bool]]:
    view = TurnView()
    for event in events:
        view.feed(event)
    return [(slot.bundle["text/plain"], slot.final) for slot in view.slots if slot.key != SUMMARY]


def test_while_it_runs_it_says_so_and_then_what_came_of_it() -> None:
    """One output, in its place; the message that replaces the span is none of its own."""
    assert shown(told()) == [("Compacting the conversation…", False)]
    ((text, final),) = shown(told(*DONE))
    assert final
    assert text.startswith("Compacted 1 message (about 1,234 tokens) into a summary.\n\n## Rows")
    assert shown(told(FAILED)) == [("The conversation was not compacted and is as it was: It is down: try again.", True)]
    assert shown(told(STOPPED)) == [("The conversation was not compacted and is as it was: it was stopped.", True)]


def test_one_that_a_killed_process_left_was_interrupted() -> None:
    events = told()
    end = logs.new_session()
    end.append(logs.turn_start(1), logs.turn_end(1, "interrupted"))
    assert shown([*events, end.events[1]]) == [("The compaction was interrupted.", True)]


def test_its_tokens_are_the_turn_s() -> None:
    view = TurnView()
    for event in told(*DONE):
        view.feed(event)
    assert view.slots[0].bundle["text/plain"].startswith("0 steps · 1,000 tokens in (100 cached) · 70 out")


def test_nothing_of_a_summary_is_more_than_text() -> None:
    """The line opens without a script; what hides is visible."""
    view = TurnView()
    for event in told(*DONE):
        view.feed(event)
    bundle = view.slots[1].bundle
    assert "<details>" in bundle["text/html"]
    assert "\x1b" not in "".join(bundle.values())
    assert audit(bundle["text/html"]).problems == []


def test_a_timeline_and_a_transcript_say_it_once() -> None:
    line = next(line for line in timeline(told(*DONE)).splitlines() if "compacted" in line)
    assert line.split(maxsplit=2)[2].startswith("compacted 1 message (about 1,234 tokens) into a summary. ## Rows")
    assert "compact:" not in timeline(told(*DONE))
    assert "the conversation was not compacted and is as it was: It is down" in timeline(told(FAILED))
    (cell,) = [cell for cell in transcript(told(*DONE)) if "Compacted" in cell]
    assert cell.startswith("*Compacted 1 message (about 1,234 tokens) into a summary.*\n\n## Rows")
    assert "<script>" not in cell


@pytest.mark.parametrize(
    "data", [{}, {"summary": None}, {"summary": [1, {"type": "x"}], "shadowedSeqs": "no", "shadowedTokenCount": "many"}]
)
def test_what_another_program_wrote_oddly_breaks_nothing(data: dict[str, Any]) -> None:
    events = [Event(type, seq, 0, {**data, **more}) for seq, (type, more) in enumerate([
        ("compaction/start", {}), ("compaction/summary", {}), ("compaction/end", {}), ("compaction/end", {"error": 3}),
    ])]  # fmt: skip
    view = TurnView()
    for event in events:
        view.feed(event)
    assert len(view.slots) == 2
    timeline(events)
    transcript(events)
