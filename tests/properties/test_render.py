"""Laws of rendering that hold for any text and any log."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan_mode_nb.plan.visible import visible
from plan_mode_nb.render.cards import assistant_text, plan_card
from plan_mode_nb.render.diff import plan_diff_html, plan_diff_text
from plan_mode_nb.render.markdown import to_html
from plan_mode_nb.render.source import inert_markdown
from plan_mode_nb.render.tool_card import tool_card
from plan_mode_nb.render.transcript import timeline, transcript
from plan_mode_nb.render.turn_view import TurnView, render_turn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "render"))
from html_audit import audit, ink

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "dsh-logs"

_SYNTAX = [
    *"#>-*_~`|[]()!<>&\\:=\"'$.0x1 \t\n\r",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "```",
    "~~~",
    "**",
    "![",
    "](",
    "]: ",
    "http://a.example",
    "javascript:",
    "data:text/html,",
    "<script>",
    "<img src=x onerror=y>",
    "&lt;",
    "&#x202e;",
    "|a|b|\n|-|-|\n",
    "[x] ",
    "python",
    "計画",
    "「",
    "」",
    "שלום",
    "👩‍👩‍👧",
    "\u202e",
    "\u200b",
    "\x1b[8m",
    "word",
]
markdown_like = st.lists(st.sampled_from(_SYNTAX), max_size=60).map("".join)
any_text = st.one_of(markdown_like, st.text(max_size=200))


@given(any_text)
@settings(max_examples=400, deadline=None)
def test_any_text_renders_to_allowed_balanced_html(text: str) -> None:
    assert audit(to_html(text)).problems == []


@given(any_text)
@settings(max_examples=400, deadline=None)
def test_every_visible_letter_of_the_source_survives(text: str) -> None:
    html = to_html(text)
    found = audit(html)
    # Where a link points is in its href, a fence's language in its class; an entity is read as what it stands for, and the x of a
    # task's mark is a ticked box.
    shown = Counter(ink("".join([found.text, *found.links, *re.findall('class="language-([^"]*)"', html)])))
    written = Counter(ink(visible(re.sub("&#?[0-9A-Za-z]+;|(?<=\\[)[xX](?=\\][ \t])", "", text.removeprefix("\ufeff")))))
    assert not written - shown


@given(any_text)
@settings(max_examples=200, deadline=None)
def test_making_hiding_characters_visible_is_idempotent_and_keeps_the_rest(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    assert "".join(char for char in text if "!" <= char <= "~") == "".join(
        char for char in (once if once == text else _unmarked(once)) if "!" <= char <= "~"
    )


def _unmarked(text: str) -> str:
    return re.sub("⟦U\\+[0-9A-F]{4,6}⟧", "", text)


@given(any_text)
@settings(max_examples=300, deadline=None)
def test_inert_markdown_has_no_html_and_no_image_in_a_renderer_that_would_show_them(text: str) -> None:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": True}).parse(inert_markdown(text))
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
    assert not kinds & {"html_block", "html_inline", "image"}


@given(any_text, st.one_of(st.none(), any_text))
@settings(max_examples=100, deadline=None)
def test_cards_are_safe_and_deterministic_for_any_text(text: str, feedback: str | None) -> None:
    results = None if feedback is None else [{"type": "text", "text": feedback}]
    for make in (
        lambda: plan_card(text, "keep planning", feedback),
        lambda: assistant_text(text),
        lambda: tool_card(text, json.dumps({"code": text, text: [text]}), results, "done"),
        lambda: tool_card("python", text, results, "failed", text),
    ):
        bundle = make()
        assert bundle == make()
        assert audit(bundle["text/html"]).problems == []
        assert visible(bundle["text/plain"]) == bundle["text/plain"]


@given(any_text, any_text)
@settings(max_examples=100, deadline=None)
def test_a_difference_is_safe_and_holds_every_changed_line(old: str, new: str) -> None:
    assert audit(plan_diff_html(old, new)).problems == []
    lines = plan_diff_text(old, new).split("\n")
    shown = {line[2:] for line in lines if line[:2] in ("+ ", "  ")}
    before = visible(old.removeprefix("\ufeff")).replace("\r\n", "\n").rstrip("\n").split("\n")
    after = visible(new.removeprefix("\ufeff")).replace("\r\n", "\n").rstrip("\n").split("\n")
    assert set(after) - set(before) <= shown


class Event(NamedTuple):
    type: str
    seq: int
    time: int
    data: Any


_CALLS = ["c1", "c2", "c3"]
_words = st.sampled_from(["", "hello", "# P\n\nbody", "<b>"])


def _data(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    call = st.sampled_from(_CALLS)
    match kind:
        case "tool/call":
            return st.builds(lambda c, w: {"callId": c, "name": "python", "arguments": json.dumps({"code": w})}, call, _words)
        case "tool/result":
            block = lambda c, w, e: {"type": "tool-result", "toolCallId": c, "content": [{"type": "text", "text": w}], "isError": e}  # noqa: E731
            return st.builds(lambda c, w, e: {"message": {"content": [block(c, w, e)]}}, call, _words, st.booleans())
        case "question/asked":
            intent = st.sampled_from([None, {"kind": "plan-review", "approve": "Approve"}])
            question = lambda w, i: {"id": "q", "question": "?", "detail": w, "options": [{"label": "Approve"}], "intent": i}  # noqa: E731
            return st.builds(lambda c, w, i: {"requestId": f"r{c}", "callId": c, "questions": [question(w, i)]}, call, _words, intent)
        case "question/answered":
            outcome = st.sampled_from(["answered", "dismissed", "cancelled", "unavailable"])
            answers = lambda w: [{"id": "q", "selected": ["Approve"], "custom": w}]  # noqa: E731
            return st.builds(
                lambda c, o, w: {"requestId": f"r{c}", "outcome": o, "answers": answers(w), "by": "person"}, call, outcome, _words
            )
        case "assistant/message":
            blocks = st.lists(st.builds(lambda w: {"type": "text", "text": w}, _words), max_size=2)
            return st.builds(lambda b, s: {"step": s, "message": {"content": b}, "usage": {"inputTokens": 1}}, blocks, st.integers(1, 3))
        case "turn/end":
            return st.sampled_from([{"reason": {"kind": "completed"}}, {"reason": {"kind": "error", "error": {"message": "no"}}}])
        case "approval/asked":
            return st.builds(lambda c: {"id": c, "toolName": "bash", "callId": c}, call)
        case "approval/decided":
            return st.builds(lambda c: {"id": c, "outcome": "allowed-once"}, call)
        case "user/message":
            return st.builds(lambda w: {"content": [{"type": "text", "text": w}], "source": {"kind": "user"}}, _words)
        case "todo/write":
            return st.builds(lambda w: {"todos": [{"content": w, "status": "pending"}]}, _words)
        case "assistant/chunk":
            return st.builds(lambda w: {"step": 1, "chunk": {"type": "text-delta", "index": 0, "text": w}}, _words)
        case _:
            return st.just({"step": 1})


_KINDS = """tool/call tool/result question/asked question/answered assistant/message turn/end approval/asked approval/decided
    user/message todo/write assistant/chunk step/start llm/retry unknown/type plan/mode""".split()
_event = st.sampled_from(_KINDS).flatmap(lambda kind: _data(kind).map(lambda data: Event(kind, 0, 0, data)))


def _live(events: Iterable[Event], looks: set[int]) -> TurnView:
    """A view that is looked at after some events, as a kernel that repaints does."""
    view = TurnView()
    final: dict[str, Any] = {}
    order: list[str] = []
    for at, event in enumerate(events):
        view.feed(event)
        if at in looks:
            slots = view.slots
            keys = [slot.key for slot in slots]
            assert keys[: len(order)] == order, "slots are only ever appended"
            order = keys
            for slot in slots:
                assert final.get(slot.key, slot.bundle) == slot.bundle, "a final bundle does not change"
                if slot.final and view.ended:
                    final[slot.key] = slot.bundle
    return view


@given(st.lists(_event, max_size=25), st.sets(st.integers(0, 24)))
@settings(max_examples=300, deadline=None)
def test_what_replay_shows_at_once_is_what_a_live_turn_ends_as_whenever_it_was_painted(events: list[Event], looks: set[int]) -> None:
    view = _live(events, looks)
    assert render_turn(events) == [slot.bundle for slot in view.slots]
    assert all(slot.final for slot in view.slots) == view.ended
    for slot in view.slots:
        assert audit(slot.bundle.get("text/html", "")).problems == []


@given(st.lists(_event, max_size=15))
@settings(max_examples=100, deadline=None)
def test_any_events_have_a_timeline_and_a_transcript_without_raw_control_characters(events: list[Event]) -> None:
    assert visible(timeline(events)) == timeline(events)
    assert all(visible(cell) == cell and cell.strip() for cell in transcript(events))


@given(st.lists(st.builds(Event, st.sampled_from(_KINDS), st.just(0), st.just(0), st.sampled_from([None, [], 1, "x", {}]))))
@settings(max_examples=100, deadline=None)
def test_odd_data_of_other_programs_is_read_without_an_exception(events: list[Event]) -> None:
    assert render_turn(events)
    assert isinstance(timeline(events), str)
    assert isinstance(transcript(events), list)


@pytest.mark.skipif(not LOGS.is_dir(), reason="the recorded logs of deepseek-harness are not beside this checkout")
@pytest.mark.parametrize("path", sorted(LOGS.glob("*.jsonl")) if LOGS.is_dir() else [], ids=lambda path: path.name.split("__")[-1])
def test_recorded_turns_render_and_the_split_does_not_matter(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    events = [Event(row["type"], row.get("seq", 0), row.get("time", 0), row.get("data")) for row in rows]
    start = next((at for at, event in enumerate(events) if event.type == "turn/start"), len(events))
    turn = events[start:]
    assert render_turn(turn) == [slot.bundle for slot in _live(turn, set(range(0, len(turn), 3))).slots]
    for bundle in render_turn(turn):
        assert audit(bundle["text/html"]).problems == []
    assert bool(timeline(events)) == bool(turn)
