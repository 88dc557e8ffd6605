"""What is exported is what deepseek-harness loads, and what comes back is what was exported.

Its reader is played by ``dsh_reader``, which knows the format and nothing of this package.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from dsh_reader import Read, Refused, plan_projection, read
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import SEEDS, LogMaker, sessions

from plan_mode_nb.agent.attachments import image_block
from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.features import approval_policy, missing_tools, restart, sandbox, todo
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import CHUNK, DELTA, OURS, draft, kind_of
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.store.jsonl import load_jsonl, save_jsonl
from plan_mode_nb.testing.logs import new_session
from plan_mode_nb.testing.packing import packed
from plan_mode_nb.testing.questions import ScriptedAnswers, pick
from plan_mode_nb.testing.workbench import Workbench

TEXTS = ["", "x", "é😀", "\u2028 and \\u2028", '"quoted"', "a\nb\tc", "0" * 40]


class StreamMaker(LogMaker):
    """A log that holds streamed chunks too, in runs of every kind and length."""

    def step_work(self) -> list[Any]:
        place = self.session.place
        if place.step is None or self.random.random() < 0.4:
            return super().step_work()
        call = {"id": f"c{self.random.randint(0, 1)}"} | ({"name": "n"} if self.random.random() < 0.3 else {})
        index = self.random.randint(0, 1)
        kinds: list[dict[str, Any]] = [
            {"type": "text-delta", "index": index, "text": ""},
            {"type": "reasoning-delta", "index": index, "text": ""},
            {"type": "tool-call-delta", "index": index, **call, "argumentsDelta": ""},
        ]
        head = self.random.choice(kinds)
        last = list(head)[-1]
        chunks = [{**head, last: self.random.choice(TEXTS)} for _ in range(self.random.randint(1, 6))]
        return [draft("assistant/chunk", {"turn": place.turn, "step": place.step, "chunk": chunk}) for chunk in chunks]


def streamed(seed: int, rounds: int) -> Session:
    """A random legal log; its clock jumps, backwards too."""
    maker = StreamMaker(seed)
    random = Random(seed)
    maker.session._clock = lambda: 1_764_510_000_000 + random.randint(-5000, 5000)
    for _ in range(rounds):
        maker.grow()
    return maker.session


def exported(session: Session) -> Read:
    """What the strict reader keeps of the export."""
    return read(write_jsonl(session.header, session.lines))


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, rounds=st.sampled_from([0, 2, 10, 40]))
def test_every_export_is_read_and_derives_the_same_history(seed: int, rounds: int) -> None:
    """Events, surface and messages agree, whatever happened in the session."""
    session = streamed(seed, rounds)
    found = exported(session)
    assert found.events == [json.loads(line) for line in session.lines]
    assert found.nodes == list(session.fold(NODES))
    assert found.history == list(session.fold(HISTORY))
    assert all(event.get("ignorable") is True for event in found.events if event["type"] in OURS)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, rounds=st.sampled_from([1, 10, 40]), longest=st.sampled_from([None, 3, 4, 7]))
def test_a_log_as_deepseek_harness_packs_it_is_the_same_log(seed: int, rounds: int, longest: int | None) -> None:
    """Line for line, event for event, from any place on, and with a turn of ours behind it."""
    session = streamed(seed, rounds)
    file = write_jsonl(session.header, packed(session.lines, longest=longest))
    header, lines = read_jsonl(file)
    assert header == session.header
    assert lines == session.lines
    opened = Session(header, clock=lambda: 5, lines=lines)
    start = Random(seed).randint(0, len(session))
    assert opened.events == session.events
    assert opened.events[start:] == session.events[start:]
    assert [opened.events[seq] for seq in range(len(session))] == list(session.events)
    for kinds in (frozenset({CHUNK}), frozenset({CHUNK, DELTA})):
        assert list(opened.events.of(kinds, start)) == [event for event in session.events[start:] if kind_of(event) in kinds]
    opened.append(draft("session/title", {"title": "more"}))
    assert opened.lines[: len(session)] == session.lines[:]
    assert read_jsonl(write_jsonl(opened.header, opened.lines)) == (header, opened.lines)


@settings(max_examples=30, deadline=None)
@given(session=sessions())
def test_a_compressed_export_holds_the_same_bytes(session: Session) -> None:
    """Frames change nothing of what is read."""
    with TemporaryDirectory() as folder:
        plain, framed = Path(folder) / "s.jsonl", Path(folder) / "s.jsonl.zstd"
        for path in (plain, framed):
            save_jsonl(path, session.header, session.lines)
        assert load_jsonl(framed).lines == load_jsonl(plain).lines == session.lines
        assert read(plain.read_bytes()).events == [json.loads(line) for line in session.lines]


def test_every_header_that_is_exported_is_complete() -> None:
    """Its reader requires ``delegationDepth``; keys that a session lacks are absent, never null."""
    bare = Header(id=SessionId("s"), created_at=1)
    full = Header(
        SessionId("s/é"), 1, delegation_depth=2, cwd="/x", parent_session=SessionId("p"), seed_length=0, origin="subagent", agent_preset="a"
    )
    assert read(write_jsonl(bare, [])).header == {"type": "session", "version": 0, "id": "s", "createdAt": 1, "delegationDepth": 0}
    assert list(read(write_jsonl(full, [])).header) == [
        "type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "origin", "delegationDepth", "agentPreset",
    ]  # fmt: skip


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def reviewed() -> Workbench:
    """A composition with everything that leaves a trace in the log."""
    plugins = [
        lambda seams: install_plan(seams, PlanModeConfig("Plan first.")),
        sandbox.install, approval_policy.install, todo.install, restart.install, missing_tools.install,
    ]  # fmt: skip
    plan = {"plan": "# Count\n\n1. Count the rows."}
    todos = {"todos": [{"content": "count", "status": "in_progress"}]}
    bench = Workbench(
        [say("A plan:"), call("exit_plan_mode", plan), usage(10, 5)],
        [call("exit_plan_mode", plan), usage(20, 5, cache_read_tokens=10)],
        [call("todo_write", todos), call("no_such_tool", {})],
        [say("Done."), usage(30, 1)],
        [say("Again.")],
        install=plugins,
    )
    bench.seams.questions.provide(ScriptedAnswers(pick("Keep planning", custom="and the columns"), pick("Approve")))
    return bench


async def command(bench: Workbench, name: str, args: str = "", **more: Any) -> CommandResult:
    assert bench.seams.commands is not None
    return await bench.seams.commands.run(name, CommandCall(bench.agent, args, **more), cell={"source": "0" * 64, "cell": "a"})


def test_a_real_session_with_two_reviews_is_read_as_it_is_meant() -> None:
    """Reviewed twice, approved, carried out, left open and taken up again; axes, todos, images and cells on the way."""

    async def main() -> Workbench:
        bench = reviewed()
        image = image_block(bench.seams.attachments, PNG, name="figure.png")
        await command(bench, "sandbox", "read-only")
        await command(bench, "approval", "never")
        await command(bench, "plan", "count the rows", images=(image,))
        await bench.agent.run_turn({"source": "0" * 64})
        await command(bench, "plan", "OFF")
        await command(bench, "plan")
        await command(bench, "plan", " Off ")
        await bench.ask("and on")
        return bench

    bench = asyncio.run(main())
    session = bench.session
    found = exported(session)
    assert found.history == list(session.fold(HISTORY))
    rows = found.events
    assert {row["type"] for row in rows if "ignorable" in row} == {"plan/selected", "question/asked", "question/answered", "notebook/cell"}
    assert [row["data"]["outcome"] for row in rows if row["type"] == "question/answered"] == ["answered", "answered"]
    assert [row["data"]["args"] for row in rows if row["type"] == "command/run"][2:] == ["count the rows", "off", "", "off"]
    assert plan_projection(found.events) == {"active": False, "pending": False}
    assert bench.events("turn/end")[-1].data["reason"] == {"kind": "completed"}


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, rounds=st.sampled_from([5, 40]))
def test_its_projection_shows_plan_mode_active_exactly_when_it_is(seed: int, rounds: int) -> None:
    """Whatever else the log holds that it skips."""
    session = streamed(seed, rounds)
    assert plan_projection(exported(session).events)["active"] is session.fold(PLAN).active


def selected(args: list[str], *, inside: bool) -> tuple[dict[str, Any], Session]:
    """What the projection shows after these ``%plan`` commands, between turns or in an open one, with the ones before them idle."""

    async def main() -> Session:
        bench = Workbench(install=[lambda seams: install_plan(seams, PlanModeConfig("Plan first."))])
        if inside:
            bench.session.append(draft("turn/start", {"turn": 1}))
        for each in args:
            await command(bench, "plan", each)
        return bench.session

    session = asyncio.run(main())
    return plan_projection(exported(session).events), session


@pytest.mark.parametrize("inside", [False, True], ids=["between turns", "in a turn"])
@pytest.mark.parametrize("args", [["OFF"], ["on"], ["", "Off"], ["on", "OFF", "ON"], ["go", " off "], ["off", "", "oFF", "on"]])
def test_a_selection_reads_the_same_in_its_interface(args: list[str], inside: bool) -> None:
    """Whatever the case of ``off``: active, and whether the other state is awaited."""
    projected, session = selected(args, inside=inside)
    state = session.fold(PLAN)
    assert projected == {"active": state.active, "pending": state.pending is not None}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda row: {**row, "more": 1}, "envelope"),
        (lambda row: {**row, "seq": 7}, "expected seq"),
        (lambda row: {**row, "type": "plan/selected"}, "not ignorable"),
        (lambda row: {**row, "surfaceOp": "append"}, "not on the surface"),
        (lambda row: {**row, "data": {"turn": -0.0}}, "lossless"),
        (lambda row: {**row, "type": "user/message"}, "identity"),
        (lambda row: {**row, "ignorable": False}, "ignorable"),
        (lambda row: {**row, "time": 1.5}, "time"),
    ],
)
def test_the_reader_of_these_tests_can_refuse(change: Any, rule: str) -> None:
    """A check that nothing fails would prove nothing."""
    session = new_session()
    session.append(draft("turn/start", {"turn": 1}))
    line = json.dumps(change(json.loads(session.lines[0])), separators=(",", ":"))
    with pytest.raises(Refused, match=rule):
        read(write_jsonl(session.header, [line]))
