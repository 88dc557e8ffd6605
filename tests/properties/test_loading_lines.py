"""Lines that are read the quick way are judged as by a closer look, and folds that are read on the way are what they are afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.exceptions import LogError
from plan_mode_nb.folds.summary import SUMMARY, fold_summary, session_summary
from plan_mode_nb.log import loaded
from plan_mode_nb.log.deltas import is_delta
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing import logs
from tests.properties.log_strategies import LogMaker

MUTATIONS = 1_500
PIECES: list[dict[str, Any]] = [
    {"type": "text-delta", "index": 0, "text": "wörd\n"},
    {"type": "reasoning-delta", "index": 0, "text": "h\u2028m"},
    {"type": "tool-call-delta", "index": 1, "id": "c", "name": "note", "argumentsDelta": '{"te'},
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "block-end", "index": 0, "block": {"type": "text", "text": "x"}},
    {"type": "usage", "usage": {"inputTokens": 10, "outputTokens": 2}},
    {"type": "finish", "reason": {"kind": "stop"}},
]
UNKNOWN = {"type": "of-tomorrow", "index": 0}
VALUES = """null true false 0 -1 -0 -0.0 1.0 1e2 1e999 01 1. .5 NaN 9007199254740991 9007199254740992 -9007199254740992
123456789012345678901234 "" "x" "\\ud800" "\\ud83d\\ude00" "\\x" "\\u12g4" "\t" [] {} [1,] {"a":1,}
{"type":"usage"} {"type":"text-delta","text":1} {"type":"text-delta","text":"x","type":"usage","usage":null}
{"type":"usage","type":"text-delta","text":"x"} {"kind":1e999} "append"
{"op":"replace","start":0,"end":0} "assistant/chunk" "tool/call" "made/up\"""".split()


def streamed(pieces: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of two turns whose answers were streamed in these pieces."""
    session = logs.new_session()
    for turn in (1, 2):
        chunks = (draft("assistant/chunk", {"turn": turn, "step": 1, "chunk": piece}) for piece in pieces)
        message = logs.assistant(turn, 1, "word", id=f"a{turn}", usage={"inputTokens": 10, "outputTokens": 2})
        session.append(logs.turn_start(turn), logs.step_start(turn, 1), *chunks, message, logs.step_end(turn, 1), logs.turn_end(turn))
    return list(session.lines)


def mutated(chance: random.Random, lines: Sequence[str]) -> list[str]:
    """The lines with one of them changed: a value, a character, a key more or less, or its place."""
    changed = list(lines)
    at = chance.randrange(len(lines))
    line = changed[at]
    match chance.randrange(7):
        case 0 | 1 | 2:
            spots = [spot for spot, character in enumerate(line) if character == ":" and line[spot - 1] == '"']
            spot = chance.choice(spots) + 1
            end = min((place for mark in ",}" if (place := line.find(mark, spot)) > 0), default=len(line))
            changed[at] = line[:spot] + chance.choice(VALUES) + line[end:]
        case 3:
            cut = chance.randrange(len(line))
            changed[at] = line[:cut] + chance.choice(["", "\n", " ", '"', "\ud800", "{", "}", "\\", "é", "}\n{", "}{"]) + line[cut + 1 :]
        case 4:
            event = json.loads(line)
            target = chance.choice([event, event["data"], event["data"].get("chunk", event["data"])])
            key = chance.choice([*target, "ignorable", "surfaceOp", "sourceEventSeqs", "x"])
            target[key] = chance.choice([None, True, 1, "append", [], {}])
            changed[at] = json.dumps(event, separators=chance.choice([(",", ":"), (", ", ": ")]))
        case 5:
            changed[at] = changed[chance.randrange(len(lines))]
        case _:
            event = json.loads(line)
            changed[at] = json.dumps(dict(chance.sample(list(event.items()), len(event))), separators=(",", ":"))
    return changed


def verdict(lines: Sequence[str]) -> object:
    """What opening the lines comes to: the refusal, or every event and the summary."""
    try:
        session = Session(logs.new_session().header, clock=lambda: 1, lines=lines, folds=SUMMARY)
        return [list(session.events), session_summary(session), fold_summary(session.header, session.events), session.place]
    except LogError as refusal:
        return (type(refusal), str(refusal), getattr(refusal, "line", None), getattr(refusal, "seq", None))


@pytest.fixture
def closely(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Every line gets the closer look; undone by the test where it wants the quick way."""
    with monkeypatch.context() as patch:
        patch.setattr(loaded, "is_delta", lambda *_: False)
        patch.setattr(loaded, "decode_next", lambda *_: None)
        yield patch


def test_damage_is_found_and_named_alike_quickly_and_closely(closely: pytest.MonkeyPatch) -> None:
    """The types that judge streamed pieces accept nothing that the rules refuse, and every refusal keeps its sentence."""
    known, newer = streamed(PIECES), streamed([*PIECES, UNKNOWN])
    given_lines = [mutated(random.Random(seed), newer if seed % 10 == 0 else known) for seed in range(MUTATIONS)]
    close = [verdict(each) for each in given_lines]
    closely.undo()
    quick = [verdict(each) for each in given_lines]
    refused = sum(isinstance(each, tuple) for each in close)
    assert MUTATIONS / 4 < refused < MUTATIONS * 3 / 4
    for seed, (mine, theirs) in enumerate(zip(quick, close, strict=True)):
        assert mine == theirs, f"seed {seed}: {set(given_lines[seed]) - set(known)}"


def test_pieces_are_judged_by_their_types_alone() -> None:
    """What this saves is real: of a streamed log's chunks only those that report are looked at by themselves."""
    lines = streamed(PIECES)[:9]
    assert [is_delta(line, seq) for seq, line in enumerate(lines)] == [False] * 2 + [True] * 5 + [False] * 2
    assert not is_delta(lines[2], 3)
    seen: list[str] = []
    loaded.load_lines(lines, lambda event: seen.append(event.type))
    assert seen == ["turn/start", "step/start", "assistant/chunk", "assistant/chunk"]


@given(seed=st.integers(0, 2**32), length=st.integers(0, 60))
def test_folds_read_on_the_way_are_what_they_are_afterwards(seed: int, length: int) -> None:
    """Also after more was appended: reading on the way is resumed like any reading."""
    maker = LogMaker(seed)
    for _ in range(length):
        maker.grow()
    lines = list(maker.session.lines)
    session = Session(maker.session.header, clock=lambda: 1, lines=lines, folds=SUMMARY)
    assert session_summary(session) == fold_summary(session.header, session.events)
    if session.place.turn is None:
        session.append(logs.turn_start(session.place.next_turn))
    assert [session.fold(fold) for fold in SUMMARY] == [fold_value(fold, list(session.events)) for fold in SUMMARY]
