"""Any family of agents: whatever its members do, every log closes and reads back, and a replay gives the same logs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plan_mode_nb.agent.approval import NobodyToApprove
from plan_mode_nb.agent.questions import NobodyToAsk
from plan_mode_nb.agent.seams import Install
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import ask_user, children, todo
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.models.script import Part, call, fail, say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.replay.matching import Matching, Place, RecordedSession
from plan_mode_nb.replay.recorded import child_part, parts
from plan_mode_nb.replay.replay import Replay
from plan_mode_nb.testing.nursery import MemoryNursery
from plan_mode_nb.testing.workbench import Workbench, counted_clock

DEPTH = 2
CELL = {"source": "0" * 64}
ACTS = st.sampled_from(["make", "ask", "plan", "todo", "spawn", "fork", "bad"])
LIVES = st.lists(st.lists(ACTS, max_size=3), max_size=3)
"""What an agent does, step by step; then it says something, or its model fails."""
ENDS = st.sampled_from(["say", "say", "say", "fail", "nothing"])


class World:
    """An agent and its children, whose models do as they were drawn. ``made``: what the tool ``make`` made, in order."""

    def __init__(self, data: Any, ids: str, asks: bool = True) -> None:
        self.made: list[str] = []
        self._data = data
        self._asks = asks

        async def make(call: ToolCall) -> Outcome:
            self.made.append(call.arguments)
            return Outcome(text_result(f"made {len(self.made)}"))

        installs: list[Install] = [
            lambda seams: seams.tools.register(Tool("make", "M.", {"type": "object"}, make, replay="rebuilds")),
            todo.install,
            ask_user.install,
            lambda seams: children.install(seams, DEPTH),
            lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
        ]
        self.bench = Workbench(install=installs, ids=ids)
        self.bench.model._steps = list(self._life() if asks else ())
        self.nursery = MemoryNursery(self.bench.seams, self._models())
        self.bench.seams.delegation.provide(self.nursery)

    def _models(self) -> Iterator[ScriptedModel]:
        while True:
            yield ScriptedModel(self._life() if self._asks else ())

    def _life(self) -> list[list[Part]]:
        lived = [[say("On."), *(self._act(act) for act in acts)] for acts in self._data.draw(LIVES) if acts]
        ending = {"say": [say("Done.")], "fail": [say("Half"), fail(ModelError("gone"))], "nothing": []}[self._data.draw(ENDS)]
        return [*lived, ending]

    def _act(self, act: str) -> Part:
        match act:
            case "ask":
                return call("ask_user_question", {"questions": [{"id": "q", "question": "Which?"}]})
            case "plan":
                return call("exit_plan_mode", {"plan": "# P\n\nx"})
            case "todo":
                return call("todo_write", {"todos": [{"content": "a", "status": "pending"}]})
            case "spawn" | "fork":
                return call(f"{act}_agent", {"task": "Go on."})
            case "bad":
                return call("spawn_agent", "{")
        return call("make", {})

    @property
    def sessions(self) -> list[Session]:
        return [self.bench.session, *(child.session for child in self.nursery.children)]


def shape(session: Session) -> list[Any]:
    """A log without ids and times."""
    told = {"turn", "step", "reason", "isError", "name", "arguments", "active", "label", "provider", "code"}
    return [
        (each.type, {k: v for k, v in each.data.items() if k in told} if isinstance(each.data, dict) else {}) for each in session.events
    ]


def recorded(session: Session) -> RecordedSession:
    events = list(session.events)
    part = child_part(session.header, events)
    own = parts(session.header, events) if session.header.delegation_depth == 0 else [] if part is None else [part]
    return RecordedSession(StoredSession(session.header, list(session.lines)), events, own)


async def along(world: World, replay: Replay) -> None:
    """The conversation again."""
    bench = world.bench
    replay.install(bench.seams)
    bench.seams.questions.provide(replay.people(lambda: (NobodyToAsk(), NobodyToApprove())))

    def reopen(agent: LoopAgent) -> LoopAgent:
        raise AssertionError("nothing was restarted")

    agent = await replay.lead(bench.agent, CELL["source"], "turn", reopen)
    agent.config = replay.config(agent, agent.config)
    bench.agent.inbox.followup({"content": [{"type": "text", "text": "go"}], "source": {"kind": "user"}, "role": "user", "id": "prompt"})
    if replay.play(agent) is None:
        await agent.run_turn(CELL)
    replay.arrive(agent)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.booleans())
def test_any_family_closes_its_logs_and_replays(data: Any, plans: bool) -> None:
    """Bounded in depth, plan mode as inherited, schemas the same for all, no model asked the second time."""
    live = World(data, "live")
    if plans:
        live.bench.session.append(draft("plan/mode", {"active": True}))

    async def turn() -> None:
        live.bench.agent.inbox.followup(
            {"content": [{"type": "text", "text": "go"}], "source": {"kind": "user"}, "role": "user", "id": "prompt"}
        )
        await live.bench.agent.run_turn(CELL)

    asyncio.run(turn())
    schemas = {str(request.tools) for model in (live.bench.model, *live.nursery.models) for request in model.requests}
    assert len(schemas) == 1
    for session in live.sessions:
        assert session.place.turn is None
        assert session.header.delegation_depth <= DEPTH
        again = Session(session.header, clock=counted_clock(), lines=list(session.lines))
        assert shape(again) == shape(session)
        if session.header.delegation_depth:
            assert session.fold(PLAN).active is (plans and _is_forked(session, live))

    main = recorded(live.bench.session)
    kept = {session.id: recorded(session) for session in live.sessions[1:]}
    matching = Matching([], {live.bench.session.id: main}, {"main": live.bench.session.id}, {}, children=kept)
    replay = Replay(matching, places=[(None, Place(live.bench.session.id, part)) for part in main.parts])
    led = World(data, "again", asks=False)
    if plans:
        led.bench.session.append(draft("plan/mode", {"active": True}))
    asyncio.run(along(led, replay))
    assert [shape(session) for session in led.sessions] == [shape(session) for session in live.sessions]
    # A turn that failed is taken as recorded, tools included; a child that failed is not, since its parent went on.
    assert led.made == (live.made if live.bench.session.events[-1].data["reason"]["kind"] == "completed" else [])
    assert all(not model.requests for model in (led.bench.model, *led.nursery.models))


def _is_forked(session: Session, world: World) -> bool:
    """Whether the whole line up to the root is one of forks: a spawned one begins outside plan mode."""
    by_id = {each.id: each for each in world.sessions}
    while session.header.delegation_depth:
        if not session.header.seed_length:
            return False
        session = by_id[str(session.header.parent_session)]
    return True
