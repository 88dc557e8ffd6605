"""What a card takes from a browser, and what it shows: no browser needed."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import traitlets

from plan_mode_nb.hosts.kernel.cards import Act, CardKind, read_act
from plan_mode_nb.hosts.kernel.cards.card import Card

ANSWER = {"kind": "answer", "answers": [{"id": "a", "selected": ["Approve"]}, {"id": "b", "selected": [], "custom": "  as typed\n"}]}
ACTS: dict[CardKind, list[dict[str, Any]]] = {
    "review": [ANSWER, {"kind": "dismiss"}],
    "question": [ANSWER, {"kind": "dismiss"}],
    "approval": [ANSWER],
    "controls": [{"kind": "stop"}, {"kind": "plan", "active": False}, {"kind": "steer", "text": " use polars "}],
}
EVERY = [act for acts in (ACTS["review"], ACTS["controls"]) for act in acts]
JUNK: list[Any] = [
    None,
    "stop",
    7,
    [],
    {},
    {"kind": None},
    {"kind": ["stop"]},
    {"kind": "Stop"},
    {"kind": "stop", "more": 1},
    {"kind": "dismiss", "answers": []},
    {"kind": "plan"},
    {"kind": "plan", "active": 1},
    {"kind": "plan", "active": "true"},
    {"kind": "steer", "text": " \n"},
    {"kind": "steer", "text": None},
    {"kind": "answer"},
    {"kind": "answer", "answers": []},
    {"kind": "answer", "answers": {}},
    {"kind": "answer", "answers": ["Approve"]},
    {"kind": "answer", "answers": [{"id": "a"}]},
    {"kind": "answer", "answers": [{"id": 1, "selected": []}]},
    {"kind": "answer", "answers": [{"id": "a", "selected": "Approve"}]},
    {"kind": "answer", "answers": [{"id": "a", "selected": [1]}]},
    {"kind": "answer", "answers": [{"id": "a", "selected": [], "custom": None}]},
    {"kind": "answer", "answers": [{"id": "a", "selected": [], "approve": True}]},
    {"kind": "answer", "answers": [{"id": "a", "selected": ["x"]}, None]},
]


@pytest.mark.parametrize("kind", ACTS)
def test_a_kind_of_card_sends_its_own_acts_unchanged_and_no_other(kind: CardKind) -> None:
    assert [read_act(act, kind) for act in ACTS[kind]] == ACTS[kind]
    assert [act for act in EVERY if act not in ACTS[kind] and read_act(act, kind) is not None] == []


@pytest.mark.parametrize("kind", ACTS)
@pytest.mark.parametrize("content", JUNK, ids=repr)
def test_anything_else_is_no_act(kind: CardKind, content: Any) -> None:
    assert read_act(content, kind) is None


def test_junk_is_ignored_with_one_warning_a_card_and_acts_still_arrive(caplog: pytest.LogCaptureFixture) -> None:
    acts: list[Act] = []
    card = Card("review", on_act=acts.append)
    with caplog.at_level(logging.WARNING):
        for content in JUNK:
            card._handle_custom_msg(content, [])
        card._handle_custom_msg({"kind": "dismiss"}, [])
    assert acts == [{"kind": "dismiss"}]
    assert [record.getMessage() for record in caplog.records] == ["ignored a message that no review card sends: None"]


def test_an_act_on_a_decided_card_is_still_handed_on_because_a_card_decides_nothing() -> None:
    acts: list[Act] = []
    card = Card("review", on_act=acts.append, state="approved")
    card._handle_custom_msg({"kind": "dismiss"}, [])
    assert acts == [{"kind": "dismiss"}]


def test_text_read_before_a_decision_cannot_hide_anything_and_the_plans_bytes_stay() -> None:
    text = "rm\u202e x\x1b[2K"
    card = Card("approval", on_act=print, title=text, preview=text, reason=text, tool=text, note=text, markdown=text)
    assert {card.title, card.preview, card.reason, card.tool, card.note} == {"rm⟦U+202E⟧ x␛[2K"}
    assert card.markdown == text
    card.preview = "\r\n\u202e"
    assert card.preview == "\r\n⟦U+202E⟧"


def test_kinds_states_and_traits_are_closed_sets() -> None:
    with pytest.raises(traitlets.TraitError):
        Card("dialog", on_act=print)  # type: ignore[arg-type]
    with pytest.raises(traitlets.TraitError):
        Card("review", on_act=print, state="Approved")
    with pytest.raises(TypeError, match="Card has no trait plans"):
        Card("review", on_act=print, plans="x")


def test_the_front_end_is_one_module_without_imports_that_exports_its_renderer() -> None:
    text = str(Card("review", on_act=print)._esm)
    assert "import " not in text.replace("import('", "")
    assert text.count("export ") == 1
    assert "export default {" in text
