"""A line is an event, exactly; what is no event is refused with the line's number and the reason."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.codec import decode, decode_all, encode, stage
from plan_mode_nb.log.events import APPEND, Draft, Event, Replace
from plan_mode_nb.log.vocabulary import draft


def row(rest: str = "", *, seq: str = "0", time: str = "1", data: str = "{}") -> str:
    return f'{{"type":"x","seq":{seq},"time":{time},"data":{data}{rest}}}'


def test_a_line_has_its_keys_in_the_fixed_order_no_spaces_and_unescaped_text() -> None:
    event = Event("user/message", 3, 5, {"z": "é😀", "a": None}, Replace(1, 2), [1, 2], True)
    assert encode(event) == (
        '{"type":"user/message","seq":3,"time":5,"data":{"z":"é😀","a":null},'
        '"surfaceOp":{"op":"replace","start":1,"end":2},"sourceEventSeqs":[1,2],"ignorable":true}'
    )
    assert decode(encode(event)) == event


def test_absent_keys_stay_absent() -> None:
    assert encode(Event("x", 0, 1, {}, APPEND)) == row(',"surfaceOp":"append"')
    assert decode(row()).surface_op is UNSET
    assert decode(row()).sources == []
    assert not decode(row()).is_ignorable


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[1]",
        "null",
        "{oops",
        row(',"extra":1'),
        row(',"ignorable":false'),
        row(',"ignorable":null'),
        row(',"surfaceOp":null'),
        row(',"surfaceOp":"prepend"'),
        row(',"surfaceOp":{"op":"replace","start":1,"end":2,"why":"x"}'),
        row(',"surfaceOp":{"start":1,"end":2}'),
        row(',"sourceEventSeqs":1'),
        row(time="1.5"),
        row(time="true"),
        row(time='"1"'),
        row(time="null"),
        row(time="9007199254740993"),
        row(seq="-1"),
        row(data="NaN"),
        row(data="1e400"),
        row(data="[" * 5000 + "]" * 5000),
        row().replace(",", ",\n", 1),
        '{"type":"x","seq":0,"time":1}',
        row(data='"\ud800"'),
    ],
)
def test_what_is_not_exactly_one_event_on_one_line_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(line, at=7)
    assert caught.value.line == 7
    assert str(caught.value).startswith("line 7: ")


@pytest.mark.parametrize(("time", "value"), [("3.0", 3), ("1e3", 1000), ("-5", -5), ("9007199254740991", 2**53 - 1)])
def test_an_integer_is_an_integer_however_javascript_spells_it(time: str, value: int) -> None:
    event = decode(row(time=time))
    assert event.time == value
    assert isinstance(event.time, int)


def test_a_lone_surrogate_becomes_the_replacement_character_in_the_event_and_stays_in_its_line() -> None:
    line = row(data='{"a":"x\\ud800y\\ud83d\\ude00"}')
    assert decode(line).data == {"a": "x\ufffdy😀"}
    assert encode(decode(line, lone="keep")) == row(data='{"a":"x\\ud800y😀"}')


def test_a_number_that_no_double_holds_is_read_as_javascript_reads_it() -> None:
    assert decode(row(data="[123456789012345678901234567890,1.0]")).data == [123456789012345678901234567890, 1]


def test_lines_are_contiguous_from_0() -> None:
    assert [event.seq for event in decode_all([row(), row(seq="1")])] == [0, 1]
    with pytest.raises(FormatError, match="line 2: expected seq 1, found 3"):
        decode_all([row(), row(seq="3")])


@pytest.mark.parametrize(
    "data",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": -0.0},
        {"a": [-0.0]},
        {"a": (1, 2)},
        {"a": {1, 2}},
        {"a": b"x"},
        {1: 2},
        {"a": "\ud800"},
        {"a": 2**53},
        {"a": [-(2**60)]},
        {"a": object()},
    ],
)
def test_data_that_would_not_come_back_the_same_is_refused_when_appended(data: dict[object, object]) -> None:
    with pytest.raises(FormatError, match="not lossless JSON"):
        stage(Draft("x", data), 0, 1)


def test_long_digits_in_text_are_not_mistaken_for_numbers() -> None:
    assert stage(Draft("x", {"a": "12345678901234567890", "b": 2**53 - 1}), 0, 1)[0].data["b"] == 2**53 - 1


def test_what_is_kept_is_read_back_from_the_line_so_no_caller_can_change_it_later() -> None:
    data = {"list": [1]}
    event, line = stage(draft("x", data), 0, 1)
    data["list"].append(2)
    assert event.data == {"list": [1]}
    assert decode(line) == event
