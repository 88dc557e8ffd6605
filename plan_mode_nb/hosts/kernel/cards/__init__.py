"""The cards: one small family of widgets through which a person controls, reviews, answers and approves while a cell runs."""

from plan_mode_nb.hosts.kernel.cards.acts import Act, AnswerAct, CardAnswer, CardKind, DismissAct, PlanAct, SteerAct, StopAct, read_act
from plan_mode_nb.hosts.kernel.cards.card import Card, CardState

__all__ = ["Act", "AnswerAct", "Card", "CardAnswer", "CardKind", "CardState", "DismissAct", "PlanAct", "SteerAct", "StopAct", "read_act"]
