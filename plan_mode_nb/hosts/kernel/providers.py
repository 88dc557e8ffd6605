"""Asking the person with a card: the providers of questions and of approvals while a cell runs its turn.

A provider shows and returns what was chosen. The card's later state comes from the events that the choice led to, not from here: so a card
says approved only after the approval is in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.questions import Answer, NobodyToAsk, QuestionRequest, Reply
from plan_mode_nb.folds.plan import SUBMISSIONS
from plan_mode_nb.hosts.kernel.cards.acts import Act
from plan_mode_nb.hosts.kernel.turn import CellTurn, active_turn

ALLOW, REJECT = "Allow once", "Reject"
APPROVAL_ID = "approval"
OnAct = Callable[[Act], object]


class CardSurface(Protocol):
    """Where cards appear: the display of the turn that runs. Both calls come on the main thread."""

    def ask(self, request: QuestionRequest, previous: str | None, on_act: OnAct) -> None:
        """Show the card of a question or review. ``previous``: the plan submitted before this one."""

    def approve(self, request: ApprovalRequest, on_act: OnAct) -> None:
        """Show the card of an approval."""


class CardProvider:
    """Satisfies QuestionProvider and ApprovalProvider. ``surface`` is None while no turn is displayed."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.surface: CardSurface | None = None

    def _place(self) -> tuple[CellTurn[Any], CardSurface] | None:
        """Where a card can be answered now; None in a headless run, where waiting would be for ever."""
        turn = active_turn(self._shell)
        if turn is None or self.surface is None or not self._shell.kernel._allow_stdin:
            return None
        return turn, self.surface

    async def ask(self, request: QuestionRequest) -> Reply:
        """Show the card and wait for one act, without a time limit."""
        place = self._place()
        if place is None:
            return await NobodyToAsk().ask(request)
        turn, surface = place
        submitted = request.agent.session.fold(SUBMISSIONS)
        previous = submitted[-2].plan if len(submitted) > 1 else None
        act = await _first_act(turn, lambda on_act: surface.ask(request, previous, on_act))
        if act["kind"] != "answer":
            return Reply("dismissed")
        return Reply("answered", tuple(Answer(each["id"], tuple(each["selected"]), each.get("custom")) for each in act["answers"]))

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Show the card and wait. Anything but exactly the one allowing label denies."""
        place = self._place()
        if place is None:
            return Decided("unavailable", by="policy")
        turn, surface = place
        act = await _first_act(turn, lambda on_act: surface.approve(request, on_act))
        allows = act["kind"] == "answer" and len(act["answers"]) == 1 and act["answers"][0] == {"id": APPROVAL_ID, "selected": [ALLOW]}
        return Decided("allowed-once" if allows else "rejected")


async def _first_act(turn: CellTurn[Any], show: Callable[[OnAct], None]) -> Act:
    """The first act of the card that ``show`` displays. Later ones have no effect: the first decided."""
    loop = asyncio.get_running_loop()
    chosen: asyncio.Future[Act] = loop.create_future()

    def settle(act: Act) -> None:
        if not chosen.done():
            chosen.set_result(act)

    await turn.on_main(show, lambda act: loop.call_soon_threadsafe(settle, act))
    return await chosen
