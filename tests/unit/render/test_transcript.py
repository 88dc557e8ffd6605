"""A log for people: the timeline and the transcript."""

from __future__ import annotations

from typing import Any, NamedTuple

from plan_mode_nb.render.transcript import timeline, transcript

PLAN = "# P\n\n- x\n"


class Event(NamedTuple):
    seq: int
    type: str
    data: Any
    time: int = 1_764_510_000_000


def user(seq: int, text: str, **source: str) -> Event:
    return Event(seq, "user/message", {"content": [{"type": "text", "text": text}], "source": source or {"kind": "user"}})


REVIEW = {
    "id": "plan-review",
    "question": "Approve?",
    "detail": PLAN,
    "options": [],
    "intent": {"kind": "plan-review", "approve": "Approve"},
}
ANSWER = {"id": "plan-review", "selected": ["Approve"]}
RESULT = {"type": "tool-result", "toolCallId": "c1", "content": [{"type": "text", "text": "approved"}], "isError": False}
SESSION = [
    Event(0, "command/run", {"commandId": "k", "name": "plan", "args": "go", "source": {"kind": "user"}}),
    Event(1, "plan/mode", {"active": True}),
    Event(2, "command/done", {"commandId": "k", "kind": "success", "text": "Plan mode on."}),
    Event(3, "turn/start", {"turn": 1}),
    user(4, "go"),
    Event(5, "step/start", {"turn": 1, "step": 1}),
    Event(6, "llm/retry", {"turn": 1, "step": 1, "retry": 1, "maxRetries": 2, "failure": {"code": "TIMEOUT", "message": "slow"}}),
    Event(7, "assistant/message", {"turn": 1, "step": 1, "message": {"content": [{"type": "text", "text": "Here."}]}}),
    Event(8, "tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "exit_plan_mode", "arguments": '{"plan": "# P"}'}),
    Event(9, "question/asked", {"requestId": "r", "questions": [REVIEW], "callId": "c1"}),
    Event(10, "question/answered", {"requestId": "r", "outcome": "answered", "answers": [ANSWER], "by": "replay"}),
    Event(11, "plan/selected", {"active": False, "narrate": False}),
    Event(12, "tool/result", {"turn": 1, "step": 1, "message": {"content": [RESULT]}}),
    Event(13, "plan/mode", {"active": False}),
    Event(14, "approval/asked", {"id": "a", "toolName": "bash", "reason": "writes"}),
    Event(15, "approval/decided", {"id": "a", "outcome": "rejected", "by": "policy"}),
    Event(16, "turn/end", {"turn": 1, "reason": {"kind": "error", "error": {"code": "AUTH", "message": "no key"}}}),
]  # fmt: skip


def test_the_timeline_says_where_what_and_who_decided() -> None:
    assert timeline(SESSION).split("\n") == [
        "     0        command plan go",
        "     1        plan mode on",
        "     2        command success: Plan mode on.",
        "     3  1     turn 1 starts",
        "     4  1     you: go",
        "     6  1.1   retry 1 of 2: TIMEOUT slow",
        "     7  1.1   assistant: Here.",
        "     8  1.1   tool exit_plan_mode: # P",
        "     9  1.1   plan review: P",
        "    10  1.1   review answered by replay — Approve",
        "    11  1.1   plan mode off selected, from the next step",
        "    12  1.1   result of exit_plan_mode: approved",
        "    13  1.1   plan mode off",
        "    14  1.1   approval of bash asked: writes",
        "    15  1.1   approval of bash: rejected by policy",
        "    16  1.1   turn ends: failed (AUTH: no key)",
    ]


def test_a_timeline_line_is_one_bounded_line_without_control_characters() -> None:
    line = timeline([user(0, "a\x1b[2Jb\r\nc\u202e " + "x" * 500)])
    assert "\n" not in line
    assert "you: a␛[2Jb c⟦U+202E⟧ xxx" in line
    assert line.endswith("…")
    assert len(line) < 130


def test_a_clock_adds_times_in_the_callers_words() -> None:
    assert timeline([user(7, "hi")], clock=lambda ms: f"at {ms // 1000}") == "     7  at 1764510000        you: hi"


def test_a_person_s_words_on_a_question_are_in_the_timeline() -> None:
    answer = {"requestId": "r", "outcome": "answered", "answers": [{"id": "q", "selected": [], "custom": "add tests"}], "by": "person"}
    assert timeline([Event(1, "question/answered", answer)]).endswith("question answered by person — “add tests”")


def test_a_transcript_is_the_conversation_in_markdown_cells() -> None:
    cells = transcript(SESSION)
    assert cells[0] == "*Plan mode on.*"
    assert cells[1] == "**You**\n\ngo"
    assert cells[2] == "Here."
    assert cells[3] == "**Plan review: approved**\n\n" + PLAN
    assert cells[4] == "*Plan mode off.*"
    assert cells[5] == "*turn ends: failed (AUTH: no key)*"
    assert len(cells) == 6


def test_a_transcript_shows_calls_with_their_results_and_no_plumbing() -> None:
    call = Event(1, "tool/call", {"callId": "c1", "name": "python", "arguments": '{"code": "1 + 1"}'})
    result = Event(2, "tool/result", {"message": {"content": [RESULT]}})
    context = user(3, "<system-reminder>", kind="plugin", plugin="prompt")
    assert transcript([call, result, context]) == ["**`python`** (done)\n\n```python\n1 + 1\n```\n\nResult\n\n```\napproved\n```"]


def test_a_transcript_loads_nothing_and_runs_nothing() -> None:
    (cell,) = transcript([user(0, "<img src=https://evil.example/p.png> ![p](https://evil.example/p.png)")])
    assert cell == "**You**\n\n&lt;img src=https://evil.example/p.png> &#33;[p](https://evil.example/p.png)"
