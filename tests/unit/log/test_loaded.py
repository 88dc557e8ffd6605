"""A log that was read stays text: as small as its file, the same from every side, and checked line by line."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plan_mode_nb.exceptions import FormatError, InvariantError
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import CHUNK, DELTA, draft, kind_of
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.packing import packed


def streamed(chunks: int, turns: int = 1) -> Session:
    """Turns with a run of streamed words each."""
    session = logs.new_session()
    for turn in range(1, turns + 1):
        session.append(logs.turn_start(turn), logs.user("count the words " * 4), logs.step_start(turn, 1))
        deltas = ({"type": "text-delta", "index": 0, "text": f" word{number}"} for number in range(chunks))
        session.append(*(draft("assistant/chunk", {"turn": turn, "step": 1, "chunk": chunk}) for chunk in deltas))
        session.append(logs.assistant(turn, 1, "the words"), logs.step_end(turn, 1), logs.turn_end(turn))
    return session


def as_list(lines: Sequence[str]) -> Any:
    return list(lines)


def as_plain_file(lines: Sequence[str]) -> Any:
    return read_jsonl(write_jsonl(logs.new_session().header, lines))[1]


def as_packed_file(lines: Sequence[str]) -> Any:
    return read_jsonl(write_jsonl(logs.new_session().header, packed(lines)))[1]


@pytest.mark.parametrize("given", [as_list, as_plain_file, as_packed_file])
def test_however_it_was_read_it_is_the_same_sequence(given: Callable[[Sequence[str]], Any]) -> None:
    """Each index, slice, reversal and selection by kind, in the loaded part, the appended part and across."""
    whole = streamed(5, turns=3)
    split = 24
    session = logs.new_session(lines=given(whole.lines[:split]))
    session.append(*(logs.plan_selected(bool(number % 2)) for number in range(3)))
    events = [*whole.events[:split], *session.events[split:]]
    lines = [*whole.lines[:split], *session.lines[split:]]
    assert (len(session.events), len(session.lines)) == (27, 27)
    for at in range(-27, 27):
        assert (session.events[at], session.lines[at]) == (events[at], lines[at])
        assert list(session.events.since(at % 27)) == events[at % 27 :]
        for stop in (at, at + 5, None):
            assert (session.events[at:stop], session.lines[at:stop]) == (events[at:stop], lines[at:stop])
    assert list(reversed(session.events)) == events[::-1]
    assert session.lines[::-3] == lines[::-3]
    kinds = [frozenset({CHUNK}), frozenset({DELTA}), frozenset({CHUNK, DELTA}), frozenset({"turn/start", "plan/selected"}), None]
    for types in kinds:
        for start in (0, 4, 6, 23, 25, 27):
            assert list(session.events.of(types, start)) == [e for e in events[start:] if types is None or kind_of(e) in types]
    assert [session.events.type(seq) for seq in range(27)] == [event.type for event in events]
    for outside in (27, -28):
        with pytest.raises(IndexError, match="27 events"):
            session.events[outside]


def test_a_fold_that_names_its_types_decodes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million streamed words cost a look at their type, not their text."""
    session = logs.new_session(lines=as_plain_file(streamed(50).lines))
    asked: list[str] = []

    class Turns:
        types = frozenset({"turn/start", "turn/end"})

        def start(self) -> int:
            return 0

        def step(self, state: int, event: Any) -> int:
            asked.append(event.type)
            return state + 1

        def value(self, state: int) -> int:
            return state

    seen: list[int] = []
    decoded = session.events.loaded._decoded
    monkeypatch.setattr(type(session.events.loaded), "_decoded", lambda self, places: seen.extend(places) or decoded(places))
    assert fold_value(Turns(), session.events) == session.fold(Turns()) == 2
    assert asked == ["turn/start", "turn/end"] * 2
    assert len(seen) == 4


@pytest.mark.parametrize("rows", [lambda lines: list(lines), packed], ids=["plain", "packed"])
def test_an_open_log_is_hardly_larger_than_its_file(rows: Callable[[Sequence[str]], list[str]]) -> None:
    """20,000 events; the file's own bytes included. Four times is the promise, one and a half what it takes."""
    made = streamed(100, turns=190)
    data = write_jsonl(made.header, rows(made.lines))
    logs.new_session(lines=as_plain_file(made.lines[:10]))
    gc.collect()
    tracemalloc.start()
    try:
        copy = bytes(bytearray(data))
        header, lines = read_jsonl(copy)
        session = Session(header, clock=lambda: 1, lines=lines)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(session) == len(made) > 19_000
    assert peak < 3.2 * len(data), "the copy of the bytes was made from two"
    assert session.lines == made.lines


TURN = '{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}'
TITLE = '{"type":"session/title","seq":1,"time":1,"data":{"title":"x"}}'


@pytest.mark.parametrize(
    "lines",
    [
        [TURN[:-1], "}" + TITLE],
        [TURN + TITLE, ""],
        [TURN[:22], TURN[22:] + TITLE],
        [TURN, "", TITLE],
        [f"{TURN}\n", TITLE],
    ],
    ids=["a line goes on in the next", "two in one", "cut and joined", "an empty line", "a newline in it"],
)
def test_events_that_do_not_stand_one_on_a_line_are_refused(lines: list[str]) -> None:
    """Though together they read as the right number of events."""
    with pytest.raises(FormatError, match=r"line [12]"):
        logs.new_session(lines=lines)


def test_a_rule_that_a_file_breaks_is_told_with_the_line_it_stands_on() -> None:
    """Not the number of its event: a packed row is one line."""
    made = streamed(5)
    bad = made.lines[-2].replace('"turn":1', '"turn":"1"')
    file = write_jsonl(made.header, packed([*made.lines[:-2], bad, made.lines[-1]]))
    with pytest.raises(
        InvariantError, match=r"^line 7: event 9: step/end: `turn` must be a safe integer, not a string; correct that line in a copy"
    ):
        Session(made.header, clock=lambda: 1, lines=read_jsonl(file)[1])
    unknown = '{"type":"from/the-future","seq":0,"time":1,"data":{}}'
    with pytest.raises(FormatError, match=r"^line 2: event 0 has the type 'from/the-future'.*upgrade") as caught:
        Session(made.header, clock=lambda: 1, lines=as_plain_file([unknown]))
    assert caught.value.line == 2


def test_a_value_from_outside_never_makes_a_sentence_long() -> None:
    """A damaged log can hold anything."""
    with pytest.raises(FormatError) as caught:
        logs.new_session(lines=[TURN.replace("turn/start", "x" * 10_000)])
    assert len(str(caught.value)) < 300
