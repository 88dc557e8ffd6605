"""A deepseek-harness log is read by its rules, and written so that it reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.codec import decode, decode_all
from plan_mode_nb.log.dsh import read_jsonl, scan_jsonl, write_jsonl
from plan_mode_nb.log.headers import read_header

HEADER: dict[str, Any] = {"type": "session", "version": 0, "id": "s", "createdAt": 1, "delegationDepth": 0}
TURN = [{"type": "turn/start", "seq": 0, "time": 5, "data": {"turn": 1}}]
END = {"type": "turn/end", "seq": 1, "time": 6, "data": {"turn": 1, "reason": {"kind": "completed"}}}


def file(*rows: Any, header: Any = None, tail: str = "") -> bytes:
    texts = [row if isinstance(row, str) else json.dumps(row) for row in (header or HEADER, *rows)]
    return ("".join(f"{text}\n" for text in texts) + tail).encode()


def packed(kind: str = "text-chunks", *, seq0: int = 1, **data: Any) -> dict[str, Any]:
    base = {"turn": 1, "step": 1, "index": 0, "dt": [1, -2], "texts": ["a", "b", "c"]}
    return {"type": kind, "seq0": seq0, "time0": 10, "data": {**base, **data}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 1}, "upgrade plan_mode_nb"),
        ({"version": 7, "id": 5, "createdAt": None}, "upgrade plan_mode_nb"),
        ({"version": -1}, "nothing reads that one"),
        ({"version": None}, "no `version`"),
        ({"version": "0"}, "no `version`"),
        ({"type": "turn/start"}, "not of the type session"),
        ({"id": 5}, "`id`"),
        ({"createdAt": -1}, "`createdAt`"),
        ({"createdAt": 1.5}, "`createdAt`"),
        ({"delegationDepth": None}, "`delegationDepth`"),
        ({"delegationDepth": True}, "`delegationDepth`"),
        ({"seedLength": -1}, "`seedLength`"),
        ({"cwd": "relative/path"}, "absolute"),
        ({"origin": "elsewhere"}, "`origin`"),
        ({"agentPreset": 1}, "`agentPreset`"),
        ({"parentSession": 1}, "`parentSession`"),
        ({"sandboxMode": "read-only"}, "retired"),
        ({"approvalPolicy": "ask"}, "retired"),
    ],
)
def test_a_header_that_is_none_is_refused_and_says_what_is_wrong(change: dict[str, Any], says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        read_jsonl(file(*TURN, header={**HEADER, **change}))
    assert caught.value.line == 1


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", json.dumps(HEADER).encode(), b"[1]\n", b"\xff\xfe\n", b"[" * 9000 + b"\n"])
def test_a_file_without_a_complete_header_line_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="not a session log"):
        read_jsonl(data)


def test_keys_of_the_header_that_are_not_known_are_ignored() -> None:
    full = {**HEADER, "cwd": "/x", "parentSession": "p", "seedLength": 3, "origin": "subagent", "agentPreset": "a", "zzz": 1}
    header, _ = read_jsonl(file(header=full))
    assert header.to_json() == {key: value for key, value in full.items() if key not in ("type", "zzz")}
    assert read_header(header.to_json()) == header


def test_a_packed_row_is_the_chunks_it_packed() -> None:
    tool = packed("tool-call-chunks", seq0=4, id="c", name="n", dt=[0], args=["{", "}"])
    del tool["data"]["texts"]
    _, lines = read_jsonl(file(*TURN, packed(), tool))
    events = decode_all(lines)
    assert [event.time for event in events] == [5, 10, 11, 9, 10, 10]
    assert [event.data["chunk"] for event in events[1:4]] == [{"type": "text-delta", "index": 0, "text": text} for text in "abc"]
    assert events[5].data == {
        "turn": 1,
        "step": 1,
        "chunk": {"type": "tool-call-delta", "index": 0, "id": "c", "name": "n", "argumentsDelta": "}"},
    }


@pytest.mark.parametrize(
    "row",
    [
        packed(dt=[1]),
        packed(dt=[1, 0.5]),
        packed(texts=[], dt=[]),
        packed(texts=["a", 1, "c"]),
        packed(extra=1),
        packed(turn="1"),
        {**packed(), "extra": 1},
        {**packed(), "time0": 2**53},
        packed(dt=[2**53 - 1, 2**53 - 1]),
        packed("tool-call-chunks"),
    ],
)
def test_a_malformed_packed_row_counts_as_a_line_that_cannot_be_parsed(row: dict[str, Any]) -> None:
    scan = scan_jsonl(file(*TURN, row))
    assert len(scan.lines) == 1
    assert "line 3" in scan.problems[0]
    with pytest.raises(FormatError, match=r"line 3.*restore"):
        scan_jsonl(file(*TURN, row, END))


def test_half_a_surrogate_pair_survives_import_and_export() -> None:
    _, lines = read_jsonl(file(*TURN, packed(texts=["\ud83d", "\ude00", "c"])))
    assert lines[1].endswith('"text":"\\ud83d"}}}')
    assert decode(lines[1]).data["chunk"]["text"] == "\ufffd"
    session = read_header({key: value for key, value in HEADER.items() if key != "type"})
    assert read_jsonl(write_jsonl(session, lines))[1] == lines


def test_a_last_line_without_its_newline_is_a_torn_tail_even_when_it_is_complete() -> None:
    scan = scan_jsonl(file(*TURN, tail=json.dumps(END)))
    assert len(scan.lines) == 1
    assert scan.problems == ["line 3 is cut off and was left out"]


@pytest.mark.parametrize("bad", ["{oops", "", {"type": "turn/end", "seq": 7, "time": 1, "data": {}}, "5", "null"])
def test_damage_in_front_of_a_turns_end_refuses_the_log(bad: Any) -> None:
    with pytest.raises(FormatError, match="restore"):
        scan_jsonl(file(*TURN, bad, END))


@pytest.mark.parametrize("bad", ["{oops", "", {"type": "todo/write", "seq": 7, "time": 1, "data": {}}, "5", "null"])
def test_damage_after_the_last_turns_end_is_left_out_and_said(bad: Any) -> None:
    scan = scan_jsonl(file(*TURN, END, bad, {"type": "todo/write", "seq": 2, "time": 1, "data": {}}))
    assert len(scan.lines) == 2
    assert len(scan.problems) == 1
    assert "line 4" in scan.problems[0]


def test_a_row_in_its_place_that_is_no_event_is_no_damage_but_refused() -> None:
    for bad in ({**TURN[0], "extra": 1}, {**TURN[0], "time": 1.5}, {**TURN[0], "ignorable": False}):
        with pytest.raises(FormatError, match="line 2"):
            scan_jsonl(file(bad))


OLD_REASONS: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    ({"kind": "aborted"}, {"kind": "aborted", "reason": {"kind": "legacy"}}),
    ({"kind": "disposed"}, {"kind": "aborted", "reason": {"kind": "disposed"}}),
    ({"kind": "error", "step": 1, "message": "m"}, {"kind": "error", "error": {"message": "m", "code": "UNKNOWN"}}),
    ({"kind": "error", "step": 1, "message": "m", "code": "C"}, {"kind": "error", "error": {"message": "m", "code": "C"}}),
    (
        {"kind": "error", "step": 0, "failure": {"message": "m", "code": "C", "status": 500}},
        {"kind": "error", "error": {"message": "m", "code": "C", "status": 500}},
    ),
    ({"kind": "aborted", "reason": {"kind": "user"}}, {"kind": "aborted", "reason": {"kind": "user"}}),
    ({"kind": "error", "error": {"message": "m", "code": "C"}}, {"kind": "error", "error": {"message": "m", "code": "C"}}),
    ({"kind": "someday", "more": 1}, {"kind": "someday", "more": 1}),
    ({"kind": "completed", "extra": 1}, None),
    ({"kind": "aborted", "extra": 1}, None),
    ({"kind": "error", "step": -1, "message": "m"}, None),
    ({"kind": "error", "step": 1, "message": 5}, None),
    ({"kind": "error", "step": 1, "failure": {"message": "m", "code": "C", "status": "500"}}, None),
    ({}, None),
]


@pytest.mark.parametrize(("old", "new"), OLD_REASONS)
def test_an_old_end_reason_is_upgraded_and_a_malformed_one_refused(old: dict[str, Any], new: dict[str, Any] | None) -> None:
    data = file(*TURN, {**END, "data": {"turn": 1, "reason": old}})
    if new is None:
        with pytest.raises(FormatError, match="old shape that is damaged"):
            read_jsonl(data)
    else:
        assert decode(read_jsonl(data)[1][1]).data["reason"] == new


def test_old_messages_get_an_identity_from_session_and_seq() -> None:
    text = [{"type": "text", "text": "x"}]
    rows = [
        {"type": "turn/start", "data": {"turn": 1, "trigger": {"kind": "message"}}},
        {"type": "user/message", "data": {"content": text, "source": {"kind": "user"}}, "surfaceOp": "append"},
        {"type": "steering/message", "data": {"turn": 1, "content": text, "source": {"kind": "user"}}, "surfaceOp": "append"},
        {
            "type": "assistant/message",
            "data": {"turn": 1, "step": 1, "content": text, "provenance": {"provider": "p"}},
            "surfaceOp": "append",
        },
        {"type": "tool/result", "data": {"turn": 1, "step": 1, "callId": "c", "content": text, "isError": False}, "surfaceOp": "append"},
        {
            "type": "tool/result",
            "data": {"turn": 1, "step": 1, "callId": "c", "content": [], "isError": False},
            "surfaceOp": {"op": "replace", "start": 4, "end": 4},
            "sourceEventSeqs": [4],
        },
    ]
    start, person, steer, model, result, pruned = decode_all(
        read_jsonl(file(*({**row, "seq": seq, "time": 1} for seq, row in enumerate(rows))))[1]
    )
    assert start.data == {"turn": 1}
    assert person.data["id"] == "legacy-message:s:1"
    assert (steer.type, steer.data["id"], steer.data["role"]) == ("user/message", "legacy-message:s:2", "user")
    assert model.data["message"]["source"] == {"provider": "p", "kind": "model"}
    assert result.data["message"]["content"][0]["toolCallId"] == "c"
    assert pruned.data["message"]["id"] == result.data["message"]["id"] == "legacy-message:s:4"


@pytest.mark.parametrize(
    "row",
    [
        {"type": "turn/start", "data": {"turn": 0, "trigger": {"kind": "message"}}},
        {"type": "turn/start", "data": {"turn": 1, "trigger": {}}},
        {"type": "turn/start", "data": {"turn": 1, "trigger": {"kind": "m"}, "more": 1}},
        {"type": "steering/message", "data": [], "surfaceOp": "append"},
        {"type": "steering/message", "data": {"turn": 1}, "surfaceOp": "append"},
    ],
)
def test_an_old_shape_that_is_malformed_is_damage_not_age(row: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="old shape that is damaged"):
        read_jsonl(file({**row, "seq": 0, "time": 1}))


def test_a_steer_that_was_already_wrapped_is_unwrapped() -> None:
    message = {"content": [], "source": {"kind": "user"}, "role": "user", "id": "m"}
    row = {"type": "steering/message", "seq": 0, "time": 1, "data": {"turn": 1, "message": message}, "surfaceOp": "append"}
    assert decode(read_jsonl(file(row))[1][0]).data == message


def test_lines_come_out_as_this_format_fixes_them_whatever_order_the_row_had() -> None:
    row = '{"data": {"turn": 1}, "time": 5.0, "seq": 0, "type": "turn/start"}'
    assert read_jsonl(file(row))[1] == ['{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}']
