"""What a card sends: one custom message an act, and the check of its shape (product.md, Cards).

A message comes from a browser, so anything may arrive. What has not exactly one of these shapes is no act.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

CardKind = Literal["controls", "review", "question", "approval"]


class CardAnswer(TypedDict):
    """The answer to one question: labels exactly as offered, and the person's own words verbatim where there are any."""

    id: str
    selected: list[str]
    custom: NotRequired[str]


class AnswerAct(TypedDict):
    """An answer to everything that the card asks."""

    kind: Literal["answer"]
    answers: list[CardAnswer]


class DismissAct(TypedDict):
    """Put aside without an answer."""

    kind: Literal["dismiss"]


class StopAct(TypedDict):
    """Stop the turn."""

    kind: Literal["stop"]


class PlanAct(TypedDict):
    """Select plan mode, or leave it."""

    kind: Literal["plan"]
    active: bool


class SteerAct(TypedDict):
    """Words for the next step."""

    kind: Literal["steer"]
    text: str


Act = AnswerAct | DismissAct | StopAct | PlanAct | SteerAct

_SENDS: Final[dict[CardKind, frozenset[str]]] = {
    "controls": frozenset({"stop", "plan", "steer"}),
    "review": frozenset({"answer", "dismiss"}),
    "question": frozenset({"answer", "dismiss"}),
    "approval": frozenset({"answer"}),
}


def read_act(content: object, card: CardKind) -> Act | None:
    """The act that ``content`` is, rebuilt from the keys that belong to it; None when a card of this kind cannot have sent it."""
    act = _act(content)
    return act if act is not None and act["kind"] in _SENDS[card] else None


def _act(content: object) -> Act | None:
    match content:
        case {"kind": "dismiss", **rest} if not rest:
            return {"kind": "dismiss"}
        case {"kind": "stop", **rest} if not rest:
            return {"kind": "stop"}
        case {"kind": "plan", "active": bool(active), **rest} if not rest:
            return {"kind": "plan", "active": active}
        case {"kind": "steer", "text": str(text), **rest} if not rest and text.strip():
            return {"kind": "steer", "text": text}
        case {"kind": "answer", "answers": list(found), **rest} if not rest and found:
            answers = [answer for answer in map(_answer, found) if answer is not None]
            return {"kind": "answer", "answers": answers} if len(answers) == len(found) else None
    return None


def _answer(answer: object) -> CardAnswer | None:
    match answer:
        case {"id": str(name), "selected": list(selected), **rest} if all(isinstance(label, str) for label in selected):
            if not rest:
                return {"id": name, "selected": selected}
            if rest.keys() == {"custom"} and isinstance(rest["custom"], str):
                return {"id": name, "selected": selected, "custom": rest["custom"]}
    return None
