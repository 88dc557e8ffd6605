"""Where the part of the log begins and ends that a cell's turn is."""

from __future__ import annotations

from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.replay.recorded import parts
from plan_mode_nb.testing import logs


def handed_back(target: str, start: int = 0) -> Draft:
    """A waiting message is taken out unsent."""
    return draft("agent/inbox/spliced", {**logs.spliced(target, start, removed=1).data, "outcome": "canceled"})


def turn(number: int, *, prompt: int | None = 0) -> list[Draft]:
    """A cell's turn, whose prompt stands at this place of the queue when the turn claims the first."""
    cell = draft("notebook/cell", {"turn": number, "source": f"{number}" * 64})
    return [
        *([] if prompt is None else [logs.spliced("next-turn", prompt, f"p{number}")]),
        *([handed_back("next-turn")] * (prompt or 0)),
        logs.turn_start(number),
        cell,
        *([] if prompt is None else [logs.spliced("next-turn", 0, removed=1)]),
        logs.turn_end(number),
    ]


def cut(session: Session) -> list[tuple[int, int]]:
    return [(part.start, part.end) for part in parts(session.header, session.events)]


def test_what_a_cell_hands_back_before_its_turn_belongs_to_its_turn() -> None:
    session = logs.new_session()
    session.append(logs.spliced("next-turn", 0, "old"))
    session.append(*turn(1, prompt=1))
    assert cut(session) == [(1, len(session))]


def test_what_a_stopped_turn_takes_out_belongs_to_that_turn_also_where_the_next_has_no_prompt() -> None:
    session = logs.new_session()
    session.append(*turn(1))
    session.append(logs.spliced("next-step", 0, "late"))
    first = len(session) - 1
    session.append(*turn(2))
    assert cut(session) == [(0, first), (first + 1, len(session))]
    stopped = logs.new_session()
    early = [*turn(1)]
    stopped.append(*early[:-1], logs.spliced("next-step", 0, "late"), early[-1], handed_back("next-step"))
    end = len(stopped)
    stopped.append(*turn(2, prompt=None))
    assert cut(stopped) == [(0, end), (end, len(stopped))]
