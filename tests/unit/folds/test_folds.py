"""The other folds: history and surface, header, inbox, turns, todos, usage, axes, questions, requests, the summary."""

from __future__ import annotations

import pytest

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.folds.header import HEADER, HEADER_SEQ
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.inbox import INBOX, inbox_fold
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.questions import OPEN_REVIEWS, QUESTIONS
from plan_mode_nb.folds.request import request_at
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.folds.view import View
from plan_mode_nb.log.events import Draft, Replace, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.testing.logs import (
    assistant,
    call_block,
    new_session,
    plan_mode,
    question_answered,
    request_header,
    review_asked,
    spliced,
    step_end,
    step_start,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage_chunk,
    user,
)

STEP = [turn_start(1), step_start(1, 1)]


def session_of(*drafts: Draft) -> Session:
    session = new_session()
    session.append(*drafts)
    return session


def todo(*contents: str) -> Draft:
    return draft("todo/write", {"todos": [{"content": content, "status": "pending"} for content in contents]})


def test_history_is_one_message_a_node_in_order_and_unchanged_and_empty_content_gives_none() -> None:
    session = session_of(*STEP, user("a", id="1"), assistant(1, 1, id="2"), assistant(1, 1, "b", id="3"))
    assert [message["id"] for message in session.fold(HISTORY)] == ["1", "3"]
    assert list(session.fold(NODES)) == [2, 3, 4]
    assert session.fold(HISTORY)[0] is session.events[2].data


def test_a_history_that_was_handed_out_stays_as_it_was() -> None:
    session = session_of(turn_start(1), user(id="1"), user(id="2"))
    before = session.fold(HISTORY)
    session.append(user(id="3"))
    between = session.fold(HISTORY)
    replacement = {**user("sum", id="4").data}
    session.append(surface("user/message", replacement, op=Replace(1, 2), sources=[1, 2]))
    assert [message["id"] for message in before] == ["1", "2"]
    assert [message["id"] for message in between] == ["1", "2", "3"]
    assert [message["id"] for message in session.fold(HISTORY)] == ["4", "3"]


def test_a_view_is_a_sequence_of_fixed_length() -> None:
    items = [1, 2, 3]
    view = View(items)
    items.append(4)
    assert (len(view), list(view), view[-1], view[1:], view[::-1]) == (3, [1, 2, 3], 3, [2, 3], [3, 2, 1])
    assert view == [1, 2, 3] == view
    assert view != [1, 2]
    assert 4 not in view
    for outside in (3, -4):
        with pytest.raises(IndexError):
            view[outside]


def test_the_last_header_wins_in_its_canonical_form() -> None:
    session = session_of(turn_start(1))
    assert (session.fold(HEADER), session.fold(HEADER_SEQ)) == (None, None)
    session.append(request_header(system="x", tools=[{"name": "t"}]), request_header("change", system="", tools=[], adapterDefaults={}))
    assert session.fold(HEADER) == {"config": {"provider": "p", "model": "m"}}
    assert session.fold(HEADER_SEQ) == 2


def test_a_request_is_the_last_header_and_the_surface_at_its_event() -> None:
    session = session_of(turn_start(1), user(id="1"), request_header(system="S"), request_header("change"), user(id="2"))
    assert request_at(session.events, 2)["system"] == "S"
    later = request_at(session.events, 4)
    assert (later["system"], later["tools"], later["config"]["model"]) == (None, [], "m")
    assert [message["id"] for message in later["messages"]] == ["1", "2"]
    for outside in (0, 5, -1):
        with pytest.raises(InvariantError):
            request_at(session.events, outside)


def test_the_inbox_is_the_replay_of_its_splices() -> None:
    session = session_of(spliced("next-turn", 0, "a", "b"), spliced("next-step", 0, "c"), spliced("next-turn", 1, "x", removed=1))
    inbox = session.fold(INBOX)
    assert [message["id"] for message in inbox.next_turn] == ["a", "x"]
    assert [message["id"] for message in inbox.next_step] == ["c"]
    assert inbox
    session.append(spliced("next-turn", 0, removed=2), spliced("next-step", 0, removed=1))
    assert not session.fold(INBOX)
    assert len(inbox.next_turn) == 2


def test_a_fork_does_not_inherit_the_queue_and_a_restarted_session_keeps_it() -> None:
    parent = session_of(spliced("next-turn", 0, "a"))
    child = parent.fork(1, id=SessionId("child"))
    assert not child.fold(inbox_fold(child.header))
    restarted = Session(parent.header, clock=lambda: 1, lines=parent.lines)
    restarted.append(draft("session/end-seed", {}))
    assert restarted.fold(inbox_fold(restarted.header))


@pytest.mark.parametrize("splice", [spliced("next-turn", 1), spliced("next-turn", 0, removed=1), spliced("next-turn", -1, "a")])
def test_a_splice_outside_the_queue_is_refused(splice: Draft) -> None:
    session = session_of(splice)
    with pytest.raises(InvariantError, match="of a queue of 0"):
        session.fold(INBOX)


def test_turns_count_their_steps_and_carry_their_end() -> None:
    session = session_of(
        *STEP, step_end(1, 1), step_start(1, 2), step_end(1, 2), turn_end(1, "max-tokens"), turn_start(2), step_start(2, 1)
    )
    turns = session.fold(TURNS)
    assert turns.to_json() == [{"turn": 1, "steps": 2, "end": {"kind": "max-tokens"}}, {"turn": 2, "steps": 1, "end": None}]
    assert (len(turns), turns.step, turns.open.start_seq if turns.open else None) == (2, 1, 6)


def test_todos_are_the_last_write_of_this_turn() -> None:
    session = session_of(turn_start(1), todo("a"), todo("b"), turn_end(1))
    assert session.fold(TODOS) == [{"content": "b", "status": "pending"}]
    session.append(turn_start(2))
    assert session.fold(TODOS) is None


def test_the_newest_report_of_a_step_replaces_the_one_before_and_steps_are_summed() -> None:
    session = session_of(*STEP, usage_chunk(1, 1, 5, 1), usage_chunk(1, 1, 7, 2))
    assert session.fold(USAGE) == Usage(7, 2)
    session.append(
        assistant(1, 1, "x", usage={"inputTokens": 8, "outputTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 1}), step_end(1, 1)
    )
    session.append(step_start(1, 2), usage_chunk(1, 2, 10, 10))
    assert session.fold(USAGE).to_json() == {
        "uncachedInputTokens": 18,
        "outputTokens": 13,
        "cacheReadTokens": 4,
        "cacheWriteTokens": 1,
    }


def test_each_axis_is_the_last_value_logged() -> None:
    session = session_of(draft("approval/policy", {"policy": "ask"}), draft("approval/policy", {"policy": "never"}))
    assert (session.fold(APPROVAL_POLICY), session.fold(SANDBOX_MODE)) == ("never", None)


@pytest.mark.parametrize(
    "settling",
    [
        [question_answered("q")],
        [question_answered("q", "cancelled")],
        [tool_result(1, 1, "c", is_error=True)],
        [step_end(1, 1), turn_end(1, "interrupted")],
    ],
)
def test_a_review_waits_until_it_is_answered_or_its_call_or_turn_is_over(settling: list[Draft]) -> None:
    session = session_of(*STEP, assistant(1, 1, call_block("c", "exit_plan_mode")), tool_call(1, 1, "c", "exit_plan_mode"))
    session.append(review_asked("q", "# Title\n\nbody", call_id="c"))
    assert session.fold(OPEN_REVIEWS) == [{"requestId": "q", "callId": "c", "title": "Title"}]
    session.append(*settling)
    assert session.fold(OPEN_REVIEWS) == []
    assert [each.request_id for each in session.fold(QUESTIONS).settled] == ["q"]


def test_an_ordinary_question_is_no_review_and_a_late_answer_changes_nothing() -> None:
    ordinary = draft("question/asked", {"requestId": "q", "questions": [{"id": "a", "question": "Why?"}]})
    session = session_of(*STEP, ordinary)
    assert session.fold(OPEN_REVIEWS) == []
    assert len(session.fold(QUESTIONS).open) == 1
    session.append(question_answered("q"), question_answered("q", "dismissed"))
    (settled,) = session.fold(QUESTIONS).settled
    assert settled.answer is not None
    assert settled.answer["outcome"] == "answered"


def test_a_question_from_between_turns_outlives_the_next_turn() -> None:
    ordinary = draft("question/asked", {"requestId": "q", "questions": [{"id": "a", "question": "Why?"}]})
    session = session_of(ordinary, turn_start(1), turn_end(1))
    assert len(session.fold(QUESTIONS).open) == 1


def test_the_summary_has_the_keys_of_the_machine_interface_in_order() -> None:
    session = session_of(plan_mode(True), *STEP, user())
    summary = fold_summary(session.header, session.events)
    assert list(summary) == [
        "session",
        "events",
        "plan",
        "messages",
        "header",
        "todos",
        "approval_policy",
        "sandbox_mode",
        "turns",
        "usage",
        "open_reviews",
    ]
    assert summary["plan"] == {"active": True, "pending": None}
    assert summary["turns"] == [{"turn": 1, "steps": 1, "end": None}]
    assert fold_summary(session.header, session.events[:1])["events"] == 1
