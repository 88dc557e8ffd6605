"""One turn as displays: what appears, where, and when it is final."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from plan_mode_nb.agent.dispatch import INTERRUPTED
from plan_mode_nb.log.closing import OUTCOME_UNKNOWN
from plan_mode_nb.render.turn_view import TurnView, render_turn

PLAN = "# Load the data\n\n1. read `sales.csv`\n"


class Event(NamedTuple):
    type: str
    data: Any
    seq: int = 0
    time: int = 0


def start(step: int = 1) -> Event:
    return Event("step/start", {"turn": 1, "step": step})


def user(text: str, **source: str) -> Event:
    return Event("user/message", {"content": [{"type": "text", "text": text}], "source": source or {"kind": "user"}})


def message(*blocks: dict[str, Any], step: int = 1, usage: dict[str, int] | None = None) -> Event:
    return Event("assistant/message", {"turn": 1, "step": step, "message": {"content": list(blocks)}, "usage": usage})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: str, name: str = "python", arguments: str = '{"code": "1"}') -> Event:
    return Event("tool/call", {"turn": 1, "step": 1, "callId": call_id, "name": name, "arguments": arguments})


def result(call_id: str, value: str = "ok", *, error: bool = False) -> Event:
    block = {"type": "tool-result", "toolCallId": call_id, "content": [text(value)], "isError": error}
    return Event("tool/result", {"turn": 1, "step": 1, "message": {"content": [block]}})


def asked(request: str, call_id: str | None = None, *, review: bool = False) -> Event:
    question: dict[str, Any] = {"id": "plan-review", "question": "Approve?", "options": [{"label": "Approve"}, {"label": "Keep planning"}]}
    if review:
        question |= {"detail": PLAN, "intent": {"kind": "plan-review", "approve": "Approve"}}
    return Event("question/asked", {"requestId": request, "questions": [question], **({"callId": call_id} if call_id else {})})


def answered(request: str, outcome: str = "answered", by: str = "person", **answer: Any) -> Event:
    answers = [{"id": "plan-review", **answer}] if outcome == "answered" else []
    return Event("question/answered", {"requestId": request, "outcome": outcome, "answers": answers, "by": by})


def end(kind: str = "completed", **more: Any) -> Event:
    return Event("turn/end", {"turn": 1, "reason": {"kind": kind, **more}})


def view_of(*events: Event) -> TurnView:
    view = TurnView()
    for event in events:
        view.feed(event)
    return view


def first_lines(view: TurnView) -> list[str]:
    return [slot.bundle["text/plain"].split("\n")[0] for slot in view.slots]


def test_slots_stand_in_the_order_things_happened_with_the_summary_first() -> None:
    view = view_of(
        user("go"), start(), message(text("I look."), text("And run.")), call("c1"), call("c2"), result("c2"), result("c1"),
        Event("todo/write", {"todos": [{"content": "a", "status": "pending"}]}), start(2), message(text("Done."), step=2), end(),
    )  # fmt: skip
    assert [slot.key for slot in view.slots] == ["summary", "text:1:0", "text:1:1", "c1", "c2", "todos", "text:2:0"]
    assert all(slot.final for slot in view.slots)


def test_the_summary_is_final_only_at_the_turns_end_and_counts_the_newest_usage_of_each_step() -> None:
    events = [
        start(),
        Event("assistant/chunk", {"step": 1, "chunk": {"type": "usage", "usage": {"inputTokens": 9, "outputTokens": 1}}}),
        message(text("x"), usage={"inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 5}),
        start(2),
        message(text("y"), step=2, usage={"inputTokens": 1, "outputTokens": 3}),
    ]
    view = view_of(*events)
    assert (view.slots[0].final, first_lines(view)[0]) == (False, "2 steps · 16 tokens in (5 cached) · 5 out · running")
    view.feed(end())
    assert (view.slots[0].final, first_lines(view)[0]) == (True, "2 steps · 16 tokens in (5 cached) · 5 out")


def test_a_call_runs_until_its_result_and_then_its_card_is_final() -> None:
    view = view_of(start(), call("c1"))
    assert first_lines(view)[1] == "python (running): 1"
    view.feed(result("c1", error=True))
    assert (first_lines(view)[1], view.slots[1].final) == ("python (failed): 1", True)


def test_a_call_that_no_result_answered_says_so_when_the_turn_is_over() -> None:
    assert first_lines(view_of(start(), call("c1"), end("interrupted")))[1] == "python (no result): 1"


def test_a_result_without_a_recorded_call_takes_the_call_from_the_message() -> None:
    block = {"type": "tool-call", "id": "c9", "name": "shell", "arguments": '{"command": "ls"}'}
    assert first_lines(view_of(start(), message(block), result("c9", error=True)))[1] == "shell (failed): ls"


def test_a_plan_review_stands_in_place_of_its_calls_card_and_holds_the_plan() -> None:
    view = view_of(start(), call("c1", "exit_plan_mode"), asked("r1", "c1", review=True))
    assert [slot.key for slot in view.slots] == ["summary", "c1"]
    assert first_lines(view)[1] == "Plan review: waiting for you"
    assert PLAN in view.slots[1].bundle["text/plain"]
    assert not view.slots[1].final


@pytest.mark.parametrize(
    ("answer", "is_error", "said"),
    [
        (answered("r1", selected=["Approve"]), False, "Plan review: approved"),
        (answered("r1", selected=["Keep planning"], custom="more tests"), True, "Plan review: not approved, keep planning"),
        (answered("r1", selected=["Approve"], custom="but"), True, "Plan review: not approved, keep planning"),
        (answered("r1", "unavailable", "policy"), True, "Plan review: not approved, nobody was there to answer"),
        (answered("r1", "cancelled", "person"), True, "Plan review: not approved, plan mode was switched off"),
        (answered("r1", "cancelled", "policy"), True, "Plan review: not approved, interrupted"),
        (None, True, "Plan review: not approved, interrupted"),
    ],
)
def test_a_reviews_outcome_comes_from_its_answer_and_its_result(answer: Event | None, is_error: bool, said: str) -> None:
    events = [start(), call("c1"), asked("r1", "c1", review=True), *([answer] if answer else []), result("c1", error=is_error)]
    view = view_of(*events)
    assert (first_lines(view)[1], view.slots[1].final) == (said, True)


@pytest.mark.parametrize("told", [INTERRUPTED.content[0]["text"], OUTCOME_UNKNOWN])
def test_a_review_that_a_stop_closed_does_not_say_that_plan_mode_was_switched_off(told: str) -> None:
    """The answer is cancelled by the person in both cases, and comes before the result; the result says which it was."""
    before = [start(), call("c1"), asked("r1", "c1", review=True), answered("r1", "cancelled", "person")]
    for events in (before, [*before, result("c1", told, error=True)]):
        assert first_lines(view_of(*events))[1] == "Plan review: not approved, interrupted"


def test_a_card_never_says_approved_before_the_exits_result_is_logged() -> None:
    view = view_of(start(), call("c1"), asked("r1", "c1", review=True), answered("r1", selected=["Approve"]))
    assert first_lines(view)[1] == "Plan review: waiting for you"
    assert not view.slots[1].final


def test_a_review_that_was_open_when_the_turn_ended_is_interrupted_never_answered() -> None:
    assert first_lines(view_of(start(), call("c1"), asked("r1", "c1", review=True), end("interrupted")))[1].endswith("interrupted")


def test_feedback_is_kept_verbatim_under_the_plan() -> None:
    view = view_of(
        start(), call("c1"), asked("r1", "c1", review=True), answered("r1", selected=[], custom="no\n  no"), result("c1", error=True)
    )
    assert view.slots[1].bundle["text/plain"].endswith("Feedback:\n\nno\n  no")


def test_a_question_stands_in_place_of_its_call_and_a_question_of_no_call_has_its_own_slot() -> None:
    view = view_of(start(), call("c1", "ask_user_question"), asked("r1", "c1"), asked("r2"), answered("r2", selected=["Approve"]))
    assert [slot.key for slot in view.slots] == ["summary", "c1", "question:r2"]
    assert first_lines(view)[1:] == ["Question: waiting for you", "Question: answered"]
    assert [slot.final for slot in view.slots] == [False, False, True]


def test_an_approval_has_its_own_slot_after_the_card_of_its_call() -> None:
    view = view_of(
        start(), call("c1", "bash"), Event("approval/asked", {"id": "a", "toolName": "bash", "callId": "c1", "reason": "writes outside"}),
        Event("approval/decided", {"id": "a", "outcome": "rejected", "by": "person"}), result("c1", error=True),
    )  # fmt: skip
    assert [slot.key for slot in view.slots] == ["summary", "c1", "approval:a"]
    assert view.slots[2].bundle["text/plain"] == "Approval of bash: rejected\n\nwrites outside"


@pytest.mark.parametrize("outcome", ["cancelled", "of-a-newer-build", ""])
def test_an_approval_outcome_this_build_does_not_know_allowed_nothing(outcome: str) -> None:
    view = view_of(Event("approval/asked", {"id": "a", "toolName": "bash"}), Event("approval/decided", {"id": "a", "outcome": outcome}))
    assert first_lines(view)[1] == "Approval of bash: interrupted"


def test_the_prompt_is_the_cell_itself_and_later_words_of_the_person_are_shown() -> None:
    view = view_of(start(), user("the cell"), user("steer left"), end())
    assert first_lines(view)[1:] == ["You: steer left"]


def test_a_plan_notice_shows_its_summary_and_other_plugin_messages_nothing() -> None:
    view = view_of(
        user("go"), user("long text", kind="plugin", plugin="plan-mode", form="notice", summary="Plan mode on"),
        user("context", kind="plugin", plugin="prompt"),
    )  # fmt: skip
    assert first_lines(view)[1:] == ["Plan mode on"]


def test_the_todo_list_is_one_slot_that_changes_in_place() -> None:
    todos = [Event("todo/write", {"todos": [{"content": "a", "status": status}]}) for status in ("pending", "completed")]
    view = view_of(start(), todos[0], message(text("x")), todos[1])
    assert first_lines(view)[1:] == ["☑ a", "x"]


def test_a_failed_turn_ends_in_one_line_and_a_stopped_one_does_not() -> None:
    failed = view_of(start(), end("error", error={"message": "HTTP 401", "code": "AUTH"}))
    assert first_lines(failed) == ["1 step · failed", "Error: HTTP 401"]
    assert first_lines(view_of(start(), end("aborted", reason={"kind": "user"}))) == ["1 step · stopped by you"]


def test_a_retry_is_counted_in_the_summary() -> None:
    assert first_lines(view_of(start(), Event("llm/retry", {"retry": 1}), message(text("x")), end()))[0] == "1 step · 1 retry"


def test_what_streams_is_a_preview_and_never_a_slot() -> None:
    chunks = [Event("assistant/chunk", {"step": 1, "chunk": {"type": "text-delta", "index": 0, "text": part}}) for part in ("Hel", "lo")]
    view = view_of(start(), *chunks)
    assert view.preview is not None
    assert view.preview["text/plain"] == "Hello"
    assert len(view.slots) == 1
    view.feed(message(text("Hello")))
    assert view.preview is None
    assert render_turn([start(), *chunks, message(text("Hello")), end()]) == render_turn([start(), message(text("Hello")), end()])


def test_blank_text_and_reasoning_show_nothing() -> None:
    assert len(view_of(start(), message(text(" \n"), {"type": "reasoning", "text": "hmm"})).slots) == 1


def test_unknown_events_and_what_follows_the_end_are_ignored() -> None:
    view = view_of(start(), Event("of-a-newer-build", {"x": 1}), end(), message(text("late")))
    assert view.ended
    assert len(view.slots) == 1


def test_a_host_may_title_calls() -> None:
    view = TurnView(lambda name, arguments: f"{name} for {arguments}")
    view.feed(call("c1", "read", "{}"))
    assert first_lines(view)[1] == "read (running): read for {}"


def test_figures_that_only_the_log_has_stand_under_their_call() -> None:
    """In order, as images where their bytes are here, as a line where they are not; other results' images are no display of their own."""

    def image(digest: str) -> dict[str, Any]:
        about = {"attachmentId": f"sha256:{digest}", "mediaType": "image/png", "name": digest, "width": 3, "height": 2}
        return {"type": "image", "attachment": about}

    def drawn(call_id: str, meta: Any, *digests: str) -> Event:
        block = {"type": "tool-result", "toolCallId": call_id, "content": [text("ok"), *map(image, digests)], "isError": False}
        return Event("tool/result", {"turn": 1, "step": 1, "message": {"content": [block]}, "meta": meta})

    view = TurnView(image_of=lambda attachment_id: b"bytes" if attachment_id == "sha256:a" else None)
    shown = {"figures": "shown"}
    for event in (start(), call("1"), drawn("1", shown, "a", "b"), call("2"), drawn("2", None, "a"), call("3"), drawn("3", shown), end()):
        view.feed(event)
    assert [slot.key for slot in view.slots] == ["summary", "1", "figure:1:0", "figure:1:1", "2", "3"]
    first, second = view.slots[2].bundle, view.slots[3].bundle
    assert first == {"text/plain": "Figure of the scratch process: a image/png 3×2", "image/png": "Ynl0ZXM="}
    assert (second["text/plain"], "image/png" in second) == ("Figure of the scratch process: b image/png 3×2", False)
    assert all(slot.final for slot in view.slots)
