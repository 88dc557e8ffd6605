"""Converting a history piece by piece gives what converting it whole gives, and costs what is new."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from plan_mode_nb.log.messages import assistant_message, text_block, tool_result_message, user_message
from plan_mode_nb.models.convert import NO_RESULT, Dialect, History, RawCall

DIALECT = Dialect("p")


def plain(messages: list[ModelMessage]) -> list[Any]:
    """What goes out, without the moments at which parts were made."""
    return [
        (type(each).__name__, [(type(part).__name__, {k: v for k, v in vars(part).items() if k != "timestamp"}) for part in each.parts])
        for each in messages
    ]


def history_of(moves: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Messages from moves: an answer with n calls, results (some missing, some doubled), a person's words."""
    messages: list[dict[str, Any]] = []
    for number, (kind, count) in enumerate(moves):
        match kind:
            case "answer":
                blocks = [text_block("t" * (count % 3))]
                blocks += [{"type": "tool-call", "id": f"c{k}", "name": "look", "arguments": "{}"} for k in range(count)]
                messages.append(assistant_message(blocks, id=f"a{number}", provider="p" if count % 2 else "q", model="m"))
            case "result":
                messages.append(tool_result_message(f"c{count}", [text_block("r")], id=f"r{number}", is_error=False))
            case _:
                messages.append(user_message(f"u{number}", id=f"u{number}"))
    return messages


MOVES = st.lists(st.tuples(st.sampled_from(["answer", "result", "user"]), st.integers(0, 3)), max_size=25)


@given(MOVES, st.lists(st.integers(0, 25), max_size=6))
@settings(max_examples=150, deadline=None)
def test_growing_shrinking_and_growing_again_gives_what_a_fresh_conversion_gives(moves: list[tuple[str, int]], lengths: list[int]) -> None:
    """Any sequence of prefixes, as forks and compactions may ask for."""
    messages = history_of(moves)
    kept = History(DIALECT)
    for length in [*lengths, len(messages)]:
        prefix = messages[:length]
        assert plain(kept.convert(prefix, {})) == plain(History(DIALECT).convert(prefix, {}))


@given(MOVES, st.integers(0, 24), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_message_replaced_in_the_middle_is_seen(moves: list[tuple[str, int]], place: int, merges: bool) -> None:
    """Pruning puts another result in a result's place; the length stays."""
    dialect = replace(DIALECT, merges_users=merges)
    messages = history_of(moves)
    kept = History(dialect)
    kept.convert(messages, {})
    if place < len(messages):
        changed = [*messages[:place], user_message("pruned", id="x"), *messages[place + 1 :]]
        assert plain(kept.convert(changed, {})) == plain(History(dialect).convert(changed, {}))


@given(MOVES)
@settings(max_examples=150, deadline=None)
def test_no_provider_sees_a_dangling_call_or_two_turns_of_one_side(moves: list[tuple[str, int]]) -> None:
    out = History(DIALECT).convert(history_of(moves), {})
    for before, after in itertools.pairwise(out):
        assert not (isinstance(before, ModelRequest) and isinstance(after, ModelRequest))
    for index, each in enumerate(out):
        if isinstance(each, ModelResponse) and (calls := [part.tool_call_id for part in each.parts if isinstance(part, RawCall)]):
            following = out[index + 1].parts
            assert sorted(part.tool_call_id for part in following if part.part_kind == "tool-return") == sorted(calls)
            kinds = [part.part_kind for part in following]
            assert kinds == sorted(kinds, key=lambda kind: kind != "tool-return")


def test_what_was_converted_is_not_converted_again() -> None:
    """The very same objects come back for everything but the last exchange."""
    messages = history_of([("user", 0), ("answer", 1), ("result", 0)] * 20)
    history = History(DIALECT)
    first = history.convert(messages, {})
    messages = [*messages, assistant_message([text_block("more")], id="z", provider="p", model="m")]
    second = history.convert(messages, {})
    assert all(one is two for one, two in zip(first[:-2], second, strict=False))


def test_a_result_that_arrives_after_its_filler_takes_its_place() -> None:
    messages = history_of([("user", 0), ("answer", 1)])
    history = History(DIALECT)
    assert NO_RESULT in str(history.convert(messages, {}))
    messages = [*messages, tool_result_message("c0", [text_block("r")], id="r", is_error=False)]
    assert NO_RESULT not in str(history.convert(messages, {}))


def test_the_callers_list_may_be_changed_without_harm() -> None:
    messages = history_of([("user", 0), ("answer", 0), ("user", 0)])
    history = History(DIALECT)
    expected = plain(history.convert(messages, {}))
    history.convert(messages, {}).clear()
    assert plain(history.convert(messages, {})) == expected
