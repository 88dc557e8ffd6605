"""Kill a bare agent with its journal, again and again, and look at what it left. Run as a program:

    python killing.py SEED COUNT      one line of JSON: {"kills", "displayed", "open_turns", "approved", "lost", "faults": [sentence, …]}

Each child is a real process: a loop, plan mode, tools, a scripted model and a journal. It prints each event as soon as the log has it,
which is what a display would be told, and is killed by SIGKILL at a point that the seed decides. The parent compares.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.questions import Answer, QuestionRequest, Reply
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.features import compaction
from plan_mode_nb.folds.plan import PLAN, fold_plan_state
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.events import Event, Header, SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install
from plan_mode_nb.store.journal import Journal, read_journal
from plan_mode_nb.testing.workbench import Workbench, counted_clock

HEADER = Header(id=SessionId("killed"), created_at=1)
DECIDED = '{"type":"question/answered"'
COMPACTING = '{"type":"compaction/start"'
SLOW = (DECIDED, COMPACTING)
LONG = 120.0
"""Seconds: for what comes at once on a machine with nothing else to do."""
PLAN_TEXT = "# Count\n\nCount the rows."


def note(text: str) -> str:
    """Take a note."""
    return f"noted {text}"


def composition(seams: Seams) -> Undo:
    """Plan mode, compaction and a tool."""
    plugins = [install(seams, PlanModeConfig("Plan first.")), compaction.install(seams)]
    return undo_all([seams.tools.register(tool_from(note)), *plugins])


class Person:
    """Decides on plans at once, or never, and says so by a byte."""

    def __init__(self, chance: random.Random, in_vain: int) -> None:
        self._chance, self._in_vain = chance, in_vain

    async def ask(self, request: QuestionRequest) -> Reply:
        decision = self._chance.random()
        if decision < 0.2:
            os.write(self._in_vain, b".")
            await asyncio.Event().wait()
        return Reply("answered", (Answer(request.questions[0].id, ("Approve" if decision < 0.8 else "Keep planning",)),))


def live(journal_folder: Path, seed: int, show: int, in_vain: int, *, stays_at: str | None) -> None:
    """An agent's life, until it is killed or has nothing more to do. ``stays_at``: how the event begins that it rests behind."""
    chance = random.Random(seed)
    session = Session(HEADER, clock=counted_clock())
    session.sink = Journal(journal_folder, HEADER, session.lines, kernel="k", notebook=None, pid=os.getpid(), agent="main")
    session.subscribe(lambda batch: _display(show, [session.lines[event.seq] for event in batch], stays_at))
    bench = Workbench(install=[composition], session=session)
    bench.seams.questions.provide(Person(chance, in_vain))

    async def work() -> None:
        for _ in range(6):
            if chance.random() < 0.7:
                PlanMode.set(bench.agent, chance.random() < 0.8)
            for _ in range(chance.randrange(3)):
                step = [
                    say("word " * chance.randrange(40)),
                    *[call("note", {"text": "x" * chance.randrange(3000)})] * chance.randrange(1, 3),
                ]
                bench.model.add([*step, usage(1, 1)])
            if chance.random() < 0.6:
                bench.model.add([call("exit_plan_mode", {"plan": PLAN_TEXT}), usage(1, 1)])
            bench.model.add([say("Done."), usage(1, 1)])
            await bench.ask("go on")
            bench.model.requests.clear()
            bench.model._steps.clear()
            if bench.seams.commands is not None and chance.random() < 0.5:
                bench.model.add(say("## So far\n- notes"))
                await bench.seams.commands.run("compact", CommandCall(bench.agent, ""))
                bench.model.requests.clear()
                bench.model._steps.clear()

    asyncio.run(work())


def _display(show: int, lines: Sequence[str], stays_at: str | None) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    while data:
        data = data[os.write(show, data) :]
    if stays_at is not None and any(line.startswith(stays_at) for line in lines):
        signal.pause()
    # A display takes its time; it also spreads the kills over what lies between two effects.
    time.sleep(0.02 if any(line.startswith(SLOW) for line in lines) else 0.0003)


def one_kill(folder: Path, seed: int) -> list[str]:
    """Start a life, end it somewhere; what it had displayed by then."""
    chance = random.Random(seed)
    kind = chance.random()
    stays_at = DECIDED if kind < 0.3 else COMPACTING if kind < 0.35 else None
    (read, write), (stuck, in_vain) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            live(folder, seed, write, in_vain, stays_at=stays_at)
        finally:
            os._exit(0)
    os.close(write)
    os.close(in_vain)
    wanted, displayed = chance.randrange(1, 90) if stays_at is None else 1_000, b""
    # A person who never decides is waited for in vain: such a life ends there.
    while displayed.count(b"\n") < wanted and read in select.select([read, stuck], [], [], LONG)[0] and (more := os.read(read, 65536)):
        displayed += more
        if stays_at is not None and stays_at.encode() in displayed:
            break
    end = time.perf_counter() + chance.random() * 0.003
    while time.perf_counter() < end:
        pass  # somewhere between two effects, not always right behind one
    os.kill(child, signal.SIGKILL)
    while more := os.read(read, 65536):
        displayed += more
    os.waitpid(child, 0)
    os.close(read)
    os.close(stuck)
    return displayed.decode().split("\n")[:-1]


def faults_of(folder: Path, displayed: list[str]) -> tuple[list[str], dict[str, int]]:
    """What is wrong with what was left; and what kind of end it was."""
    paths = list(folder.glob("*.journal"))
    if not paths:
        return (["nothing was kept"] if displayed else []), {"lost": len(displayed)}
    kept = read_journal(paths[0]).lines
    lost = sum(line not in set(kept) for line in displayed)
    faults = [] if kept[: len(displayed)] == displayed else [f"{lost} displayed events are not in the journal, or not in their place"]
    cut = Session(HEADER, clock=counted_clock(), lines=kept)
    before, is_open = fold_plan_state(cut.events), cut.place.turn is not None
    faults.extend(_closing_faults(cut))
    faults.extend(_compaction_faults(cut.events))
    bench = Workbench(say("Going on."), install=[composition], lines=kept, ids="again")
    asyncio.run(bench.ask("go on"))
    ends = [event.data["reason"]["kind"] for event in bench.events("turn/end")]
    if is_open and ends[-2:] != ["interrupted", "completed"]:
        faults.append(f"the open turn was closed as {ends[-2:]}")
    wanted = before.active if before.pending is None else before.pending
    if bench.session.fold(PLAN).active is not wanted:
        faults.append(f"plan mode was {before} at the cut and is {bench.session.fold(PLAN)} after the next step")
    approved = any(event.type == "question/answered" for event in cut.events) and before.active and before.pending is False
    compacting = cut.place.compaction is not None
    if compacting and bench.session.place.compaction is not None:
        faults.append("the compaction that the process was in is still open")
    return faults, {"lost": lost, "open_turns": int(is_open), "approved": int(approved), "compacting": int(compacting)}


def _closing_faults(cut: Session) -> list[str]:
    """Closing adds exactly the missing results, the step's end and the turn's; it never answers a question or decides anything."""
    added = [each.type for each in closers(cut.events)]
    calls = _unanswered(cut.events)
    place = cut.place
    wanted = ["tool/result"] * calls + ["step/end"] * (place.step is not None) + ["turn/end"] * (place.turn is not None)
    return [] if added == wanted else [f"closing added {added} where {wanted} was due"]


def _compaction_faults(events: Sequence[Event]) -> list[str]:
    """A span is replaced by its summary whole, or not at all."""
    types = [event.type for event in events]
    whole = ["compaction/summary", "user/message", "compaction/end"]
    return [
        f"the log ends within a replacement, at {seq}"
        for seq, type in enumerate(types)
        if type == "compaction/summary" and types[seq : seq + 3] != whole
    ]


def _unanswered(events: Sequence[Event]) -> int:
    asked: set[str] = set()
    for event in events:
        if event.type == "assistant/message":
            asked |= {block["id"] for block in event.data["message"]["content"] if block["type"] == "tool-call"}
        elif event.type == "tool/result":
            asked.discard(event.data["message"]["source"]["callId"])
    return len(asked)


def main(seed: int, count: int) -> dict[str, Any]:
    """So many kills, with the seeds from ``seed`` on."""
    totals = {"kills": 0, "displayed": 0, "open_turns": 0, "approved": 0, "compacting": 0, "lost": 0}
    faults: list[str] = []
    for each in itertools.islice(itertools.count(seed), count):
        folder = Path(tempfile.mkdtemp(prefix="killing-"))
        displayed = one_kill(folder / "journals", each)
        found, kinds = faults_of(folder / "journals", displayed)
        faults.extend(f"seed {each}: {fault}" for fault in found)
        for name, value in {"kills": 1, "displayed": len(displayed), **kinds}.items():
            totals[name] += value
        shutil.rmtree(folder)
    return {**totals, "faults": faults}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
