"""A session only grows, all or none of a batch, and nothing counts before its sink has it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plan_mode_nb.exceptions import FormatError, InvariantError, StoreError
from plan_mode_nb.folds.inbox import INBOX
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.codec import encode
from plan_mode_nb.log.events import Draft, Event, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.logs import (
    FIRST_TIME,
    assistant,
    call_block,
    new_session,
    plan_mode,
    spliced,
    step_start,
    tool_call,
    turn_end,
    turn_start,
    user,
)


class Recorder:
    """A sink that remembers, and refuses while told to."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.refuses = False

    def write(self, lines: Sequence[str]) -> None:
        if self.refuses:
            raise StoreError("the disk is full")
        self.batches.append(list(lines))


def test_an_append_gives_seq_and_time_and_keeps_event_and_line_alike() -> None:
    session = new_session()
    first, second = session.append(turn_start(1), user())
    assert (first.seq, second.seq) == (0, 1)
    assert first.time == second.time == FIRST_TIME
    assert session.lines == [encode(event) for event in session.events]
    assert session.append() == ()


@pytest.mark.parametrize(
    "batch",
    [
        [turn_start(1), turn_start(2)],
        [turn_start(1), draft("plan/mode", {"active": 1})],
        [turn_start(1), draft("nobody/knows", {})],
        [turn_start(1), Draft("todo/write", {"todos": float("nan")})],
    ],
)
def test_a_refused_batch_leaves_nothing_behind(batch: list[Draft]) -> None:
    sink = Recorder()
    session = new_session(sink=sink)
    with pytest.raises((FormatError, InvariantError)):
        session.append(*batch)
    assert session.events == [] == session.lines == sink.batches
    assert session.place.turn is None
    session.append(turn_start(1))
    assert len(session) == 1


def test_a_batch_that_the_sink_does_not_take_is_not_part_of_the_log() -> None:
    sink = Recorder()
    session = new_session(sink=sink)
    sink.refuses = True
    with pytest.raises(StoreError, match="disk is full"):
        session.append(turn_start(1))
    assert len(session) == 0
    sink.refuses = False
    session.append(turn_start(1), user())
    assert sink.batches == [session.lines]


def test_a_failing_listener_hides_nothing_and_undoing_stops_the_calls(caplog: pytest.LogCaptureFixture) -> None:
    session = new_session()
    heard: list[int] = []

    def broken(batch: Sequence[Event]) -> None:
        raise ValueError("boom")

    session.subscribe(broken)
    undo = session.subscribe(lambda batch: heard.append(len(batch)))
    session.append(turn_start(1), user())
    undo()
    undo()
    session.append(turn_end(1))
    assert heard == [2]
    assert "boom" in caplog.text
    assert len(session) == 3


def test_reading_a_fold_again_reads_only_the_new_events() -> None:
    seen: list[int] = []

    class Counting:
        types = None

        def start(self) -> int:
            return 0

        def step(self, state: int, event: Event) -> int:
            seen.append(event.seq)
            return state + 1

        def value(self, state: int) -> int:
            return state

    fold, session = Counting(), new_session()
    session.append(turn_start(1))
    assert session.fold(fold) == 1
    session.append(user(), turn_end(1))
    assert session.fold(fold) == 3
    assert session.fold(fold) == 3
    assert seen == [0, 1, 2]


def test_a_fold_that_raised_is_never_resumed_half_done() -> None:
    session = new_session()
    session.append(spliced("next-turn", 0, "a"))
    assert len(session.fold(INBOX).next_turn) == 1
    session.append(spliced("next-turn", 1, "b"), spliced("next-turn", 9, "c"))
    for _ in range(2):
        with pytest.raises(InvariantError, match="event 2"):
            session.fold(INBOX)


def test_what_is_owed_is_written_with_the_first_new_event_and_not_before() -> None:
    """Looking at an interrupted log does not change it."""
    interrupted = new_session()
    interrupted.append(turn_start(1), step_start(1, 1))
    sink = Recorder()
    session = new_session(lines=interrupted.lines, sink=sink)
    session.owe(closers(session.events), time=session.events[-1].time)
    assert session.lines == interrupted.lines
    assert sink.batches == []
    assert (session.place.turn, session.place.next_turn) == (None, 2)
    assert session.fold(TURNS).open is not None
    heard: list[str] = []
    session.subscribe(lambda batch: heard.extend(event.type for event in batch))
    (event,) = session.append(plan_mode(True))
    assert (event.type, event.seq) == ("plan/mode", 4)
    assert heard == ["step/end", "turn/end", "plan/mode"]
    assert len(sink.batches) == 1
    assert session.fold(TURNS).closed[0].end == {"kind": "interrupted"}
    session.append(turn_start(2))
    assert len(session) == 6


def test_a_fork_inherits_the_prefix_and_leaves_its_parent_untouched() -> None:
    parent = new_session()
    parent.append(plan_mode(True), turn_start(1), user(), turn_end(1), plan_mode(False))
    before, after = parent.fork(1, id=SessionId("early")), parent.fork(5, id=SessionId("late"))
    assert (before.fold(PLAN).active, after.fold(PLAN).active) == (True, False)
    assert before.lines[:1] == parent.lines[:1]
    assert before.header.parent_session == "s"
    assert before.header.seed_length == 1
    assert [event.type for event in before.events] == ["plan/mode", "session/end-seed"]
    assert len(parent) == 5
    for wrong in (-1, 6):
        with pytest.raises(FormatError, match="cannot fork"):
            parent.fork(wrong, id=SessionId("x"))


def test_a_fork_inside_a_turn_closes_it_before_the_end_of_the_seed() -> None:
    parent = new_session()
    parent.append(turn_start(1), step_start(1, 1), assistant(1, 1, call_block("c")), tool_call(1, 1, "c"))
    child = parent.fork(4, id=SessionId("child"))
    assert [event.type for event in child.events[4:]] == ["tool/result", "step/end", "turn/end", "session/end-seed"]
    child.append(turn_start(2))
    assert parent.place.turn == 1


ODD = '{ "type":"turn/start","data":{"turn":1},"time":5,"seq":0 }'


def test_a_loaded_line_comes_back_as_it_was_whoever_wrote_it() -> None:
    """Copies are compared as strings, so a line is never normalised."""
    lines = [
        ODD,
        '{"type":"session/title","seq":1,"time":5,"data":{"title":"\\ud800"}}',
        '{"type":"session/title","seq":2,"time":5,"data":{}}',
    ]
    session = new_session(lines=lines)
    session.append(turn_end(1))
    assert session.lines[:3] == lines
    assert list(session.lines)[:3] == lines
    assert session.lines == [*lines, encode(session.events[3])]
    assert (len(session.lines), session.lines[-1], session.lines[-4]) == (4, encode(session.events[3]), ODD)
    for outside in (4, -5):
        with pytest.raises(IndexError):
            session.lines[outside]


def test_an_event_that_somebody_changed_in_memory_does_not_reach_the_lines() -> None:
    older = new_session()
    older.append(turn_start(1), user("as it was"))
    loaded = new_session(lines=older.lines)
    loaded.append(user("new"))
    for session in (older, loaded):
        session.events[-1].data["content"][0]["text"] = "changed"
    assert "changed" not in "".join(older.lines)
    assert "changed" not in loaded.lines[2]
    loaded.events[1].data["content"][0]["text"] = "changed"
    assert loaded.events[1].data["content"][0]["text"] == "as it was"
    assert loaded.lines[:2] == older.lines[:2]


def test_a_log_that_breaks_a_rule_is_refused_when_opened() -> None:
    good = new_session()
    good.append(plan_mode(True))
    with pytest.raises(InvariantError, match=r"`active` must be true or false, not a number"):
        Session(good.header, clock=lambda: 1, lines=[good.lines[0].replace("true", "1")])
