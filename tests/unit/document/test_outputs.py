"""The output carrier: the pieces in the cells' outputs, in any order, give the session back as far as they reach."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from plan_mode_nb.document.outputs import EVENTS_MIME, events_bundle, read_outputs
from plan_mode_nb.log.events import Header, SessionId

HEADER = Header(id=SessionId("s"), created_at=1)
LINES = list("abcdef")


def cell(*bundles: Any) -> dict[str, Any]:
    outputs = [{"output_type": "display_data", "metadata": {}, "data": {EVENTS_MIME: bundle, "text/plain": ""}} for bundle in bundles]
    return {"cell_type": "code", "source": "", "outputs": outputs}


def piece(start: int, end: int, lines: list[str] = LINES, **more: Any) -> dict[str, Any]:
    return events_bundle(HEADER, start, lines[start:end], **more)


def test_pieces_in_any_order_overlapping_or_doubled_are_one_session() -> None:
    pieces = [piece(0, 2), piece(2, 4), piece(1, 3), piece(4, 6), piece(2, 4)]
    for order in itertools.permutations(pieces):
        document = read_outputs([cell(*order[:2]), {"cell_type": "markdown"}, cell(*order[2:])])
        assert {id: list(session.lines) for id, session in document.sessions.items()} == {"s": LINES}
        assert document.problems == ()


def test_agents_and_attachments_travel_along() -> None:
    document = read_outputs([cell(piece(0, 2, agent="main", attachments={"a" * 64: "YQ=="}))])
    assert (dict(document.agents), dict(document.attachments)) == ({"main": "s"}, {"a" * 64: "YQ=="})


def test_a_gap_ends_the_session_there_and_is_said() -> None:
    document = read_outputs([cell(piece(0, 2)), cell(piece(4, 6))])
    assert list(document.sessions["s"].lines) == ["a", "b"]
    assert "before 4" in document.problems[0]


def test_two_ways_to_go_on_are_a_session_and_a_fork() -> None:
    document = read_outputs([cell(piece(0, 3)), cell(piece(3, 5)), cell(events_bundle(HEADER, 3, ["x", "y"]))])
    assert sorted("".join(session.lines) for session in document.sessions.values()) == ["abcde", "abcxy"]


@pytest.mark.parametrize(
    "bundle",
    [
        None,
        "x",
        {},
        {"format": 2},
        {**piece(0, 1), "start": -1},
        {**piece(0, 1), "start": True},
        {**piece(0, 1), "events": "a"},
        {**piece(0, 1), "events": [1]},
        {**piece(0, 1), "session": {}},
        {**piece(0, 1), "attachments": {"a": 1}},
    ],
)
def test_what_is_not_understood_is_a_problem_and_never_an_exception(bundle: Any) -> None:
    document = read_outputs([cell(bundle), cell(piece(0, 1))])
    assert len(document.problems) == 1
    assert list(document.sessions) == ["s"]


def test_outputs_of_others_and_damaged_cells_are_passed_over() -> None:
    odd: list[dict[str, Any]] = [{"outputs": None}, {"outputs": ["x", {"data": None}, {"data": {"text/plain": "x"}}]}, {}]
    assert not read_outputs(odd).sessions
