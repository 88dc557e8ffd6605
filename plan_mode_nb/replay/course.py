"""A live session led along a recorded one: what comes next, what of it came from outside, and the first difference.

Everything runs on the loop that drives the agent. State is read from the log alone, so a selection or a steer may be fed at any moment in
which the loop waits, as long as it lands at its recorded place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.dispatch import INSIDE
from plan_mode_nb.agent.model import Request
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.header import HEADER
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.log.events import Draft, Event
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.recording import RECORDING, RecordedAnswer, recorded_answers
from plan_mode_nb.replay.compacting import answers_of_command, asks_for_summary
from plan_mode_nb.replay.compare import Comparison, Difference
from plan_mode_nb.replay.compared import Compared
from plan_mode_nb.replay.prefixes import Prefixes
from plan_mode_nb.replay.recorded import Cut, Part, cut_of, is_played

Stop = Callable[[LoopAgent, dict[str, Any]], None]
Reopen = Callable[[LoopAgent], LoopAgent]
_CLOSING: Final = ("tool/result", "step/end", "turn/end")


def cancel(agent: LoopAgent, cause: dict[str, Any]) -> None:
    """Stop the turn where no host has a button of its own."""
    agent.cancel(cause)


class Course(Compared):
    """What comes next, and how the turn is led there. ``is_rebuilt``: what the part made is made again by the tools that rebuild."""

    def __init__(
        self,
        recorded: Sequence[Event],
        session: Session,
        comparison: Comparison,
        *,
        expected: Collection[int] = (),
        accepts_drift: bool = False,
        feeds: Callable[[str], bool] = lambda command: True,
        plays: Callable[[str], bool] = lambda type: True,
        stop: Stop = cancel,
    ) -> None:
        """``session``: what it holds already (a seed) is compared here. ``expected``: where the parts begin that cells will do; other
        commands are fed, where ``feeds`` says so by name. ``plays``: which events may be appended as they are recorded, by type."""
        super().__init__(recorded, session, comparison, accepts_drift=accepts_drift)
        self.agent: LoopAgent | None = None
        self.part: Part | None = None
        self.is_volatile = self.runs_all = self.is_rebuilt = False
        self._expected = frozenset(expected)
        self._feeds = feeds
        self._plays = plays
        self._stop = stop
        self._cut: Cut | None = None
        self._answers: list[RecordedAnswer] = []
        self._asked = 0
        self._header, self._history, self._context = Prefixes(HEADER), Prefixes(HISTORY), Prefixes(CONTEXT)

    # -- parts

    async def lead(self, agent: LoopAgent, part: Part, reopen: Reopen) -> LoopAgent:
        """Feed what stands before a part, and make everything ready for it; returns the agent that runs it (a restart gives another)."""
        self.agent = agent
        while self.place < part.start and (event := self.next) is not None:
            if await self._fed(agent, event):
                continue
            restart = self._restart(part.start)
            if restart is None:
                self.note(Difference(event.seq, f"event {event.seq}, which no cell caused", f"{event.type}", "nothing"))
            else:
                self.agent = agent = reopen(agent)
                if self.place <= restart:
                    self.note(Difference(event.seq, f"the restart at event {restart}", "what closes the log before it", "nothing"))
        self.check()
        self.take_up(agent, part)
        return agent

    def take_up(self, agent: LoopAgent, part: Part) -> None:
        """The live session stands at a part, and this agent runs it."""
        self.agent, self.part, self._asked = agent, part, 0
        self.is_rebuilt = part.ended_well
        self._cut = cut_of(self.recorded, part)
        self._answers = recorded_answers(self.recorded[part.start : part.end])

    def config(self, config: LoopConfig) -> LoopConfig:
        """A loop's configuration as it was: limits belong to the deployment and are taken from the recording."""
        part = self.part
        if part is None:
            return config
        events = self.recorded[part.start : part.end]
        steps = max(1, sum(event.type == "step/start" for event in events))
        is_limit = part.reason is not None and part.reason.get("error", {}).get("code") == "MAX_STEPS"
        deltas = any(event.type == "assistant/chunk" and event.data["chunk"]["type"].endswith("-delta") for event in events)
        return replace(config, max_steps=steps if is_limit else max(steps, config.max_steps), record_chunks=deltas, check="full")

    @property
    def is_played(self) -> bool:
        """Whether the part is played event for event (see :func:`is_played`)."""
        return self.part is not None and is_played(self.recorded, self.part)

    def play(self) -> None:
        """Append the part as it is recorded."""
        assert self.part is not None
        while self.place < self.part.end and self.difference is None:
            self._append(self.recorded[self.place])

    def arrive(self) -> None:
        """The part is over.

        Raises:
            ReplayError: something differs, or the recording goes on.
        """
        part = self.part
        event = self.next
        if part is not None and event is not None and self.place < part.end:
            self.note(Difference(event.seq, f"event {event.seq}", f"{event.type}", "nothing: it ended before"))
        self.check()

    # -- within a turn, at every moment in which the loop waits

    async def feed(self) -> None:
        """Feed what comes from outside at this place: steers, and commands from a chip or card.

        Raises:
            ReplayError: something differed before; the turn must not go on.
        """
        self.check()
        while (event := self.next) is not None and self.agent is not None and await self._fed(self.agent, event):
            pass

    async def _fed(self, agent: LoopAgent, event: Event) -> bool:
        data = event.data
        if event.type == "agent/inbox/spliced" and data["target"] == "next-step" and data["inserted"] and not data.get("removedCount"):
            for message in data["inserted"]:
                agent.inbox.steer(message)
            return True
        if event.type == "command/run" and self._feeds(data["name"]) and event.seq not in self._expected:
            commands = agent.seams.commands
            if commands is None or commands.get(data["name"]) is None:
                return False
            if self.part is None or not self.part.start <= event.seq < self.part.end:
                self._answers, self._asked = answers_of_command(self.recorded, event.seq), 0
            await commands.run(data["name"], CommandCall(agent, data["args"]), cell=self._cell_of(event.seq))
            return True
        return False

    def _cell_of(self, seq: int) -> dict[str, Any] | None:
        """The cell that gave a command once more; None for a chip or card."""
        following = self.recorded[seq + 1] if seq + 1 < len(self.recorded) else None
        if following is None or following.type != "notebook/cell":
            return None
        return {key: value for key, value in following.data.items() if key in ("source", "cell")}

    def _restart(self, before: int) -> int | None:
        """The seq of the ``session/end-seed`` that comes next, behind at most what closes an interrupted turn; None where none does."""
        for seq in range(self.place, before):
            event = self.recorded[seq]
            if event.type == "session/end-seed":
                return seq
            if event.type not in _CLOSING:
                return None
        return None

    @property
    def stops_here(self) -> bool:
        """Whether the turn was stopped while the answer that streams now did."""
        return self._cut is not None and self._cut.place == "answer" and self._asked >= len(self._answers)

    def stops_in(self, call: str) -> bool:
        """Whether the turn was stopped in this call."""
        return self._cut is not None and self._cut.place == "call" and self._cut.call == call

    @property
    def stops_between(self) -> bool:
        """Whether the turn was stopped after the events so far, before another step."""
        part = self.part
        if self._cut is None or self._cut.place != "between" or part is None or self.difference is not None:
            return False
        return not any(event.type == "step/start" for event in self.recorded[self.place : part.end])

    @property
    def cause(self) -> dict[str, Any] | None:
        """Why the part's turn was stopped; None for one that was not."""
        return None if self._cut is None else self._cut.cause

    async def stop(self) -> None:
        """Stop the turn as the person did, and wait for it: raises CancelledError."""
        assert self.agent is not None
        assert self._cut is not None
        self._stop(self.agent, self._cut.cause)
        await asyncio.Event().wait()

    @property
    def model_config(self) -> Mapping[str, Any]:
        """The recorded header's: of the one that comes next, else of the last."""
        event = self.next
        if event is not None and event.type == "request/header":
            config: Mapping[str, Any] = event.data["header"]["config"]
            return config
        header = self._header.at(self.recorded, self.place)
        return RECORDING if header is None else header["config"]

    @property
    def context_window(self) -> int | None:
        """The recorded one for the request that comes next."""
        ahead = self.recorded[self.place : self.place + 2] if self.difference is None else ()
        said = next((event.data for event in ahead if event.type == "request/context"), None)
        window = self._context.at(self.recorded, self.place).window if said is None else said.get("contextWindow")
        return window if isinstance(window, int) else None

    def next_answer(self, request: Request) -> RecordedAnswer:
        """What the model answered to the request that is made now.

        Raises:
            ReplayError: the request differs, or none was made here.
        """
        self._compare_messages(request)
        if self._asked >= len(self._answers):
            self.note(Difference(self.place, "the number of requests", f"{len(self._answers)} in this turn", f"{self._asked + 1}"))
        self.check()
        self._asked += 1
        return self._answers[self._asked - 1]

    def _compare_messages(self, request: Request) -> None:
        expected: Sequence[Any] = self._history.at(self.recorded, self.place)
        messages = request.messages
        if asks_for_summary(self.recorded, self.place):
            # The span is compared with the summary's event; what asks for the summary is no part of the log.
            messages = messages[:-1]
            expected = expected[: len(messages)]
        for number, (before, now) in enumerate(zip(expected, messages, strict=False), start=1):
            found = self.comparison.same(before, now)
            if found is not None:
                path, recorded, live = found
                self.note(Difference(self.place, f"message {number} of the request, {path}", str(recorded), str(live)))
        if len(expected) != len(messages):
            self.note(Difference(self.place, "the number of messages in the request", str(len(expected)), str(len(messages))))

    # -- calls

    def result_of(self, call: str) -> Event | None:
        """The recorded result of a call whose ``tool/call`` is the last event; None where it has none. The same for a call inside one."""
        for event in self.recorded[self.place :]:
            if event.type == INSIDE and event.data["subCallId"] == call:
                return event
            if event.type == "tool/result" and event.data["message"]["source"]["callId"] == call:
                return event
            if event.type in ("step/end", "turn/end"):
                return None
        return None

    def until(self, result: Event) -> Sequence[Event]:
        """What is recorded between here and a result."""
        return self.recorded[self.place : result.seq]

    async def play_until(self, result: Event) -> None:
        """Append what a call did before its result, as recorded; what came from outside is fed."""
        while self.place < result.seq and (event := self.next) is not None:
            if self.agent is None or not await self._fed(self.agent, event):
                self._append(event)

    def recorded_at(self, type: str, key: str, id: str) -> Event | None:
        """The recorded event in the place of the live one of this type that holds ``id``."""
        for event in reversed(self.session.events):
            if event.type == type and event.data.get(key) == id:
                return self.recorded[event.seq] if event.seq < len(self.recorded) else None
        return None

    # -- inside

    def _append(self, event: Event) -> None:
        if not self._plays(event.type):
            self.note(Difference(event.seq, f"event {event.seq}, which a replay must not take over", event.type, "nothing"))
            return
        self.session.append(Draft(event.type, event.data, event.surface_op, event.source_event_seqs, event.ignorable))
