"""What is seen of child agents: one card that grows, cards that say who asks, lines in a terminal and in a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.folds.descriptor import DESCRIPTOR, Descriptor, descriptor_data
from plan_mode_nb.log.events import Draft, Event, SessionId
from plan_mode_nb.log.fold import fold_values
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.render.child_view import SHOWN, ChildView
from plan_mode_nb.render.lineage import child_line, descendants
from plan_mode_nb.render.transcript import timeline
from plan_mode_nb.render.turn_view import TurnView
from plan_mode_nb.testing.logs import (
    assistant,
    call_block,
    new_session,
    step_end,
    step_start,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage_chunk,
    user,
)

TASK = {"task": "Count the rows."}


def events(*drafts: Draft) -> list[Event]:
    return [Event(each.type, seq, 0, each.data) for seq, each in enumerate(drafts)]


PARENT = events(
    turn_start(1),
    step_start(1, 1),
    assistant(1, 1, call_block("c", "spawn_agent", TASK)),
    tool_call(1, 1, "c", "spawn_agent", TASK),
)
CHILD = [
    turn_start(1),
    draft("subagent/descriptor", descriptor_data("spawn", "count")),
    step_start(1, 1),
    user("Count the rows."),
    assistant(1, 1, "I look.", call_block("c", "python", {"code": "len(rows)"})),
    tool_call(1, 1, "c", "python", {"code": "len(rows)"}),
]


def view(parent: Sequence[Event] = PARENT) -> TurnView:
    made = TurnView()
    for event in parent:
        made.feed(event)
    return made


def card(made: TurnView, key: str = "c") -> str:
    return next(str(slot.bundle["text/plain"]) for slot in made.slots if slot.key == key)


def feed(made: TurnView, drafts: Sequence[Draft], session: str = "p.1", who: str = "count") -> None:
    for event in events(*drafts):
        made.feed_child("c", session, who, event)


def test_a_running_card_shows_the_last_thing_its_child_did() -> None:
    """In the one line that a collapsed card has; the calls' equal ids are not mixed up."""
    made = view()
    feed(made, CHILD)
    shown = card(made)
    assert shown.startswith("spawn_agent (running): Count the rows. · tool python: len(rows)\n")
    assert "The child: 1 step, 1 call:\nassistant: I look.\ntool python: len(rows)" in shown
    assert [slot.key for slot in made.slots] == ["summary", "c"]


def test_a_finished_card_keeps_what_was_done_and_is_final() -> None:
    """Whatever a child does later changes nothing."""
    made = view()
    feed(made, [*CHILD, tool_result(1, 1, "c", "3"), tool_result(1, 1, "d", "bad", is_error=True), step_end(1, 1), turn_end(1)])
    made.feed(events(*[tool_result(1, 1, "c", "Three.")])[0])
    before = card(made)
    assert before.startswith("spawn_agent (done): Count the rows.\n")
    assert "result of" not in before
    assert "error of tool: bad" in before
    assert before.endswith("Result:\nThree.")
    feed(made, [assistant(1, 2, "later")])
    assert [slot.final for slot in made.slots if slot.key == "c"] == [True]
    assert card(made) == before


def test_an_approval_says_for_which_child_and_shows_what_it_was_given() -> None:
    """A replayed decision looks like the person's: nowhere stands who decided."""
    asked = draft("approval/asked", {"id": "a", "toolName": "python", "callId": "c", "reason": "it writes"})
    shown = []
    for by in ("person", "replay"):
        made = view()
        feed(made, [*CHILD, asked])
        assert card(made, "approval:a").startswith("Approval of python for the child agent “count”: waiting for you")
        feed(made, [draft("approval/decided", {"id": "a", "outcome": "allowed-once", "by": by})])
        made.feed(Event("turn/end", 9, 0, {"turn": 1, "reason": {"kind": "completed"}}))
        shown.append([dict(slot.bundle) for slot in made.slots])
    assert shown[0] == shown[1]
    assert "allowed\n\nit writes\n\nlen(rows)" in str(shown[0][2]["text/plain"])
    assert "<pre" in str(shown[0][2]["text/html"])


def test_a_question_of_a_child_stands_apart_from_its_parents_call() -> None:
    """Though both calls have the same id."""
    made = view()
    question = {"requestId": "q", "callId": "c", "questions": [{"id": "x", "question": "Which?", "options": [{"label": "Red"}]}]}
    feed(made, [*CHILD, draft("question/asked", question)])
    assert card(made, "question:q").startswith("Question of the child agent “count”: waiting for you")
    feed(
        made,
        [
            draft(
                "question/answered",
                {"requestId": "q", "outcome": "answered", "by": "person", "answers": [{"id": "x", "selected": ["Red"]}]},
            )
        ],
    )
    assert "☑ Red" in card(made, "question:q")
    assert card(made).startswith("spawn_agent (running)")


def test_what_hides_in_a_childs_name_or_words_is_visible() -> None:
    """They are the model's."""
    made = view()
    feed(made, [assistant(1, 1, "a\x1b[31m\u202eb")], who="evil\u202e\n“x”")
    feed(made, [draft("approval/asked", {"id": "a", "toolName": "python", "reason": "r"})], who="evil\u202e\n“x”")
    texts = "".join(str(value) for slot in made.slots for value in slot.bundle.values())
    assert "\x1b" not in texts
    assert "\u202e" not in texts


def test_a_childs_name_is_inert_in_every_form() -> None:
    """It is the model's: no tag and no image of it does anything, in HTML as in markdown."""
    made = view()
    asked = {"requestId": "q", "questions": [{"id": "x", "question": "Which?"}]}
    feed(
        made,
        [draft("approval/asked", {"id": "a", "toolName": "python", "reason": "r"}), draft("question/asked", asked)],
        who="<img src=x> ![a](http://b/c)",
    )
    for slot in made.slots:
        assert "<img" not in str(slot.bundle.get("text/html", ""))
        written = str(slot.bundle.get("text/markdown", ""))
        assert "<img" not in written
        assert "![a](" not in written


def test_a_grandchilds_lines_carry_its_name_and_do_not_count_as_the_childs() -> None:
    """It works for the same call."""
    child = ChildView()
    for event in events(*CHILD):
        child.feed("p.1", "count", event)
    for event in events(step_start(1, 1), tool_call(1, 1, "z", "bash", {"command": "ls"})):
        child.feed("p.1.2", "count › list", event)
    assert child.lines[0] == "The child: 1 step, 1 call"
    assert child.lines[-1] == "count › list: tool bash: ls"


def test_a_long_childs_card_shows_its_last_lines_and_counts_the_others() -> None:
    """So that it stays a card."""
    child = ChildView()
    for seq in range(SHOWN + 3):
        child.feed("p.1", "count", Event("tool/call", seq, 0, tool_call(1, 1, f"c{seq}", "python", {"code": str(seq)}).data))
    assert child.lines[0] == f"The child: 0 steps, {SHOWN + 3} calls"
    assert child.lines[1] == "… 3 earlier lines"
    assert len(child.lines) == SHOWN + 2


def a_family() -> list[Session]:
    parent = new_session("p")
    parent.append(turn_start(1), user(), turn_end(1))
    spawned = parent.child(id=SessionId("p.2"))
    spawned.append(*CHILD, usage_chunk(1, 1, 500, 20), tool_result(1, 1, "c"), step_end(1, 1), turn_end(1))
    parent.append(turn_start(2), step_start(2, 1), assistant(2, 1, call_block("f")), tool_call(2, 1, "f"))
    forked = parent.child(id=SessionId("p.1"), length=len(parent))
    forked.append(turn_start(3), draft("subagent/descriptor", descriptor_data("fork", "check")), step_start(3, 1))
    unborn = forked.child(id=SessionId("p.1.1"))
    return [parent, spawned, forked, unborn]


def test_who_is_whose_child_and_how_each_ended() -> None:
    """A fork's seed is not its own: neither its turns nor its tokens."""
    stored = [StoredSession(each.header, each.lines) for each in a_family()]
    found = descendants("p", reversed(stored))
    assert [(each.header.id, child_line(each)) for each in found] == [
        ("p.2", "“count” (spawned): completed, 1 step, 500 tokens in, 20 out"),
        ("p.1", "“check” (forked): open, 1 step, 0 tokens in, 0 out"),
        ("p.1.1", "a child: not begun"),
    ]
    assert [each.header.id for each in descendants("p.1", stored)] == ["p.1.1"]
    assert child_line(StoredSession(stored[1].header, ["{}"])).startswith("cannot be read: ")


def test_a_childs_timeline_says_what_it_is_and_whose_the_task_is() -> None:
    """What the parent said in its place is no word of the person's."""
    _, spawned, *_ = a_family()
    lines = timeline(spawned.events).splitlines()
    assert any(line.endswith("child agent (spawn) “count”") for line in lines)
    assert any(line.endswith("task: Count the rows.") for line in lines)
    assert not any("you:" in line for line in lines)


@pytest.mark.parametrize(
    ("data", "folded"),
    [
        (descriptor_data("spawn", "count"), Descriptor("spawn", "count")),
        (descriptor_data("fork", ""), Descriptor("fork")),
        ({"version": 2, "mode": "continuable", "provider": "acp", "label": "x"}, Descriptor("acp", "x")),
        ({"version": 1, "mode": "one-shot", "provider": "spawn"}, None),
        ({"version": 2, "provider": 3}, None),
        ("odd", None),
    ],
)
def test_a_descriptor_is_read_as_deepseek_harness_reads_it(data: Any, folded: Descriptor | None) -> None:
    """The last one counts: a forked child's stands behind those of its seed."""
    first = Event("subagent/descriptor", 0, 0, descriptor_data("spawn", "first"))
    (found,) = fold_values((DESCRIPTOR,), [first, Event("subagent/descriptor", 1, 0, data)])
    assert found == folded
