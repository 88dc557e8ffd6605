"""The cards: one small family of widgets through which a person controls, reviews, answers and approves while a cell runs.

The widget itself is :mod:`~plan_mode_nb.hosts.kernel.cards.card`, imported when the first card is made.
"""

from plan_mode_nb.hosts.kernel.cards.acts import Act, AnswerAct, CardAnswer, CardKind, DismissAct, PlanAct, SteerAct, StopAct, read_act

__all__ = ["Act", "AnswerAct", "CardAnswer", "CardKind", "DismissAct", "PlanAct", "SteerAct", "StopAct", "read_act"]
