"""Loading, taking out and reloading the extension while something is going on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from plan_mode_nb.models.script import call, say, usage

from .agent_kernel import AgentKernel

SUBMIT: list[Any] = [say("Here is my plan."), call("exit_plan_mode", {"plan": "# Count\n\n1. Count.\n"}), usage(1, 1)]
BUTTON = (
    "import ipywidgets\nbutton = ipywidgets.Button(description='go')\n"
    "button.on_click(lambda _: get_ipython().run_line_magic({magic!r}, 'plan_mode_nb'))\ndisplay(button)"
)


@pytest.fixture
def agent() -> Iterator[AgentKernel]:
    """A kernel that may be left in any state."""
    with AgentKernel(sys.executable) as agent:
        yield agent


@pytest.fixture
def anywhere(python: str) -> Iterator[AgentKernel]:
    """The same on every supported ipykernel."""
    with AgentKernel(python) as agent:
        yield agent


def test_a_reload_during_a_review_fails_the_call_and_the_next_turn_reviews_again(anywhere: AgentKernel) -> None:
    """From a widget's callback, while the cell waits: the model is told to present the plan again, and nothing is approved."""
    agent = anywhere
    agent.begin(SUBMIT, [say("I see."), usage(1, 1)], SUBMIT, [say("Done."), usage(1, 1)])
    agent.kernel.must(BUTTON.format(magic="reload_ext"))
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.kernel.click("go")
    ran = agent.kernel.wait(cell, 20)
    assert ran.status == "ok", (ran.ename, ran.evalue)
    assert ran.shown[-1] == "I see."
    assert any("Plan review: not approved" in shown for shown in ran.shown)
    assert "present it again" in str(agent.server.requests[1].body["messages"][-1]["content"])
    folded = agent.fold()
    assert folded["plan"] == {"active": True, "pending": None}
    assert folded["open_reviews"] == []
    assert folded["turns"] == [{"turn": 1, "steps": 2, "end": {"kind": "completed"}}]
    again = agent.kernel.send("%agent present it again")
    agent.answer("Approve")
    assert agent.kernel.wait(again, 20).status == "ok"
    assert agent.fold()["plan"] == {"active": False, "pending": None}


def test_after_a_reload_in_a_turn_the_new_extension_waits_for_the_turn_to_end(agent: AgentKernel) -> None:
    """Two sessions on one log would each write over the other's end: what is asked of the new one meanwhile is refused, or waits."""
    agent.begin(SUBMIT, [say("I see."), usage(1, 1)])
    agent.kernel.must(
        "import ipywidgets\nsaid = []\n"
        "def again(_):\n"
        "    ip = get_ipython()\n"
        "    ip.run_line_magic('reload_ext', 'plan_mode_nb')\n"
        "    try:\n"
        "        ip.run_line_magic('session', '')\n"
        "    except Exception as error:\n"
        "        said.append(str(error))\n"
        "    ip._plan_mode_nb[0].on_select(False)\n"
        "button = ipywidgets.Button(description='go')\nbutton.on_click(again)\ndisplay(button)"
    )
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.kernel.click("go")
    assert agent.kernel.wait(cell, 20).status == "ok"
    assert "wait until its cell has ended" in agent.kernel.must("print(said[0])")
    assert agent.fold()["plan"] == {"active": False, "pending": None}
    types = agent.types()
    assert types.count("turn/end") == 1
    assert types[types.index("turn/end") :] == ["turn/end", "session/end-seed", "command/run", "plan/mode", "command/done"]


def test_taken_out_during_a_review_the_turn_ends_and_nothing_stays(agent: AgentKernel) -> None:
    """The call fails, the model hears it, and when the cell has ended there is no thread, comm, magic or card left."""
    survey = (
        "import threading\nfrom comm import get_comm_manager\n"
        "print(sum('plan-mode-nb' in t.name for t in threading.enumerate()), 'plan_mode_nb' in get_comm_manager().comms,"
        " get_ipython().find_line_magic('plan'), hasattr(get_ipython(), '_plan_mode_nb'))"
    )
    agent.begin(SUBMIT, [say("I see."), usage(1, 1)])
    comms = "from comm import get_comm_manager\nprint(len(get_comm_manager().comms))"
    agent.kernel.must(BUTTON.format(magic="unload_ext"))
    before = int(agent.kernel.must(comms))
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.kernel.click("go")
    ran = agent.kernel.wait(cell, 20)
    assert ran.status == "ok", (ran.ename, ran.evalue)
    assert ran.shown[-1] == "I see."
    assert "present it again" in str(agent.server.requests[1].body["messages"][-1]["content"])
    assert "tools" not in agent.server.requests[1].body
    assert agent.kernel.must(survey) == "0 False None False\n"
    assert int(agent.kernel.must(comms)) == before - 1
    agent.kernel.must("%load_ext plan_mode_nb")
    assert agent.fold()["turns"] == [{"turn": 1, "steps": 2, "end": {"kind": "completed"}}]
