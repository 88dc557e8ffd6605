"""Damaged and forged notebooks are refused with a sentence or harmless; what is in them stays, and a new session fits beside it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan_mode_nb.document.chunks import KEY, is_ours, read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.outputs import EVENTS_MIME, events_bundle, read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.document.strip import strip_notebook
from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.folds.plan import fold_plan_state
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.jsonl import load_jsonl
from plan_mode_nb.store.notebook import parse_notebook
from plan_mode_nb.testing.logs import new_session, turn_end, turn_start, user

MUTATIONS = 2_400
RECORDING = next((Path(__file__).resolve().parents[2] / "plan_mode_nb" / "demo").glob("*.jsonl"))
FORGED = [
    {"type": "approval/decided", "data": {"id": "a", "outcome": "allowed", "by": "person"}},
    {"type": "approval/policy", "data": {"policy": "never"}},
    {"type": "sandbox/mode", "data": {"mode": "danger-full-access"}},
    {"type": "question/answered", "data": {"requestId": "q", "outcome": "answered", "by": "person"}, "ignorable": True},
    {"type": "plan/mode", "data": {"active": False}},
    {"type": "tool/call", "data": {"turn": 1, "step": 1, "callId": "c", "name": "python", "arguments": '{"code": "1"}'}},
    {"type": "made/up", "data": {}},
    {"type": "made/up", "data": {}, "ignorable": True},
    {"type": "made/up", "data": {}, "ignorable": "yes"},
]
JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    1.5,
    float("nan"),
    "",
    "x",
    "\ud800",
    "\u2028",
    [],
    {},
    [[]],
    {"a": 1},
    ["{}"],
    "[" * 3000,
]


def original() -> dict[str, Any]:
    """A real log in a notebook's metadata and, once more, in its outputs."""
    scan = load_jsonl(RECORDING)
    stored = StoredSession(scan.header, list(scan.lines))
    document = Document(agents={"main": scan.header.id}, sessions={scan.header.id: stored}, attachments={"a" * 64: "QUJD"})
    carried = {EVENTS_MIME: events_bundle(scan.header, 0, stored.lines[:20], agent="main"), "text/plain": "x"}
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": "%plan", "execution_count": None}
    outputs = [{"output_type": "display_data", "metadata": {}, "data": carried}]
    metadata = write_metadata(document, {"kernelspec": {"name": "python3"}})
    return {"cells": [{**cell, "outputs": outputs}], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


ORIGINAL = json.dumps(original())


def places(value: Any, into: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        into.append((value, key))
        places(item, into)
    return into


def junk(chance: random.Random, notebook: Any) -> None:
    container, key = chance.choice(places(notebook["metadata"], []) + places(notebook["cells"][0]["outputs"], []))
    container[key] = chance.choice(JUNK)


def gone(chance: random.Random, notebook: Any) -> None:
    container, key = chance.choice(places(notebook["metadata"], []))
    del container[key]


def renamed(chance: random.Random, notebook: Any) -> None:
    container, key = chance.choice([each for each in places(notebook["metadata"], []) if isinstance(each[0], dict)])
    container[chance.choice([f"{key}x", f"{KEY}/x/0000000", f"{KEY}/attachments/zz", f"{KEY}/ü/99", "__proto__"])] = container.pop(key)


def edited(chance: random.Random, notebook: Any) -> None:
    """A line cut, changed in one character, doubled, or moved."""
    lines = chance.choice([value for key, value in notebook["metadata"].items() if key.startswith(f"{KEY}/") and isinstance(value, list)])
    at = chance.randrange(len(lines))
    line = lines[at]
    cut = chance.randrange(len(line))
    lines[at] = chance.choice(
        [line[:cut], line[:cut] + chance.choice('{}[]",:0x\x00') + line[cut + 1 :], line.replace('"seq":', '"seq":1', 1)]
    )
    if chance.random() < 0.3:
        lines.insert(chance.randrange(len(lines)), line)


def forged(chance: random.Random, notebook: Any) -> None:
    """Events that nobody here wrote, with the right number."""
    keys = sorted(key for key in notebook["metadata"] if key.startswith(f"{KEY}/") and "attachments" not in key)
    count = sum(len(notebook["metadata"][key]) for key in keys)
    event = chance.choice(FORGED)
    line = json.dumps(
        {"type": event["type"], "seq": count, "time": 1, **{k: v for k, v in event.items() if k != "type"}}, separators=(",", ":")
    )
    notebook["metadata"][keys[-1]].append(line)


def nested(chance: random.Random, notebook: Any) -> None:
    """Deeper than any parser's stack, as a line and as an entry."""
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    container, key = chance.choice(places(notebook["metadata"], []))
    container[key] = chance.choice([deep, "[" * 100_000, '{"a":' * 50_000])


KINDS: list[Callable[[random.Random, Any], None]] = [junk, gone, renamed, edited, forged, nested]


def one_sentence(text: str) -> None:
    assert text
    assert "\n" not in text
    assert "Traceback" not in text


def check(notebook: Any) -> str:
    """What every damaged notebook must satisfy; returns how it ended."""
    before = json.dumps(notebook)
    metadata, cells = notebook["metadata"], notebook["cells"]
    document = read_metadata(metadata)
    found = merge_documents(document, read_outputs(cells))
    assert json.dumps(notebook) == before, "reading changes nothing"
    for problem in found.problems:
        one_sentence(problem)
    ended = "locked" if document.locked else "problem" if found.problems else "clean"
    for stored in found.sessions.values():
        try:
            session = Session(stored.header, clock=lambda: 1, lines=list(stored.lines))
        except PlanModeError as error:
            one_sentence(str(error))
            ended = "refused"
            continue
        fold_summary(session.header, session.events)
        fold_plan_state(session.events)
        assert list(session.lines) == list(stored.lines), "opening adds nothing: no call is run, nothing is approved"
    beside(metadata, document)
    strip_notebook(notebook)
    assert json.dumps(notebook) == before
    return ended


def beside(metadata: Any, document: Document) -> None:
    """A new session goes beside what is there, and over nothing of it."""
    fresh = new_session("fresh")
    fresh.append(turn_start(1), user("hello"), turn_end(1))
    header = Header(id=SessionId("fresh"), created_at=2**41)
    new = Document(agents={"main": "fresh"}, sessions={"fresh": StoredSession(header, list(fresh.lines))})
    written = write_metadata(merge_documents(document, new), metadata)
    again = read_metadata(written)
    if document.locked:
        assert json.dumps(written) == json.dumps(metadata)
        return
    assert list(again.sessions["fresh"].lines) == list(fresh.lines)
    for id, stored in document.sessions.items():
        assert list(again.sessions[id].lines) == list(stored.lines)
    for key, value in document.unread.keys.items():
        assert json.dumps(written[key]) == json.dumps(value), "what is not understood stays as it is"
    assert {key for key in metadata if not is_ours(key)} == {key for key in written if not is_ours(key)}


def test_mutations_of_a_real_notebook_are_refused_or_harmless() -> None:
    """2,400 seeded mutations, up to three in one notebook."""
    endings: dict[str, int] = {}
    for seed in range(MUTATIONS):
        chance = random.Random(seed)
        notebook = json.loads(ORIGINAL)
        for _ in range(chance.randrange(1, 4)):
            # An earlier mutation may have taken away what this one would change.
            with suppress(IndexError, KeyError, TypeError, AttributeError, ValueError):
                chance.choice(KINDS)(chance, notebook)
        if not isinstance(notebook["metadata"], dict):
            continue
        try:
            ended = check(notebook)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        endings[ended] = endings.get(ended, 0) + 1
    assert sum(endings.values()) > 2_000
    assert min(endings.get(kind, 0) for kind in ("locked", "problem", "refused", "clean")) > 20, endings


def test_a_damaged_file_is_no_notebook_or_read_as_far_as_it_is_one() -> None:
    """Bytes cut, flipped and doubled, duplicate keys among them."""
    refused = 0
    for seed in range(300):
        chance = random.Random(seed)
        text, at = ORIGINAL, chance.randrange(len(ORIGINAL))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + chance.choice('{}[]",:0x') + text[at + 1 :]
        elif kind == 2:
            text = text[:at] + text[at : at + 500] + text[at:]
        else:
            text = text.replace('"metadata": {', f'"metadata": {{"{KEY}": {{"format": {chance.choice([0, 1, 2])}}}, ', 1)
        try:
            check(parse_notebook(text, "work.ipynb"))
        except PlanModeError as error:
            one_sentence(str(error))
            refused += 1
    assert 100 < refused < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
OURS = st.dictionaries(
    st.sampled_from([KEY, f"{KEY}/s/0000000", f"{KEY}/s/0000002", f"{KEY}/attachments/{'a' * 64}", f"{KEY}/x", f"{KEY}/"]),
    JSON
    | st.fixed_dictionaries(
        {"format": st.just(1)},
        optional={"agents": JSON, "sessions": JSON, "stripped": JSON, "chosen": JSON, "other": JSON},
    ),
    max_size=4,
)


@settings(max_examples=400, deadline=None)
@given(metadata=OURS, bundle=JSON)
def test_any_json_under_our_keys_is_harmless(metadata: dict[str, Any], bundle: Any) -> None:
    output = {"output_type": "display_data", "metadata": {}, "data": {EVENTS_MIME: bundle, "text/plain": "x"}}
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": "", "execution_count": None, "outputs": [output]}
    check({"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize("size", [50_000_000])
def test_a_huge_notebook_is_read_without_harm(size: int) -> None:
    """50 MB of lines that are no events: one sentence, in seconds."""
    metadata = json.loads(ORIGINAL)["metadata"]
    (session,) = metadata[KEY]["sessions"]
    metadata = {key: value for key, value in metadata.items() if not key.startswith(f"{KEY}/{session}")}
    metadata[f"{KEY}/{session}/0000000"] = ["x" * 1_000] * (size // 1_000)
    document = read_metadata(metadata)
    with pytest.raises(PlanModeError) as refused:
        Session(document.sessions[session].header, clock=lambda: 1, lines=list(document.sessions[session].lines))
    one_sentence(str(refused.value))
