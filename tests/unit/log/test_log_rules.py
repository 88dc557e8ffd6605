"""The rules of a log: vocabulary, payloads, surface, and the order of turns, steps, calls and results."""

from __future__ import annotations

import pytest

from plan_mode_nb.exceptions import FormatError, InvariantError
from plan_mode_nb.folds.history import NODES
from plan_mode_nb.log.events import Draft, Replace
from plan_mode_nb.log.vocabulary import KNOWN, OURS, draft, surface
from plan_mode_nb.testing.logs import (
    assistant,
    call_block,
    new_session,
    plan_mode,
    plan_selected,
    request_header,
    step_end,
    step_start,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    usage_chunk,
    user,
)

OPEN_STEP = [turn_start(1), step_start(1, 1)]
TEXT = {"content": [{"type": "text", "text": "x"}], "source": {"kind": "user"}, "role": "user", "id": "m"}


def header_marking(**defaults: object) -> dict[str, object]:
    return {"header": {"config": {"provider": "p", "model": "m"}, "adapterDefaults": defaults}}


def replacing(start: int, end: int, *sources: int) -> Draft:
    return surface("user/message", TEXT, op=Replace(start, end), sources=list(sources))


def test_the_vocabulary_is_deepseek_harness_plus_ours() -> None:
    assert len(KNOWN - OURS) == 48
    assert frozenset({"plan/selected", "question/asked", "question/answered", "notebook/cell"}) == OURS


def test_ours_are_written_ignorable() -> None:
    session = new_session()
    session.append(plan_selected(True), plan_mode(True))
    assert [event.is_ignorable for event in session.events] == [True, False]


def test_an_unknown_type_refuses_the_log_unless_it_says_that_it_may_be_skipped() -> None:
    session = new_session()
    session.append(Draft("future/thing", {"any": ["shape"]}, ignorable=True))
    for refused in (draft("future/thing", {}), Draft("mode/set", {}, ignorable=True), draft("request/header-delta", {})):
        with pytest.raises(FormatError, match="type"):
            session.append(refused)
    assert len(session) == 1


@pytest.mark.parametrize("active", [1, 0, "true", None, [], "off"])
def test_a_plan_state_that_is_no_boolean_is_refused_never_read_by_truthiness(active: object) -> None:
    for refused in (draft("plan/mode", {"active": active}), draft("plan/selected", {"active": active, "narrate": True})):
        with pytest.raises(InvariantError, match="must be true or false"):
            new_session().append(refused)


@pytest.mark.parametrize(
    "drafts",
    [
        [step_start(1, 1)],
        [turn_start(2)],
        [turn_start(1), turn_start(2)],
        [turn_start(1), turn_end(2)],
        [turn_start(1), step_start(2, 1)],
        [turn_start(1), step_start(1, 2)],
        [*OPEN_STEP, turn_end(1)],
        [*OPEN_STEP, step_start(1, 2)],
        [*OPEN_STEP, step_end(1, 2)],
        [*OPEN_STEP, assistant(1, 2, "x")],
        [turn_start(1), assistant(1, 1, "x")],
        [turn_start(1), tool_call(1, 1, "c")],
        [*OPEN_STEP, tool_result(1, 1, "c")],
        [*OPEN_STEP, tool_call(1, 1, "c"), step_end(1, 1), step_start(1, 2), tool_result(1, 2, "c")],
        [*OPEN_STEP, tool_call(1, 1, "c"), tool_result(1, 1, "c"), tool_result(1, 1, "c", id="again")],
        [request_header()],
        [draft("todo/write", {"todos": []})],
        [turn_start(1), usage_chunk(1, 1, 1, 1)],
    ],
)
def test_what_is_out_of_order_is_not_appended(drafts: list[Draft]) -> None:
    session = new_session()
    if drafts[:-1]:
        session.append(*drafts[:-1])
    with pytest.raises(InvariantError):
        session.append(drafts[-1])
    assert len(session) == len(drafts) - 1


def test_order_is_followed_but_not_demanded_of_a_log_that_is_loaded() -> None:
    """deepseek-harness loads such logs, so they must load here; what is appended afterwards is in order again."""
    session = new_session(
        lines=[
            '{"type":"turn/start","seq":0,"time":1,"data":{"turn":4}}',
            '{"type":"todo/write","seq":1,"time":1,"data":{"todos":[]}}',
            '{"type":"step/end","seq":2,"time":1,"data":{"turn":9,"step":9}}',
            '{"type":"turn/end","seq":3,"time":1,"data":{"turn":4,"reason":{"kind":"completed"}}}',
            '{"type":"todo/write","seq":4,"time":1,"data":{"todos":[]}}',
        ]
    )
    assert session.place.next_turn == 5
    session.append(turn_start(5), step_start(5, 1))


def test_the_place_names_the_calls_that_have_no_result_yet() -> None:
    session = new_session()
    session.append(*OPEN_STEP, assistant(1, 1, call_block("a"), call_block("b")), tool_call(1, 1, "a"), tool_call(1, 1, "b"))
    assert session.place.calls == ("a", "b")
    session.append(tool_result(1, 1, "a"))
    assert session.place.calls == ("b",)
    session.append(step_end(1, 1))
    assert (session.place.step, session.place.next_step, session.place.calls) == (None, 2, ())


def test_a_selection_of_plan_mode_is_legal_between_turns() -> None:
    session = new_session()
    session.append(plan_mode(True), turn_start(1), turn_end(1), plan_selected(False))
    assert len(session) == 4


@pytest.mark.parametrize(
    "refused",
    [
        Draft("user/message", TEXT),
        surface("todo/write", {"todos": []}),
        Draft("todo/write", {"todos": []}, source_event_seqs=[0]),
        Draft("future/thing", {}, surface_op="append", ignorable=True),
        surface("user/message", TEXT, sources=[]),
        surface("user/message", TEXT, sources=[0, 0]),
        surface("user/message", TEXT, sources=[3]),
        surface("user/message", TEXT, sources=[-1]),
        replacing(0, 2, 1, 2),
        replacing(1, 2, 1),
        replacing(2, 1, 1, 2),
        surface("tool/result", tool_result(1, 1, "c").data, op=Replace(1, 1), sources=[1]),
    ],
)
def test_a_surface_rule_that_is_broken_refuses_the_event(refused: Draft) -> None:
    session = new_session()
    session.append(turn_start(1), user(id="a"), user(id="b"))
    with pytest.raises(InvariantError):
        session.append(refused)


def test_a_replacement_stands_where_its_span_stood() -> None:
    session = new_session()
    session.append(turn_start(1), user(id="a"), user(id="b"), user(id="c"), replacing(1, 2, 1, 2))
    assert list(session.fold(NODES)) == [4, 3]
    session.append(replacing(4, 3, 4, 3))
    assert list(session.fold(NODES)) == [5]


def test_a_batch_may_replace_what_it_appends() -> None:
    session = new_session()
    session.append(turn_start(1), user(id="a"), replacing(1, 1, 1))
    assert list(session.fold(NODES)) == [2]


def test_a_result_may_be_rewritten_in_place_and_only_its_content() -> None:
    session = new_session()
    session.append(*OPEN_STEP, tool_call(1, 1, "c"), tool_result(1, 1, "c", "long"))
    pruned = surface("tool/result", tool_result(1, 1, "c", "short").data, op=Replace(3, 3), sources=[3])
    session.append(pruned)
    other = surface("tool/result", tool_result(1, 1, "d", "short").data, op=Replace(4, 4), sources=[4])
    with pytest.raises(InvariantError, match="only the result's content"):
        session.append(other)


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("user/message", {**TEXT, "role": "assistant"}),
        ("user/message", {**TEXT, "id": ""}),
        ("user/message", {**TEXT, "source": {}}),
        ("user/message", {**TEXT, "content": "x"}),
        ("user/message", {**TEXT, "content": ["x"]}),
        ("assistant/message", {"turn": 1, "step": 1, "message": {**TEXT, "role": "assistant"}}),
        ("assistant/message", {**assistant(1, 1, "x").data, "usage": {"inputTokens": "many", "outputTokens": 1}}),
        ("tool/result", {"turn": 1, "step": 1, "message": TEXT}),
        ("tool/result", {**tool_result(1, 1, "c").data, "message": {**tool_result(1, 1, "c").data["message"], "content": []}}),
    ],
)
def test_a_message_that_deepseek_harness_would_refuse_is_refused(type: str, data: dict[str, object]) -> None:
    session = new_session()
    session.append(*OPEN_STEP, tool_call(1, 1, "c"))
    with pytest.raises(InvariantError):
        session.append(surface(type, data))


@pytest.mark.parametrize(
    "data",
    [
        {"header": {"config": {"provider": "p"}}, "reason": "initial"},
        {"header": {"config": {"provider": "", "model": "m"}}, "reason": "initial"},
        {"header": {"config": {"provider": "p", "model": "m"}}, "reason": "fallback"},
        {"header": {"config": {"provider": "p", "model": "m", "reasoningEffort": ""}}, "reason": "initial"},
        {"header": {"config": {"provider": "p", "model": "m"}, "adapterDefaults": {"maxTokens": True}}, "reason": "initial"},
        {},
    ],
)
def test_a_request_header_that_no_request_can_be_made_from_is_refused(data: dict[str, object]) -> None:
    session = new_session()
    session.append(turn_start(1))
    with pytest.raises(InvariantError):
        session.append(draft("request/header", data))


@pytest.mark.parametrize(
    "data",
    [
        {"target": "someday", "start": 0, "inserted": []},
        {"target": "next-turn", "start": "0", "inserted": []},
        {"target": "next-turn", "start": 0},
    ],
)
def test_a_splice_that_cannot_be_applied_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InvariantError, match="agent/inbox/spliced"):
        new_session().append(draft("agent/inbox/spliced", data))


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (draft("turn/start", {}), "`turn` is missing"),
        (draft("turn/start", {"turn": True}), "`turn` must be a safe integer, not a boolean"),
        (draft("turn/start", {"turn": 2.5}), "`turn` must be a safe integer, not a number"),
        (draft("todo/write", {"todos": [{"content": "x", "status": None}]}), "`todos[0].status` must be a string, not null"),
        (draft("todo/write", {"todos": {}}), "`todos` must be a list, not an object"),
        (Draft("todo/write", []), "data must be an object, not a list"),
        (surface("user/message", {**TEXT, "id": ""}), "`id` must be a string that is not empty"),
        (surface("user/message", {**TEXT, "role": "system"}), "`role` may not be 'system'"),
        (draft("request/header", header_marking(x=True)), "`header.adapterDefaults` may not have `x`"),
        (draft("request/header", header_marking(**{"x" * 999: 1})), "`header.adapterDefaults` may not have `xxx"),
        (draft("request/header", header_marking(maxTokens=True)), "may mark reasoningEffort and maxTokens"),
        (draft("question/answered", {"requestId": "q", "outcome": "z" * 999, "by": "person"}), "`outcome` may not be 'zzz"),
    ],
)
def test_a_refused_payload_is_told_by_its_key_and_what_it_must_be(refused: Draft, sentence: str) -> None:
    session = new_session()
    session.append(turn_start(1))
    with pytest.raises(InvariantError) as found:
        session.append(refused)
    assert sentence in str(found.value)
    assert len(str(found.value)) < 200


@pytest.mark.parametrize(
    ("seq", "sentence"),
    [("-1", "`seq` must be a safe integer, 0 or more"), ("9007199254740992", "`seq` must be a safe integer"), ('"0"', "not a string")],
)
def test_an_envelope_out_of_range_is_told_by_its_key(seq: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=r"^line 1: not an event: `seq` must") as found:
        new_session(lines=[f'{{"type":"turn/start","seq":{seq},"time":0,"data":{{"turn":1}}}}'])
    assert sentence in str(found.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[]", "line 1: not an event: it must be an object, not a list"),
        ('{"type":"turn/start","seq":0,"time":0}', "line 1: not an event: `data` is missing"),
        ('{"type":"turn/start","seq":0,"time":0,"data":{},"more":1}', "line 1: not an event: it may not have `more`"),
        ('{"type":"user/message","seq":0,"time":0,"data":{},"surfaceOp":"x"}', "line 1: not an event: `surfaceOp` may not be 'x'"),
    ],
)
def test_a_line_that_is_no_event_is_told_by_what_is_wrong_with_it(line: str, sentence: str) -> None:
    with pytest.raises(FormatError) as found:
        new_session(lines=[line])
    assert str(found.value) == sentence
