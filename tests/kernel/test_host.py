"""The extension in real kernels: magics, turns, reviews, interrupts, and what stays when it is gone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.faults import Slow, Stall

from .agent_kernel import SECTION, AgentKernel
from .conftest import OTHERS, _python

PLAN = "# Count the rows\n\n1. Load the data.\n2. Count.\n"
REVISED = "# Count the rows twice\n\n1. Load the data.\n2. Count it twice.\n"
Start = Callable[..., AgentKernel]


@pytest.fixture
def fresh_agent() -> Iterator[Start]:
    """Start kernels that the test may break: ``fresh_agent(*steps, **options)``."""
    with ExitStack() as stack:
        yield lambda *steps, **options: stack.enter_context(AgentKernel(sys.executable, steps, **options))


@pytest.fixture(scope="module")
def one() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable) as agent:
        yield agent


@pytest.fixture
def start(one: AgentKernel) -> Start:
    """A new session in a shared kernel of this interpreter: ``start(*steps)``."""
    return one.begin


@pytest.fixture(scope="module", params=["current-main", "current-subshell", "6.29-main", "7.3-main", "7.3-subshell"])
def each(request: pytest.FixtureRequest) -> Iterator[AgentKernel]:
    name, route = request.param.split("-")
    assert name in ("current", *OTHERS)
    with AgentKernel(_python(name), route=route) as agent:
        yield agent


@pytest.fixture
def anywhere(each: AgentKernel) -> Start:
    """The same on every supported ipykernel and comm route."""
    return each.begin


def submit(plan: str = PLAN) -> Any:
    return [say("Here is my plan."), call("exit_plan_mode", {"plan": plan}), usage(10, 5)]


def test_a_plan_is_reviewed_revised_and_approved_before_the_agent_acts(anywhere: Start) -> None:
    """Feedback reaches the model verbatim, approval leaves plan mode at the next step, and only then does the agent act."""
    act = [say("Now I act."), call("python", {"code": "rows = 40 + 2\nrows"}), usage(10, 5)]
    agent = anywhere(submit(), submit(REVISED), act, [say("**42** rows."), usage(10, 5)])
    agent.kernel.must("%sandbox danger-full-access")
    cell = agent.kernel.send("%plan count the rows")
    agent.answer("Keep planning", "count twice, please")
    assert agent.server.wait_for_requests(2, 60)
    agent.answer("Approve")
    ran = agent.kernel.wait(cell, 30)
    assert ran.status == "ok", ran
    assert ran.shown[-1] == "**42** rows."
    assert agent.kernel.must("print(rows)") == "42\n"
    folded = agent.fold()
    assert folded["plan"] == {"active": False, "pending": None}
    assert folded["turns"] == [{"turn": 1, "steps": 4, "end": {"kind": "completed"}}]
    bodies = [received.body for received in agent.server.requests]
    assert "their feedback: count twice, please" in str(bodies[1]["messages"][-1])
    systems = [body["messages"][0]["content"] for body in bodies]
    assert [SECTION in system for system in systems] == [True, True, False, False]
    assert bodies[0]["tools"] == bodies[3]["tools"]


def test_outputs_are_static_when_the_turn_is_over(start: Start) -> None:
    """No widget remains in the outputs; the whole plan and its outcome do."""
    agent = start(submit(), [say("Done."), usage(10, 5)])
    cell = agent.kernel.send("%plan count the rows")
    agent.answer("Approve")
    ran = agent.kernel.wait(cell, 30)
    mimes = {mime for output in ran.outputs for mime in output.get("data", {})}
    assert "application/vnd.jupyter.widget-view+json" not in mimes
    assert any(text.startswith("Plan review: approved") and PLAN.strip() in text for text in ran.shown)
    live = [comm for comm, state in agent.kernel.comms.items() if "kind" in state and comm not in agent.kernel.closed_comms]
    assert live == []


def test_a_message_of_a_line_magic_is_taken_verbatim(start: Start) -> None:
    """No expansion of braces or dollars, no quote handling; a final question mark or backslash belongs to the message."""
    messages = ['fix {x} under $HOME "quoted', "why does the join fail?", "keep the trailing \\"]
    agent = start(*[[say("ok"), usage(1, 1)]] * len(messages))
    agent.kernel.must("x = 5")
    for message in messages:
        ran = agent.run(f"%agent {message}\nafter = {message!r}")
        assert ran.status == "ok", ran
        assert agent.kernel.must("print(after)") == f"{message}\n"
    sent = [received.body["messages"][-1]["content"] for received in agent.server.requests]
    assert sent == messages


def test_a_lone_question_mark_is_help(start: Start) -> None:
    """``%plan?`` shows help and selects nothing."""
    agent = start()
    ran = agent.run("%plan?")
    assert "Plan mode: the agent explores first" in str(ran.payload)
    assert agent.types() == []


def test_selecting_while_idle_is_logged_at_once_and_once(start: Start) -> None:
    """``%plan`` twice is one ``plan/mode``; ``OFF`` in any case leaves."""
    agent = start()
    assert agent.run("%plan").text == "Plan mode on. Use %plan off to leave.\n"
    assert "already on" in agent.run("%plan on").text
    assert agent.run("%plan OFF").text == "Plan mode off.\n"
    assert agent.run("%plan off").text == "Plan mode is already inactive.\n"
    assert agent.types().count("plan/mode") == 2


def test_the_body_of_a_cell_is_a_message_even_when_it_says_off(start: Start) -> None:
    """``%%plan`` with the body ``off`` sends it; newlines inside stay; anything but options on the first line is refused."""
    agent = start([say("ok"), usage(1, 1)], [say("ok"), usage(1, 1)])
    assert agent.run("%%plan\noff").status == "ok"
    assert agent.run("%%agent\nfirst\n\n  second").status == "ok"
    assert [r.body["messages"][-1]["content"] for r in agent.server.requests] == ["off", "first\n\n  second"]
    refused = agent.run("%%plan now\nbody")
    assert refused.status == "error"
    assert "first line" in str(refused.evalue)
    assert agent.fold()["plan"] == {"active": True, "pending": None}


@pytest.mark.parametrize(
    ("steps", "ready"),
    [
        pytest.param([[Slow(0.05), say("word " * 200)]], "word", id="stream"),
        pytest.param([[call("python", {"code": "import time\nprint('going')\ntime.sleep(60)"})]], "going", id="tool"),
        pytest.param([[call("exit_plan_mode", {"plan": PLAN})]], None, id="review"),
    ],
)
def test_an_interrupt_ends_the_cell_closes_the_log_and_leaves_a_usable_kernel(anywhere: Start, steps: list[Any], ready: str | None) -> None:
    """KeyboardInterrupt within a second or so; cells queued behind are aborted as Jupyter does; the next turn works."""
    agent = anywhere(*steps, [say("Here again."), usage(1, 1)])
    agent.kernel.must("%sandbox danger-full-access")
    cell = agent.kernel.send("%plan work")
    queued = agent.kernel.send("print('queued')")
    if ready is None:
        agent.next_card()
    else:
        agent.kernel.until_shown(cell, ready, 20)
    pressed = agent.kernel.interrupt()
    ran = agent.kernel.wait(cell, 10)
    assert ran.ename == "KeyboardInterrupt"
    assert ran.replied_at is not None
    assert ran.replied_at - pressed < 3
    assert agent.kernel.wait(queued, 10).status in ("aborted", "ok")
    folded = agent.fold()
    assert folded["turns"][-1]["end"] == {"kind": "aborted", "reason": {"kind": "user"}}
    assert folded["open_reviews"] == []
    again = agent.run("%agent go on")
    assert again.status == "ok", again
    assert again.shown[-1] == "Here again."


def test_stop_on_the_controls_is_the_kernel_s_stop(start: Start) -> None:
    """The controls card's Stop ends the turn as an interrupt does."""
    agent = start([Slow(0.05), say("word " * 200)])
    cell = agent.kernel.send("%agent work")
    agent.kernel.until_shown(cell, "word", 20)
    agent.act("controls", {"kind": "stop"})
    assert agent.kernel.wait(cell, 10).ename == "KeyboardInterrupt"


def test_steering_joins_the_next_step(start: Start) -> None:
    """Words typed into the controls card while a step runs are a user message of the next one."""
    agent = start([Slow(0.02), say("word " * 50), usage(1, 1)], [say("Understood."), usage(1, 1)])
    cell = agent.kernel.send("%agent work")
    agent.kernel.until_shown(cell, "word", 20)
    agent.act("controls", {"kind": "steer", "text": "mind the units"})
    ran = agent.kernel.wait(cell, 20)
    assert ran.shown[-1] == "Understood."
    assert agent.server.requests[1].body["messages"][-1] == {"role": "user", "content": "mind the units"}


def test_plan_mode_off_during_a_review_closes_it_as_not_approved(start: Start) -> None:
    """The person leaves by the controls; the review is over, plan mode is off at the next step, with one notice."""
    agent = start(submit(), [say("Left."), usage(1, 1)])
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.act("controls", {"kind": "plan", "active": False})
    ran = agent.kernel.wait(cell, 20)
    assert ran.status == "ok", ran
    assert agent.fold()["plan"] == {"active": False, "pending": None}
    last = agent.server.requests[1].body["messages"]
    assert sum("back to the default mode" in str(message["content"]) for message in last) == 1
    assert SECTION not in last[0]["content"]


def test_nobody_to_click_fails_closed_at_once(fresh_agent: Start) -> None:
    """Without a front end that takes input, a review is unavailable: the turn goes on, nothing is approved."""
    agent = fresh_agent(submit(), [say("Then I ask here."), usage(1, 1)], load=False)
    agent.kernel.run("%load_ext plan_mode_nb", allow_stdin=False)
    ran = agent.kernel.run("%plan work", allow_stdin=False)
    assert ran.status == "ok", ran
    assert ran.shown[-1] == "Then I ask here."
    assert agent.fold()["plan"]["active"] is True


def test_an_in_kernel_call_asks_first_outside_full_access(start: Start) -> None:
    """By default each ``python`` call shows what would run; only *Allow once* lets it run."""
    code = {"code": "ran = True"}
    agent = start([call("python", code)], [call("python", code)], [say("Done."), usage(1, 1)])
    cell = agent.kernel.send("%agent work")
    agent.next_card()
    agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Reject"]}]})
    assert agent.server.wait_for_requests(2, 60)
    assert "rejected" in str(agent.server.requests[1].body["messages"][-1]["content"])
    agent.next_card()
    agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Allow once"]}]})
    assert agent.kernel.wait(cell, 20).status == "ok"
    assert agent.kernel.must("print(ran)") == "True\n"


def test_a_turn_is_refused_where_it_cannot_be_shown(start: Start) -> None:
    """Under ``%%capture`` and in a widget's callback: one sentence at once, nothing selected."""
    agent = start()
    captured = agent.run("%%capture\n%plan work")
    assert captured.ename == "HostError"
    assert "%%capture" in str(captured.evalue)
    agent.kernel.must(
        "import ipywidgets as w\nb = w.Button(description='go')\n"
        "b.on_click(lambda _: get_ipython().run_line_magic('plan', 'work'))\ndisplay(b)"
    )
    agent.kernel.handled(agent.kernel.click("go"), 10)
    assert agent.types() == []
    assert len(agent.server.requests) == 0


def test_loading_twice_reloading_and_unloading_leave_one_and_then_none(fresh_agent: Start) -> None:
    """One of everything however often it is loaded; after unloading no magic, hook, comm, thread or setting remains."""
    survey = """
import threading
from comm import get_comm_manager
ip = get_ipython()
print(sum('plan-mode-nb' in t.name for t in threading.enumerate()),
      len(ip.input_transformer_manager.token_transformers),
      len(ip.input_transformer_manager.cleanup_transforms), sum(len(v) for v in ip.events.callbacks.values()),
      'plan' in ip.magics_manager.magics['line'], 'plan' in ip.magics_manager.magics['cell'],
      'plan_mode_nb' in get_comm_manager().comms, sum(type(c).__name__ in ('PlanAgent', 'PlanMode') for c in ip.configurables),
      len(ip.Completer.custom_matchers), hasattr(ip, '_plan_mode_nb'))
"""
    agent = fresh_agent(load=False)
    before = agent.kernel.must(survey)
    agent.kernel.must("%load_ext plan_mode_nb\n%plan")
    loaded = agent.kernel.must(survey)
    agent.kernel.must("%load_ext plan_mode_nb\n%reload_ext plan_mode_nb\n%reload_ext plan_mode_nb\n%plan")
    assert agent.kernel.must(survey) == loaded
    agent.kernel.must("%unload_ext plan_mode_nb")
    assert agent.kernel.must(survey) == before


def test_a_reload_in_mid_review_fails_the_call_and_ends_the_turn_cleanly(fresh_agent: Start) -> None:
    """The call says to present the plan again; nothing is approved; the kernel goes on."""
    agent = fresh_agent(submit(), [say("I present it again."), usage(1, 1)])
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.kernel.interrupt()
    assert agent.kernel.wait(cell, 10).ename == "KeyboardInterrupt"
    assert agent.run("%reload_ext plan_mode_nb").status == "ok"
    assert agent.fold()["plan"]["active"] is True


def test_completion_answers_while_a_review_waits(start: Start) -> None:
    """Tab completion and Shift-Tab help still answer in a waiting cell."""
    agent = start(submit(), [say("ok"), usage(1, 1)])
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    reply = agent.kernel.reply(agent.kernel.request("complete_request", {"code": "pri", "cursor_pos": 3}))
    assert "print" in reply["matches"]
    agent.act("review", {"kind": "answer", "answers": [{"id": "plan-review", "selected": ["Approve"]}]})
    assert agent.kernel.wait(cell, 20).status == "ok"


def test_a_stalled_model_can_be_stopped(start: Start) -> None:
    """A model that never answers holds nobody: the stop button works."""
    agent = start([Stall()])
    cell = agent.kernel.send("%agent work")
    assert agent.server.wait_for_requests(1, 60)
    agent.kernel.interrupt()
    assert agent.kernel.wait(cell, 10).ename == "KeyboardInterrupt"
    assert agent.server.wait_for_disconnects(1)
