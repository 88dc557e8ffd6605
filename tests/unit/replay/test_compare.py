"""What two logs of one conversation must have in common, and how a difference reads."""

from __future__ import annotations

from typing import Any

import pytest

from plan_mode_nb.log.events import Event
from plan_mode_nb.replay.compare import Comparison, short_diff
from plan_mode_nb.replay.drift import header_difference
from plan_mode_nb.replay.environment import sanitize_patterns
from plan_mode_nb.replay.outputs import output_difference


def user(id: str, text: str = "hello", time: int = 0) -> Event:
    return Event(
        "user/message", 0, time, {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}, "role": "user", "id": id}
    )


def answered(id: str, by: str, custom: str = "no") -> Event:
    data = {"requestId": id, "outcome": "answered", "by": by, "answers": [{"id": "plan-review", "selected": [], "custom": custom}]}
    return Event("question/answered", 0, 0, data, ignorable=True)


def test_ids_are_renamed_by_first_appearance_and_stay_paired() -> None:
    """Another id in the same place is the same id from then on, in both directions; a mix-up of two is a difference."""
    comparison = Comparison()
    assert comparison.compare(user("a"), user("x", time=99)) is None
    assert comparison.compare(user("b"), user("y")) is None
    assert comparison.compare(user("a"), user("x")) is None
    assert comparison.compare(user("a"), user("y")) is not None
    assert comparison.compare(user("c"), user("x")) is not None


def test_a_name_that_is_no_id_of_ours_is_compared_as_it_is() -> None:
    """A question's own id, a call's id: models and plugins chose them, and they mean something."""
    comparison = Comparison()
    found = comparison.compare(
        answered("a", "person"), Event("question/answered", 0, 0, {**answered("x", "replay").data, "outcome": "dismissed"}, ignorable=True)
    )
    assert found is not None
    assert (found.recorded, found.now) == ("answered", "dismissed")
    changed = answered("a", "person").data | {"answers": [{"id": "other", "selected": [], "custom": "no"}]}
    assert comparison.compare(answered("a", "person"), Event("question/answered", 0, 0, changed, ignorable=True)) is not None


def test_who_answered_and_when_are_not_compared_what_was_answered_is() -> None:
    comparison = Comparison()
    assert comparison.compare(answered("a", "person"), answered("x", "replay")) is None
    found = comparison.compare(answered("b", "person"), answered("y", "replay", "yes"))
    assert found is not None
    assert found.where == "event 0 (question/answered), answers.0.custom"


@pytest.mark.parametrize(
    "change",
    [
        {"content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "more"}]},
        {"content": []},
        {"extra": 1},
        {"role": "assistant"},
        {"source": {"kind": "user", "more": None}},
    ],
)
def test_anything_else_is_a_difference(change: dict[str, Any]) -> None:
    before = user("a")
    assert Comparison().compare(before, Event("user/message", 0, 0, {**before.data, **change})) is not None


def test_one_and_true_and_one_point_zero_are_three_values() -> None:
    values = [1, True, 1.0, "1", None]
    for one in values:
        for other in values:
            same = Comparison().same({"v": one}, {"v": other}) is None
            assert same is (type(one) is type(other))


def test_envelopes_are_compared_too() -> None:
    before = Event("plan/selected", 3, 0, {"active": True, "narrate": True}, ignorable=True)
    found = Comparison().compare(before, Event("plan/selected", 3, 0, {"active": True, "narrate": True}))
    assert found is not None
    assert found.where == "event 3 (plan/selected), ignorable"


def test_the_folder_is_left_out_wherever_a_text_names_it() -> None:
    comparison = Comparison("/home/ada/work/", "/srv/ci")
    assert comparison.same_text("read /home/ada/work/a.csv", "read /srv/ci/a.csv")
    assert not comparison.same_text("read /home/ada/a.csv", "read /srv/ci/a.csv")


def test_a_redacted_value_stands_for_any_and_for_nothing_around_it() -> None:
    comparison = Comparison()
    assert comparison.same_text("key [redacted:A_KEY] end", "key sk-1234 end")
    assert not comparison.same_text("key [redacted:A_KEY] end", "key sk-1234 other")
    assert not comparison.same_text("key x end", "key [redacted:A_KEY] end")


def test_a_long_line_shows_the_part_around_the_difference() -> None:
    shown = short_diff("a" * 3000 + "left" + "b" * 3000, "a" * 3000 + "right" + "b" * 3000)
    assert "left" in shown
    assert "right" in shown
    assert len(shown) < 900


SYSTEM = {"agent:instructions": "Be brief.", "plan:policy": "Plan first.\n\nThen act."}


def header(system: str, **tools: str) -> dict[str, Any]:
    return {
        "config": {},
        "system": system,
        "tools": [{"name": name, "description": text, "parameters": {}} for name, text in tools.items()],
    }


def test_drift_names_the_section_or_tool_with_both_texts() -> None:
    now = header("Be brief.\n\nPlan first.\n\nThen act.", look="Look.")
    comparison = Comparison()
    assert header_difference(7, now, now, SYSTEM, comparison) is None
    section = header_difference(7, header("Be brief.\n\nPlan well.\n\nThen act.", look="Look."), now, SYSTEM, comparison)
    assert section is not None
    assert (section.where, section.recorded, section.now, section.drift) == (
        "section plan:policy of the system prompt",
        "Plan well.\n\nThen act.",
        "Plan first.\n\nThen act.",
        True,
    )
    tool = header_difference(7, header(now["system"], look="Stare."), now, SYSTEM, comparison)
    assert tool is not None
    assert tool.where == "tool look"
    assert tool.recorded.startswith("Stare.")
    gone = header_difference(7, header(now["system"], look="Look.", touch="Touch."), now, SYSTEM, comparison)
    assert gone is not None
    assert (gone.where, gone.now) == ("tool touch", "(no such tool)")


def test_another_model_is_no_drift() -> None:
    found = header_difference(7, {"config": {"model": "a"}}, {"config": {"model": "b"}}, {}, Comparison())
    assert found is not None
    assert not found.drift


def display(**data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {mime.replace("_", "/"): value for mime, value in data.items()}, "metadata": {}}


def test_outputs_are_compared_as_nbval_does() -> None:
    """Streams as one, texts in either form, pictures not at all; an error by its name and words."""
    parts = [{"output_type": "stream", "name": "stdout", "text": part} for part in ("a\n", "b\n")]
    whole = [{"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}]
    assert output_difference(whole, parts) == ""
    assert output_difference([display(text_plain="x", image_png="1")], [display(text_plain="x", image_png="2")]) == ""
    assert output_difference([display(text_plain="x")], [display(text_plain="y")]).splitlines() == [
        "output 1, text/plain",
        "--- recorded",
        "+++ now",
        "-x",
        "+y",
    ]
    assert output_difference([display(text_plain="x")], []) == "output 1 is missing now\nx"
    assert output_difference([], [display(text_plain="x")]) == "output 1 was not there\nx"
    assert output_difference([display(text_plain="at 12:30")], [display(text_plain="at 18:45")], [(r"\d\d:\d\d", "TIME")]) == ""


def test_a_sanitize_file_is_read_as_nbval_reads_it(tmp_path: Any) -> None:
    file = tmp_path / "sanitize.cfg"
    file.write_text("[times]\nregex: \\d+ ms\nreplace: TIME\n\n[ids]\nregex: 0x[0-9a-f]+\nreplace: ID\n")
    assert sanitize_patterns(str(file)) == [(r"\d+ ms", "TIME"), ("0x[0-9a-f]+", "ID")]
    assert sanitize_patterns(None) == []
