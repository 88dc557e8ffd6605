"""A notebook's plan mode through random histories of several processes, checked at every request by an oracle of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import strategies as st
from plan_oracle import is_plan_notice, since_boundary, told_by

from plan_mode_nb.agent.commands import CommandCall
from plan_mode_nb.agent.model import Request
from plan_mode_nb.agent.prestep import CallNext, Decision, Reject, Step
from plan_mode_nb.agent.questions import Answer, QuestionRequest, Reply
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import ToolCall
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.folds.plan import PLAN, TOLD, fold_plan_mode, fold_plan_state
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.models.script import call, fail, finish, hold, say
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install
from plan_mode_nb.testing.workbench import Workbench

FIRST, GUIDE = "You live in a notebook.", "Explore first."


Gate = Literal["accept", "reject", "stop", "refuse switch", "refuse step"]


Ending = Literal["go", "fail", "stop", "cut off"]


Review = Literal["approve", "keep", "dismiss", "leave", "stop"]


@dataclass(frozen=True)
class StepScript:
    """What happens around one step: its gate, what is selected while it runs, its calls, how reviews go, how it ends."""

    gate: Gate
    selections: tuple[bool, ...]
    calls: tuple[Literal["note", "on", "off", "exit"], ...]
    reviews: Review
    ending: Ending


@dataclass(frozen=True)
class Turn:
    """A prompt and its steps; after them the model has nothing more to do."""

    steps: tuple[StepScript, ...]


@dataclass(frozen=True)
class Select:
    """The person selects while nothing runs: by the controller or by the command, with a message or without."""

    active: bool
    way: Literal["controller", "command", "message"]


@dataclass(frozen=True)
class Restart:
    """A new process reads the log, of which the last ``lost`` writes never reached the disk."""

    lost: int


STEPS = st.builds(
    StepScript,
    gate=st.sampled_from(["accept"] * 6 + ["reject", "stop", "refuse switch", "refuse step"]),
    selections=st.lists(st.booleans(), max_size=3).map(tuple),
    calls=st.lists(st.sampled_from(["note", "on", "off", "exit"]), max_size=3).map(tuple),
    reviews=st.sampled_from(["approve"] * 3 + ["keep", "dismiss", "leave", "stop"]),
    ending=st.sampled_from(["go"] * 6 + ["fail", "stop", "cut off"]),
)


ACTIONS = st.one_of(
    st.builds(Turn, st.lists(STEPS, max_size=4).map(tuple)),
    st.builds(Turn, st.lists(STEPS, max_size=4).map(tuple)),
    st.builds(Select, st.booleans(), st.sampled_from(["controller", "command", "message"])),
    st.builds(Restart, st.integers(0, 12)),
)


@dataclass
class World:
    """One notebook through several processes. Every request is checked when it is made."""

    bench: Workbench = field(init=False)
    turn: Turn | None = None
    tools: set[str] = field(default_factory=set)
    processes: int = 0
    requests: int = 0

    def __post_init__(self) -> None:
        self.start([])

    def start(self, lines: Sequence[str]) -> None:
        """A new process on these lines."""
        self.processes += 1
        self.bench = Workbench(lines=lines, ids=f"p{self.processes}", install=[self.around, self.plan])
        self.bench.sink.writes[:] = [[line] for line in lines]
        self.bench.seams.questions.provide(self)
        self.bench.agent.models = lambda name: self.bench.model

    def around(self, seams: Seams) -> Undo:
        """What stands around plan mode: a section before it, tools, and a listener that plays the gates."""

        def note() -> str:
            """Take a note."""
            return "noted"

        def select(call: ToolCall, active: bool) -> str:
            """The person selects while a tool runs."""
            assert call.agent is not None
            return PlanMode.set(call.agent, active)

        return undo_all(
            [
                seams.sections.register("first", 0, lambda context: FIRST),
                seams.tools.register(tool_from(note)),
                seams.tools.register(tool_from(select)),
                seams.pre_step.register(self.gate),
            ]
        )

    def plan(self, seams: Seams) -> Undo:
        """Plan mode itself."""
        return install(seams, PlanModeConfig(GUIDE))

    def script(self, step: int) -> StepScript | None:
        """What the turn says of a step; None after its last."""
        steps = () if self.turn is None else self.turn.steps
        return steps[step - 1] if step <= len(steps) else None

    async def gate(self, step: Step, call_next: CallNext) -> Decision:
        """Accept, reject, stop, or let the disk refuse what comes next."""
        assert "plan/mode" not in since_boundary(self.bench.session.events), "applied before everybody accepted"
        script = self.script(step.step)
        match "accept" if script is None else script.gate:
            case "reject":
                return Reject("no")
            case "stop":
                await self.stop()
            case "refuse switch":
                self.bench.sink.refuse = lambda lines: any('"plan/mode"' in line for line in lines)
            case "refuse step":
                self.bench.sink.refuse = self.once('"step/start"')
        return await call_next(step)

    def once(self, what: str) -> Any:
        """Refuse the next write that holds this, and only that one."""

        def refuse(lines: Sequence[str]) -> bool:
            if not any(what in line for line in lines):
                return False
            self.bench.sink.refuse = lambda lines: False
            return True

        return refuse

    async def stop(self) -> None:
        """The person presses Stop, and whoever waits is cancelled."""
        self.bench.agent.cancel({"kind": "user"})
        await asyncio.Event().wait()

    async def ask(self, request: QuestionRequest) -> Reply:
        """The review of a plan."""
        script = self.script(self.bench.session.place.step or 0)
        assert script is not None
        match script.reviews:
            case "approve":
                return Reply("answered", (Answer("plan-review", ("Approve",)),))
            case "keep":
                return Reply("answered", (Answer("plan-review", ("Keep planning",), "more tests"),))
            case "dismiss":
                return Reply("dismissed")
            case "leave":
                PlanMode.set(self.bench.agent, False)
                return Reply("answered", (Answer("plan-review", ("Approve",)),))
            case "stop":
                await self.stop()
        raise AssertionError

    def answer(self, request: Request) -> Any:
        """The model's answer to a request, which is checked first."""
        self.bench.sink.refuse = lambda lines: False
        self.check_request(request)
        script = self.script(self.bench.session.place.step or 0)
        if script is None:
            return say("nothing more")
        for active in script.selections:
            PlanMode.set(self.bench.agent, active)
        parts: list[Any] = [say("thinking")]
        for name in script.calls:
            match name:
                case "note":
                    parts.append(call("note", {}))
                case "on" | "off":
                    parts.append(call("select", {"active": name == "on"}))
                case "exit":
                    parts.append(call("exit_plan_mode", {"plan": "# P\n\nbody"}))
        match script.ending:
            case "fail":
                parts.append(fail(ModelError("no", code="SERVER")))
            case "stop":
                parts.append(hold(self.stop))
            case "cut off":
                parts.append(finish("max-tokens"))
        return parts

    def check_request(self, request: Request) -> None:
        """The section stands exactly when the log says active; the tools and the prompt before it never change; the model knows."""
        self.requests += 1
        session = self.bench.session
        state = PlanMode.get(self.bench.agent)
        assert request.system == (f"{FIRST}\n\n{GUIDE}" if state.active else FIRST)
        self.tools.add(json.dumps(list(request.tools)))
        assert len(self.tools) == 1
        if state.pending is None:
            assert session.fold(TOLD) is state.active
        start = max(event.seq for event in session.events if event.type == "step/start")
        told, said = told_by(session.events[:start]), [event for event in session.events[start:] if is_plan_notice(event)]
        assert len(said) == (state.pending is None and told is not None and told is not state.active)
        self.check_log()

    def check_log(self) -> None:
        """What a new process would read is what this one holds, and no notice repeats what the model knew."""
        session = self.bench.session
        assert self.bench.sink.lines == session.lines
        events = decode_all(session.lines)
        assert events == session.events
        state = fold_plan_state(events)
        assert state == session.fold(PLAN) == PlanMode.get(self.bench.agent)
        assert state.pending is not state.active
        assert state.active is fold_plan_mode(events)
        told_by(events)

    async def run(self, turn: Turn, prompt: bool = True) -> None:
        """One turn, however it ends."""
        self.turn = turn
        self.bench.model.add(*[self.answer] * (1 + len(turn.steps) - self.bench.model.remaining))
        running = asyncio.ensure_future(self.bench.ask("go") if prompt else self.bench.agent.run_turn())
        await asyncio.wait({running})
        self.bench.sink.refuse = lambda lines: False
        if running.cancelled() or running.result().reason["kind"] == "blocked":
            assert "plan/mode" not in since_boundary(self.bench.session.events), "applied for a step that does not run"
        else:
            assert "AssertionError" not in running.result().sentence, running.result().sentence

    async def select(self, action: Select) -> None:
        """The person's act between turns."""
        before = PlanMode.get(self.bench.agent)
        if action.way == "controller":
            outcome = PlanMode.set(self.bench.agent, action.active)
            expected = "noop" if before.pending is None else "cancelled"
            assert outcome == ("committed" if action.active is not before.active else expected)
        else:
            assert self.bench.seams.commands is not None
            text = (
                {True: "look at the data", False: "off"}[action.active]
                if action.way == "message"
                else {True: "on", False: "OFF"}[action.active]
            )
            result = await self.bench.seams.commands.run("plan", CommandCall(self.bench.agent, text))
            assert result.kind == "success"
            if result.turn:
                await self.run(Turn(()), prompt=False)
                return
        assert PlanMode.get(self.bench.agent).target is action.active


async def live(actions: Sequence[Turn | Select | Restart], active: bool = False) -> World:
    """Run a history from a state; then one quiet turn, in which the model learns what is so."""
    world = World()
    PlanMode.set(world.bench.agent, active)
    for action in actions:
        match action:
            case Turn():
                await world.run(action)
            case Select():
                await world.select(action)
            case Restart(lost):
                writes = world.bench.sink.writes
                world.start([line for write in writes[: max(0, len(writes) - lost)] for line in write])
        world.check_log()
    while world.bench.agent.inbox.has_pending:
        await world.run(Turn(()), prompt=False)
    await world.run(Turn(()))
    state = PlanMode.get(world.bench.agent)
    assert state.pending is None
    assert world.bench.session.fold(TOLD) is state.active
    return world
