"""Words that wait in the queue: said, offered, never run unasked, never lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plan_mode_nb.log.messages import user_message
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.store.jsonl import save_jsonl
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.faults import Filtered, Slow, Stall

from .agent_kernel import AgentKernel

ANSWER = [say("Yes."), usage(1, 1)]


@pytest.fixture(scope="module")
def kernel() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable) as agent:
        yield agent


def asked(agent: AgentKernel, request: int = -1) -> str:
    """What a request said to the model."""
    return json.dumps([m for m in agent.server.requests[request].body["messages"] if m["role"] == "user"])


def queued(path: Path, *texts: str) -> Path:
    """A session of deepseek-harness that was left with prompts in its queue."""
    session = logs.new_session(path.stem)
    session.append(logs.turn_start(1), logs.step_start(1, 1), logs.user("hello", id="u"))
    session.append(logs.assistant(1, 1, "Hi.", id="a"), logs.step_end(1, 1), logs.turn_end(1))
    for at, text in enumerate(texts):
        message = user_message(text, id=f"q{at}")
        session.append(logs.draft("agent/inbox/spliced", {"target": "next-turn", "start": at, "inserted": [message]}))
    save_jsonl(path, session.header, session.lines)
    return path


def test_what_an_imported_session_had_queued_is_offered_and_sent_when_asked(kernel: AgentKernel, tmp_path: Path) -> None:
    agent = kernel.begin(ANSWER, ANSWER, ANSWER)
    said = agent.run(f"%session import {queued(tmp_path / 'one.jsonl', 'first of all', 'and then')}").text
    assert "note: 2 messages were never sent (first of all); %agent alone sends them" in said
    assert "waiting      2 messages were never sent (first of all)" in agent.run("%session").text
    ran = agent.run("%agent")
    assert ran.status == "ok"
    assert ran.text.splitlines() == ["Sending what waited: first of all", "A message was never sent (and then); %agent alone sends it."]
    assert "first of all" in asked(agent)
    assert "and then" not in asked(agent)
    agent.run("%agent")
    assert "and then" in asked(agent)
    nothing = agent.run("%agent")
    assert (nothing.status, str(nothing.evalue)) == ("error", "nothing waits to be sent; say something to the agent: %agent MESSAGE")
    assert "waiting" not in agent.run("%session").text
    assert len(agent.server.requests) == 2


def test_a_cell_that_says_something_else_is_what_runs_and_what_waited_is_handed_back(kernel: AgentKernel, tmp_path: Path) -> None:
    agent = kernel.begin(ANSWER, ANSWER)
    agent.run(f"%session import {queued(tmp_path / 'two.jsonl', 'delete it', 'several' + chr(10) + 'lines')}")
    ran = agent.run("%plan keep it")
    assert ran.text == (
        "Not sent: this waited from before, and the cell says something else. To send it:\n%agent delete it\n\n%%agent\nseveral\nlines\n"
    )
    assert "keep it" in asked(agent)
    assert "delete it" not in asked(agent)
    assert agent.run("%agent and this").text == ""
    assert [event for event in agent.types() if event == "turn/start"] == ["turn/start"] * 3


def test_a_cell_that_runs_again_after_its_kernel_died_asks_once_and_says_nothing(kernel: AgentKernel, tmp_path: Path) -> None:
    agent = kernel.begin(ANSWER)
    agent.run(f"%session import {queued(tmp_path / 'three.jsonl', 'count the rows')}")
    assert agent.run("%agent count the rows").text == ""
    assert asked(agent).count("count the rows") == 1


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_a_steer_that_came_too_late_is_handed_back(kernel: AgentKernel, end: str) -> None:
    agent = kernel.begin([say("thinking "), Stall()] if end == "stopped" else [Slow(0.05), say("word " * 70), Filtered()], ANSWER)
    cell = agent.kernel.send("%agent work")
    assert agent.server.wait_for_requests(1, 60)
    agent.kernel.handled(agent.act("controls", {"kind": "steer", "text": "but in blue"}), 60)
    if end == "stopped":
        agent.kernel.interrupt()
    ran = agent.kernel.wait(cell, 60)
    assert ran.ename == ("KeyboardInterrupt" if end == "stopped" else "TurnError")
    assert ran.text == "Not sent: the turn ended before it came to this. To send it:\n%agent but in blue\n"
    assert agent.run("%agent but in blue").text == ""
    assert asked(agent).count("but in blue") == 1
