"""A reopened session: what it owes its log, and what the model is told once."""

from __future__ import annotations

import asyncio
from typing import Any

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.features import restart, sandbox
from plan_mode_nb.folds.policies import SANDBOX_MODE
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.script import say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing.logs import new_session


def agent_of(session: Session, answers: int, *, reopened: bool = False) -> tuple[LoopAgent, ScriptedModel]:
    seams = Seams.create()
    restart.install(seams)
    sandbox.install(seams)

    model = ScriptedModel([[say("ok")] for _ in range(answers)])
    return LoopAgent("main", session, seams, lambda name: model, LoopConfig(), reopened=reopened), model


CELL = {"source": "0" * 64}


def turn(agent: LoopAgent, text: str, cell: dict[str, Any] | None = CELL) -> None:
    agent.inbox.followup(user_message(text, id=text))
    asyncio.run(agent.run_turn(cell))


def again(session: Session) -> Session:
    return new_session(lines=list(session.lines), header=session.header)


def notices(model: ScriptedModel) -> list[int]:
    """How many restart notices each request held."""
    return [sum(restart.NOTICE in str(message) for message in request.messages) for request in model.requests]


def test_the_model_is_told_of_a_restart_once() -> None:
    """The first request after reopening says so; the next one adds no second notice."""
    first, _ = agent_of(new_session(), 1)
    turn(first, "one")
    second, model = agent_of(again(first.session), 2, reopened=True)
    turn(second, "two")
    turn(second, "three")
    assert notices(model) == [1, 1]


def test_a_session_that_asked_no_model_needs_no_notice() -> None:
    """Reopened before its first request: nobody has to be told anything."""
    session = new_session()
    session.append(draft("plan/mode", {"active": True}))
    agent, model = agent_of(again(session), 1, reopened=True)
    turn(agent, "one")
    assert notices(model) == [0]


def test_a_session_that_was_never_in_a_notebook_made_no_variables_to_miss() -> None:
    """Such as one of deepseek-harness. Once it went on in a notebook, it may miss some."""
    first, _ = agent_of(new_session(), 1)
    turn(first, "one", None)
    second, model = agent_of(again(first.session), 1, reopened=True)
    turn(second, "two")
    third, later = agent_of(again(second.session), 1, reopened=True)
    turn(third, "three")
    assert notices(model) == [0]
    assert notices(later) == [1]


def test_a_fork_keeps_its_kernel_and_is_told_nothing() -> None:
    """A fork's seed ends in a mark too, but its variables are still there."""
    parent, _ = agent_of(new_session(), 1)
    turn(parent, "one")
    child: Any = parent.session.fork(len(parent.session), id=parent.session.id)
    agent, model = agent_of(child, 1)
    turn(agent, "two")
    assert notices(model) == [0]


def test_full_access_ends_with_its_kernel() -> None:
    """What a person granted to one kernel is not granted to the next, from the first new event on; looking writes nothing."""
    session = new_session()
    session.append(draft("sandbox/mode", {"mode": "danger-full-access"}))
    reopened = again(session)
    agent, _ = agent_of(reopened, 1, reopened=True)
    assert reopened.lines == session.lines
    turn(agent, "one")
    assert agent.session.fold(SANDBOX_MODE) == "workspace-write"


def test_a_stricter_mode_survives_reopening() -> None:
    """Only loosening ends: read-only stays."""
    session = new_session()
    session.append(draft("sandbox/mode", {"mode": "read-only"}))
    agent, _ = agent_of(again(session), 1, reopened=True)
    turn(agent, "one")
    assert agent.session.fold(SANDBOX_MODE) == "read-only"
