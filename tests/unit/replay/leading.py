"""A conversation held in memory as the cells of a notebook, and held again along its recording: the real loop, no kernel."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from plan_mode_nb.agent.approval import NobodyToApprove
from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.questions import NobodyToAsk
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, ToolCall, text_result
from plan_mode_nb.document.chunks import write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.features import compaction, todo
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import TurnEnd
from plan_mode_nb.models.scripted import Step
from plan_mode_nb.plan import PlanModeConfig, install
from plan_mode_nb.replay.matching import match
from plan_mode_nb.replay.replay import Replay, Rules
from plan_mode_nb.testing.questions import Answering, ScriptedAnswers
from plan_mode_nb.testing.workbench import Workbench

GUIDE = "Explore, then hand in one plan."
PLAN = "# Fix it\n\n1. Look.\n2. Fix.\n"
STRICT = Rules()


Held = TypeVar("Held", bound="Conversation")


class Conversation:
    """One agent and the cells that spoke to it. ``made``: what the tool ``make`` made, in order; ``looked``: what ``look`` saw."""

    def __init__(
        self, *steps: Step, answers: Iterable[Answering] = (), guide: str = GUIDE, lines: Sequence[str] = (), ids: str = "live",
        window: int | None = None, compacted_at: float = 0.8,
    ) -> None:  # fmt: skip
        self.made: list[str] = []
        self.looked: list[str] = []
        self.making: Callable[[str], str] = lambda what: f"made {what}"
        self.holds_looks = False
        self.looking = asyncio.Event()
        self._guide = guide
        installs: list[Install] = [
            self._tools,
            todo.install,
            lambda seams: compaction.install(seams, compaction.CompactionPolicy(compacted_at)),
            lambda seams: install(seams, PlanModeConfig(guide)),
        ]
        self.bench = Workbench(*steps, install=installs, lines=lines, ids=ids, window=window)
        self.bench.seams.questions.provide(ScriptedAnswers(*answers))
        self.agent: LoopAgent = self.bench.agent
        self.cells: list[str] = []
        self.ends: list[TurnEnd | None] = []
        self.said: list[Any] = []

    def _tools(self, seams: Seams) -> Undo:
        async def make(call: ToolCall, what: str) -> Outcome:
            """Make something that stays."""
            self.made.append(what)
            return Outcome(text_result(self.making(what)))

        async def look(what: str) -> str:
            """Look at something outside."""
            self.looked.append(what)
            self.looking.set()
            if self.holds_looks:
                await asyncio.Event().wait()
            return f"saw {what}"

        return undo_all([seams.tools.register(tool_from(make, replay="rebuilds")), seams.tools.register(tool_from(look))])

    # -- what cells do

    async def run(self, source: str, replay: Replay | None = None) -> None:
        """One cell: ``%plan …``, ``%agent …`` or ``%session compact …``."""
        magic, _, text = source.removeprefix("%").partition(" ")
        cell = {"source": hashlib.sha256(source.encode()).hexdigest()}
        if replay is None:
            self.cells.append(source)
        if magic == "session":
            await self._compact(replay, cell, text.removeprefix("compact").strip())
            return
        if magic == "plan":
            await self._lead(replay, cell, "command")
            assert self.bench.seams.commands is not None
            result = await self.bench.seams.commands.run("plan", CommandCall(self.agent, text), cell=cell)
            self._arrive(replay)
            if not result.turn:
                return
            await self._lead(replay, cell, "turn")
        else:
            await self._lead(replay, cell, "turn")
            self.agent.inbox.followup(user_message(text, id=self.bench.seams.new_id()))
        await self._turn(replay, cell)

    async def _compact(self, replay: Replay | None, cell: dict[str, str], words: str) -> None:
        """``%session compact``, as its host runs it."""
        await self._lead(replay, cell, "command")
        if replay is None or replay.play(self.agent) is None:
            assert self.bench.seams.commands is not None
            run = asyncio.ensure_future(self.bench.seams.commands.run("compact", CommandCall(self.agent, words), cell=cell))
            self.said.append(await asyncio.gather(run, return_exceptions=True))
        self._arrive(replay)

    async def _turn(self, replay: Replay | None, cell: dict[str, str]) -> None:
        end: TurnEnd | None = None
        if replay is not None:
            self.agent.config = replay.config(self.agent, self.agent.config)
            end = replay.play(self.agent)
        if end is None:
            task = asyncio.ensure_future(self.agent.run_turn(cell))
            try:
                end = await task
            except asyncio.CancelledError:
                end = None
        self.ends.append(end)
        self._arrive(replay)

    async def _lead(self, replay: Replay | None, cell: dict[str, str], kind: Any) -> None:
        if replay is not None:
            self.agent = await replay.lead(self.agent, cell["source"], kind, self._reopened)

    def _arrive(self, replay: Replay | None) -> None:
        if replay is not None:
            replay.arrive(self.agent)

    def _reopened(self, old: LoopAgent) -> LoopAgent:
        return LoopAgent("main", old.session, self.bench.seams, old.models, old.config, reopened=True)

    # -- what a person does meanwhile

    def steer(self, text: str) -> None:
        """Words for the next step."""
        self.agent.inbox.steer(user_message(text, id=self.bench.seams.new_id()))

    async def select(self, active: bool) -> None:
        """The chip."""
        assert self.bench.seams.commands is not None
        await self.bench.seams.commands.run("plan", CommandCall(self.agent, "" if active else "off"))

    # -- as a notebook

    def notebook(self, edit: Callable[[list[dict[str, Any]]], None] = lambda events: None) -> dict[str, Any]:
        """The notebook with its session. ``edit`` changes the events, as a hand would."""
        events = [json.loads(line) for line in self.bench.session.lines]
        edit(events)
        lines = [json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events]
        stored = StoredSession(self.bench.session.header, lines)
        document = Document(agents={"main": stored.header.id}, sessions={stored.header.id: stored})
        cells = [{"cell_type": "code", "source": source, "outputs": [], "metadata": {}} for source in self.cells]
        return {"cells": cells, "metadata": write_metadata(document, {}), "nbformat": 4, "nbformat_minor": 5}


def led(notebook: dict[str, Any], begin: Callable[[], Held], rules: Rules, prepare: Callable[[Held], None]) -> tuple[Held, Replay]:
    """Hold the conversation of a notebook, begun anew, along its recording; it and the replay. Raises what a cell raises."""
    matching = match(notebook)
    assert matching.problem("n.ipynb") == ""
    replay = Replay(matching, rules)

    async def body() -> Held:
        held = begin()
        prepare(held)
        replay.install(held.bench.seams)
        held.bench.seams.questions.provide(replay.people(lambda: (NobodyToAsk(), NobodyToApprove())))
        for cell in matching.cells:
            await held.run(cell.source, replay)
        return held

    return asyncio.run(body()), replay


def again(
    notebook: dict[str, Any], rules: Rules = STRICT, prepare: Callable[[Conversation], None] = lambda held: None, guide: str = GUIDE
) -> Any:
    """``led``, with one agent."""
    return led(notebook, lambda: Conversation(guide=guide, ids="again"), rules, prepare)
