"""Who answers in a terminal: whoever sits at it, by prompts, while a turn has the main thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar, final

from plan_mode_nb.agent.approval import ApprovalRequest, Decided, NobodyToApprove
from plan_mode_nb.agent.questions import NobodyToAsk, QuestionRequest, Reply
from plan_mode_nb.folds.plan import SUBMISSIONS
from plan_mode_nb.hosts.front_end import RunningTurn
from plan_mode_nb.hosts.terminal.keyboard import Keyboard
from plan_mode_nb.hosts.terminal.prompts import Prompts

T = TypeVar("T")


@final
class TerminalPeople:
    """Satisfies QuestionProvider and ApprovalProvider. ``turn`` and ``before`` are set by the display of the turn that runs."""

    def __init__(self, keyboard: Keyboard, prompts: Prompts) -> None:
        self._keyboard = keyboard
        self._prompts = prompts
        self.turn: RunningTurn | None = None
        self.before: Callable[[], None] = lambda: None
        """Called on the main thread ahead of each prompt: what is still to be printed."""

    async def ask(self, request: QuestionRequest) -> Reply:
        """Prompt and wait, without a time limit."""
        if self.turn is None or not self._keyboard.is_there:
            return await NobodyToAsk().ask(request)
        submitted = request.agent.session.fold(SUBMISSIONS)
        previous = submitted[-2].plan if len(submitted) > 1 else None
        return await self._prompt(self.turn, lambda: self._prompts.ask(request, previous))

    async def decide(self, request: ApprovalRequest) -> Decided:
        """Prompt and wait. Anything but exactly the allowing key denies."""
        if self.turn is None or not self._keyboard.is_there:
            return await NobodyToApprove().decide(request)
        return await self._prompt(self.turn, lambda: self._prompts.approve(request))

    async def _prompt(self, turn: RunningTurn, prompt: Callable[[], T]) -> T:
        """Have the main thread prompt. Cancelled: the prompt is taken back first, since the main thread is in it."""

        withdrawn = threading.Event()

        def on_main() -> T:
            self.before()
            self._keyboard.start(withdrawn)
            with turn.user_code():
                return prompt()

        job = asyncio.ensure_future(turn.on_main(on_main))
        try:
            answer: T = await asyncio.shield(job)
        except asyncio.CancelledError:
            self._keyboard.withdraw(withdrawn)
            job.cancel()
            await asyncio.wait([job])
            raise
        return answer
