"""``%session replay on`` after a restart: recorded turns run again, the first difference forks once, and a stranger's log runs nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from plan_mode_nb.models.script import call, say, usage

from .agent_kernel import AgentKernel

PLAN = "# Count\n\n1. Count.\n"
ASK, ACT, MORE = "%plan count", "%agent count again", "%agent and once more"


def told(agent: AgentKernel) -> AgentKernel:
    """A conversation of two turns, and then another kernel."""
    agent.kernel.must("%sandbox danger-full-access")
    cell = agent.kernel.send(ASK)
    agent.answer("Approve")
    assert agent.kernel.wait(cell, 60).status == "ok"
    assert agent.run(ACT, 60).status == "ok"
    agent.kernel.kill()
    agent.kernel.must("%load_ext plan_mode_nb")
    return agent


ANSWERS = (
    [say("Here is my plan."), call("exit_plan_mode", {"plan": PLAN}), usage(10, 5)],
    [call("python", {"code": "count = 41\ncount"}), usage(10, 5)],
    [say("Forty-one."), usage(10, 5)],
    [call("spawn_agent", {"task": "Count on."}), usage(10, 5)],
    [call("python", {"code": "count += 1\ncount"}), usage(10, 5)],
    [say("Forty-two."), usage(10, 5)],
    [say("Forty-two."), usage(10, 5)],
)


@pytest.fixture
def restarted() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable, [*ANSWERS, [say("Live again."), usage(1, 1)], [say("Still live."), usage(1, 1)]]) as agent:
        yield told(agent)


def test_recorded_turns_make_their_variables_again_without_a_model_and_the_conversation_goes_on(restarted: AgentKernel) -> None:
    """No request, no longer log; after the last recorded turn cells are live, in the same session."""
    asked, before = len(restarted.server.requests), restarted.types()
    said = restarted.kernel.must("%session replay on")
    assert "the 2 recorded turns run again" in said
    restarted.kernel.must("%sandbox danger-full-access")
    first = restarted.run(ASK, 60)
    assert first.status == "ok", first
    assert any(text.startswith("Plan review: approved") for text in first.shown)
    assert restarted.run(ACT, 60).status == "ok"
    assert restarted.kernel.must("print(count)") == "42\n"
    assert len(restarted.server.requests) == asked
    assert restarted.types() == before
    assert restarted.kernel.must("%session").count("\nchild ") == 1
    live = restarted.run(MORE, 60)
    assert live.shown[-1] == "Live again."
    assert len(restarted.server.requests) == asked + 1
    after = restarted.fold()
    assert [turn["turn"] for turn in after["turns"]] == [1, 2, 3]
    assert after["sandbox_mode"] == "danger-full-access", "the person granted it in this kernel"


def test_an_edited_cell_forks_once_and_what_follows_is_live(restarted: AgentKernel) -> None:
    """Said why and where; the recorded session stays; a second difference is none, because nothing is replayed any more."""
    session = restarted.fold()["session"]
    restarted.kernel.must("%session replay on")
    restarted.kernel.must("%sandbox danger-full-access")
    assert restarted.run(ASK, 60).status == "ok"
    asked = len(restarted.server.requests)
    edited = restarted.run("%agent count again, please", 60)
    assert edited.status == "ok", edited
    assert "Replay stopped: turn 2 (count again) comes next in the recording" in edited.text
    assert edited.shown[-1] == "Live again."
    folded = restarted.fold()
    assert folded["session"] != session
    assert [turn["turn"] for turn in folded["turns"]] == [1, 2]
    again = restarted.run(MORE, 60)
    assert "Replay stopped" not in again.text
    assert len(restarted.server.requests) == asked + 2
    assert session in restarted.kernel.must("%session")


def test_recorded_code_asks_again_where_code_asks_and_a_refusal_forks() -> None:
    """An approval of the recording is none here: the card is back, nothing runs before it, and *Reject* is a difference."""
    code = [call("python", {"code": "made = 1"}), usage(1, 1)]
    with AgentKernel(sys.executable, [code, [say("Made."), usage(1, 1)], [say("Then not."), usage(1, 1)]]) as agent:
        allow = {"kind": "answer", "answers": [{"id": "approval", "selected": ["Allow once"]}]}
        cell = agent.kernel.send("%agent make it")
        agent.next_card()
        agent.act("approval", allow)
        assert agent.kernel.wait(cell, 60).status == "ok"
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb\n%session replay on")
        again = agent.kernel.send("%agent make it")
        agent.kernel.until(lambda: any(state.get("kind") == "approval" for state in agent.kernel.comms.values()), 60)
        agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Reject"]}]})
        ran = agent.kernel.wait(again, 60)
        assert "Replay stopped" in ran.text
        assert ran.shown[-1] == "Then not."
        assert agent.kernel.must("print('made' in globals())") == "False\n"


def test_a_cell_that_asked_before_the_restart_says_so_first(restarted: AgentKernel) -> None:
    """Without a replay it continues the conversation, and names the two other ways."""
    ran = restarted.run(ACT, 60)
    assert ran.text.startswith("This cell opened turn 2 of the conversation before the kernel was restarted")
    assert "%session new" in ran.text
    assert ran.shown[-1] == "Live again."
    again = restarted.run(MORE, 60)
    assert again.text == ""
