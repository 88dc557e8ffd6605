"""Lines, files and metadata give back what was put in."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import sessions

from plan_mode_nb.document.chunks import CHUNK_CODE_POINTS, chunked, read_metadata, write_metadata
from plan_mode_nb.document.document import StoredSession, one_session
from plan_mode_nb.log.codec import decode, decode_all, encode, stage
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import SAFE_INTEGER, Draft, Header, SessionId
from plan_mode_nb.log.session import Session

NUMBERS = st.integers(-SAFE_INTEGER, SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: x != 0 or str(x) == "0.0"
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
HEADER = Header(id=SessionId("s"), created_at=1)


@settings(max_examples=300, deadline=None)
@given(data=JSON, seq=st.integers(0, SAFE_INTEGER), time=st.integers(-SAFE_INTEGER, SAFE_INTEGER))
def test_an_event_comes_back_from_its_line_and_the_line_from_the_event(data: Any, seq: int, time: int) -> None:
    event, line = stage(Draft("x", data), seq, time)
    assert "\n" not in line
    assert decode(line) == event
    assert encode(decode(line)) == line
    assert json.loads(line) == {"type": "x", "seq": seq, "time": time, "data": data}


@settings(max_examples=40, deadline=None)
@given(session=sessions())
def test_export_and_import_give_the_same_session(session: Session) -> None:
    header, lines = read_jsonl(write_jsonl(session.header, session.lines))
    assert (header, lines) == (session.header, session.lines)
    again = Session(header, clock=lambda: 1, lines=lines)
    assert again.events == session.events
    assert again.place == session.place


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["text-chunks", "reasoning-chunks", "tool-call-chunks"]),
        st.lists(st.text(max_size=5), min_size=1, max_size=6),
        st.booleans(),
        st.integers(-5, 5),
    ),
    max_size=6,
)


@settings(max_examples=120, deadline=None)
@given(runs=RUNS)
def test_packed_rows_unpack_to_their_members_and_an_import_of_the_export_is_the_same(runs: list[tuple[str, list[str], bool, int]]) -> None:
    rows: list[str] = []
    members: list[dict[str, Any]] = []
    for kind, texts, named, gap in runs:
        data: dict[str, Any] = {"turn": 1, "step": 2, "index": 3, "dt": [gap] * (len(texts) - 1)}
        identity = ({"id": "c", "name": "n"} if named else {"id": "c"}) if kind == "tool-call-chunks" else {}
        data = {**data, **identity, "args" if identity else "texts": texts}
        rows.append(json.dumps({"type": kind, "seq0": len(members), "time0": 100, "data": data}))
        for place, text in enumerate(texts):
            chunk = (
                {"type": "tool-call-delta", "index": 3, **identity, "argumentsDelta": text}
                if identity
                else {"type": kind.replace("chunks", "delta"), "index": 3, "text": text}
            )
            at = 100 + gap * place
            members.append({"type": "assistant/chunk", "seq": len(members), "time": at, "data": {"turn": 1, "step": 2, "chunk": chunk}})
    file = "\n".join([json.dumps({"type": "session", **HEADER.to_json()}), *rows, ""]).encode()
    header, lines = read_jsonl(file)
    assert [json.loads(line) for line in lines] == members
    assert read_jsonl(write_jsonl(header, lines)) == (header, lines)


LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).map(lambda text: text * 300), max_size=30)


@settings(max_examples=80, deadline=None)
@given(lines=LINES)
def test_chunks_are_a_function_of_the_lines_alone_and_take_no_more_once_full(lines: list[str]) -> None:
    chunks = list(chunked(lines))
    assert [line for _, chunk in chunks for line in chunk] == lines
    start = 0
    for at, chunk in chunks:
        assert at == start
        assert sum(map(len, chunk[:-1])) < CHUNK_CODE_POINTS
        start += len(chunk)
    assert all(sum(map(len, chunk)) >= CHUNK_CODE_POINTS for _, chunk in chunks[:-1])
    for cut in range(len(lines) + 1):
        full = [chunk for chunk in chunked(lines[:cut]) if sum(map(len, chunk[1])) >= CHUNK_CODE_POINTS]
        assert full == chunks[: len(full)]


@settings(max_examples=60, deadline=None)
@given(lines=LINES, other=st.dictionaries(st.sampled_from(["kernelspec", "plan_mode_nbx", "language_info"]), st.integers()))
def test_metadata_gives_back_the_document_and_leaves_other_keys_alone(lines: list[str], other: dict[str, int]) -> None:
    document = one_session(StoredSession(HEADER, lines), agent="main")
    written = write_metadata(document, other)
    read = read_metadata(written)
    assert list(read.sessions["s"].lines) == lines
    assert read.agents == {"main": "s"}
    assert read.problems == ()
    assert {key: written[key] for key in other} == other
    assert write_metadata(read, written) == written


@settings(max_examples=30, deadline=None)
@given(session=sessions())
def test_a_session_comes_back_from_a_notebook(session: Session) -> None:
    written = write_metadata(one_session(StoredSession(session.header, session.lines)), {})
    back = read_metadata(json.loads(json.dumps(written))).sessions["s"]
    assert decode_all(back.lines) == session.events
    assert back.header == session.header
