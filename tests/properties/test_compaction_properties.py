"""Any conversation, compacted anywhere: requests stay valid, nothing that is a fold of the log moves, and a reader finds the same."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

from dsh_reader import read
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import SEEDS, LogMaker

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.compaction import Span
from plan_mode_nb.agent.model import Request
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import approval_policy, compaction, missing_tools, restart, sandbox, todo
from plan_mode_nb.features.compaction.span import head_span, whole_cuts
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.plan import APPROVED_PLAN, PLAN, TOLD
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.tokens import MEASURE, estimate_header, estimate_message
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.fold import Fold, fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import call, fail, say, think, usage
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.questions import ScriptedAnswers, pick
from plan_mode_nb.testing.workbench import Workbench

UNMOVED: tuple[Fold[Any, Any], ...] = (PLAN, APPROVED_PLAN, TOLD, TODOS, APPROVAL_POLICY, SANDBOX_MODE, TURNS, USAGE)
TEXTS = ["x", "多い " * 40, "a long story " * 60, "é😀" * 30, ""]
PLAN_TEXT = "# Plan {}\n\n1. Step.\n"


class World:
    """An agent whose model does anything at random, and what its requests must be."""

    def __init__(self, seed: int, window: int | None) -> None:
        self.random = Random(seed)
        plugins = [
            todo.install, sandbox.install, approval_policy.install, restart.install, missing_tools.install,
            compaction.install, lambda seams: install_plan(seams, PlanModeConfig("Plan first.")),
            lambda seams: seams.tools.register(tool_from(self.look)),
        ]  # fmt: skip
        self.bench = Workbench(*[self.answer] * 400, install=plugins, window=window)
        picks = [pick("Approve"), pick("Keep planning", custom="no")]
        self.bench.seams.questions.provide(ScriptedAnswers(*[self.random.choice(picks) for _ in range(200)]))

    def look(self, what: str) -> str:
        """Look at something."""
        return self.random.choice(TEXTS) + what

    def answer(self, request: Request) -> Any:
        """The next answer; every request is looked at first."""
        check_messages(list(request.messages))
        if request.messages[-1]["source"].get("plugin") == "compact":
            return self.summary()
        kind = self.random.choice(["say", "say", "batch", "batch", "fail", "overflow"])
        tokens = usage(self.random.randint(1, 2_000), self.random.randint(1, 50))
        if kind == "say":
            return [think("Hm."), say(self.random.choice(TEXTS) + "."), tokens]
        if kind == "fail":
            return [say("half an "), fail(ModelError("No.", code="AUTH"))]
        if kind == "overflow":
            return fail(ModelError("Too long.", code="CONTEXT_OVERFLOW"))
        number = self.random.randint(0, 99)
        calls = [
            call("look", {"what": "the file"}),
            call("todo_write", {"todos": [{"content": f"task {number}", "status": "pending"}]}),
            call("exit_plan_mode", {"plan": PLAN_TEXT.format(number)}),
            call("nothing", "{broken"),
        ]
        return [say("I work."), *[self.random.choice(calls) for _ in range(self.random.randint(1, 4))], tokens]

    def summary(self) -> Any:
        """One that can be used, or one that cannot."""
        return self.random.choice(
            [say("## So far\n- much"), say("## So far\n- much"), say(" "), say("long " * 5_000), fail(ModelError("Down.", code="SERVER"))]
        )

    async def act(self) -> None:
        """A person's next move."""
        move = self.random.choice(["ask", "ask", "compact", "plan", "off", "axis"])
        if move == "ask":
            await self.bench.ask(self.random.choice(TEXTS) + "go on")
            return
        name, args = {
            "compact": ("compact", self.random.choice(["", "keep the names"])),
            "plan": ("plan", ""),
            "off": ("plan", "off"),
            "axis": ("sandbox", self.random.choice(["read-only", "workspace-write"])),
        }[move]
        assert self.bench.seams.commands is not None
        before = [self.bench.session.fold(fold) for fold in UNMOVED]
        await self.bench.seams.commands.run(name, CommandCall(self.bench.agent, args))
        if move == "compact":
            assert [self.bench.session.fold(fold) for fold in UNMOVED] == before


def check_messages(messages: list[dict[str, Any]]) -> None:
    """Each result follows its call, in the same batch, and every call has its result before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        results = [block["toolCallId"] for block in message["content"] if block["type"] == "tool-result"]
        if results:
            assert results[0] in waiting, "a result without its call"
            waiting.remove(results[0])
            continue
        assert waiting == [], "a call without its result"
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool-call"]
    assert waiting == []


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, window=st.sampled_from([None, 300, 1_000, 3_000]), moves=st.integers(1, 8))
def test_requests_stay_valid_and_nothing_but_the_surface_moves(seed: int, window: int | None, moves: int) -> None:
    """Asked for, at pressure and after an overflow, with summaries that fail; live, reopened and exported agree at the end."""

    async def main() -> Workbench:
        world = World(seed, window)
        for _ in range(moves):
            await world.act()
        return world.bench

    session = asyncio.run(main()).session
    for fold in (*UNMOVED, HISTORY, NODES, MEASURE):
        assert comparable(session.fold(fold)) == comparable(fold_value(fold, list(session.events)))
    again = Session(session.header, clock=lambda: 1, lines=list(session.lines))
    assert list(again.fold(HISTORY)) == list(session.fold(HISTORY))
    found = read(write_jsonl(session.header, session.lines))
    assert found.history == list(session.fold(HISTORY))
    assert found.events == [json.loads(line) for line in session.lines]
    assert read_jsonl(write_jsonl(session.header, session.lines)) == (session.header, session.lines)
    check_brackets(session)


def comparable(value: Any) -> Any:
    return list(value) if hasattr(value, "__getitem__") and not isinstance(value, str) else str(value)


def check_brackets(session: Session) -> None:
    """Each attempt ends; one that succeeded replaced what its summary says, by a message that names its sources."""
    open_id = None
    for event in session.events:
        if event.type == "compaction/start":
            assert open_id is None
            open_id = event.data["compactionId"]
        elif event.type == "compaction/summary":
            message, end = session.events[event.seq + 1], session.events[event.seq + 2]
            seqs = event.data["shadowedSeqs"]
            assert event.data["shadowedRange"] == {"start": seqs[0], "end": seqs[-1]}
            assert message.sources[1:] == [event.seq, *seqs]
            assert message.data["source"]["compactionId"] == open_id
            assert (end.type, "error" in end.data) == ("compaction/end", False)
            nodes = fold_value(NODES, session.events[: event.seq])
            assert nodes[: len(seqs)] == seqs
        elif event.type == "compaction/end":
            assert event.data["compactionId"] == open_id
            open_id = None
    assert open_id is None


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, rounds=st.sampled_from([5, 30, 80]), retain=st.sampled_from([0, 5, 40, 10_000]), least=st.sampled_from([0, 30]))
def test_a_span_begins_at_the_head_leaves_the_tail_and_cuts_no_pair(seed: int, rounds: int, retain: int, least: int) -> None:
    """Of any log, replaced spans and dangling calls included."""
    maker = LogMaker(seed)
    for _ in range(rounds):
        maker.grow()
    session = maker.session
    nodes, measure = list(session.fold(NODES)), session.fold(MEASURE)
    assert list(measure.nodes) == nodes
    messages = {event.seq: event for event in session.events}
    prices = [0 if not _content(messages[seq]) else estimate_message(_message(messages[seq])) for seq in nodes]
    assert list(measure.prices) == prices
    header = next((event.data["header"] for event in reversed(session.events) if event.type == "request/header"), None)
    assert measure.estimated == estimate_header(header) + sum(prices)
    assert measure.total >= measure.estimated
    span = head_span(session, retain, least=least)
    if span is None:
        return
    assert isinstance(span, Span)
    cut = nodes.index(span.end) + 1
    assert (span.start, cut < len(nodes)) == (nodes[0], True)
    assert whole_cuts([messages[seq] for seq in nodes])[cut]
    assert sum(prices[:cut]) >= least
    assert sum(prices[cut:]) >= retain


def _message(event: Any) -> dict[str, Any]:
    message: dict[str, Any] = event.data if event.type == "user/message" else event.data["message"]
    return message


def _content(event: Any) -> bool:
    return event.type != "assistant/message" or bool(_message(event)["content"])
