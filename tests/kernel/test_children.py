"""Child agents in a real kernel: the card, whose question it is, Stop, the log in the notebook, and what a kill leaves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from plan_mode_nb.document.document import Document
from plan_mode_nb.document.outputs import read_outputs
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.store.belonging import journals_for
from plan_mode_nb.store.journal import journals
from plan_mode_nb.testing.faults import Slow

from .agent_kernel import AgentKernel

DONE = [say("Done."), usage(1, 1)]


@pytest.fixture(scope="module")
def kernel() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable) as agent:
        yield agent


def spawn(task: str, kind: str = "spawn_agent") -> Any:
    return [say("I hand it over."), call(kind, {"task": task}), usage(1, 1)]


def kept(agent: AgentKernel) -> Document:
    """What the journals of this kernel hold."""
    found, problems = journals(agent.folder / "runtime" / "plan_mode_nb")
    assert problems == []
    return merge_documents(*(each.document for each in found))


def children(agent: AgentKernel) -> list[tuple[str, list[Any]]]:
    """Ids and events of the main session's children, oldest first."""
    main = agent.fold()["session"]
    found = [each for each in kept(agent).sessions.values() if each.header.parent_session == main]
    return [(each.header.id, decode_all(list(each.lines))) for each in sorted(found, key=lambda each: each.header.created_at)]


def test_a_childs_approval_says_whose_it_is_and_its_code_runs_in_the_same_kernel(kernel: AgentKernel) -> None:
    """Progress is in the call's card, the answer goes to the parent, and the session is in the notebook under no name."""
    code = call("python", {"code": "limit = 3\nlimit"})
    agent = kernel.begin(spawn("Set the limit."), [code, usage(1, 1)], [say("Three."), usage(1, 1)], DONE)
    cell = agent.kernel.send("%agent go")
    agent.next_card()
    card = agent.kernel.comms[agent.card("approval")]
    assert card["preview"] == "limit = 3\nlimit"
    assert card["reason"].startswith("The child agent “Set the limit.” asks: ")
    agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Allow once"]}]})
    shown = agent.kernel.wait(cell, 60).shown
    call_card = next(text for text in shown if text.startswith("spawn_agent (done): Set the limit."))
    assert "The child: 2 steps, 1 call:\ntool python: limit = 3" in call_card
    assert call_card.endswith("Result:\nThree.")
    approval = next(text for text in shown if text.startswith("Approval of python"))
    assert approval.startswith("Approval of python for the child agent “Set the limit.”: allowed\n")
    assert approval.endswith("limit = 3\nlimit")
    assert agent.kernel.must("print(limit)").strip() == "3"
    (child, events), main = children(agent)[-1], agent.fold()["session"]
    assert child.startswith(f"{main}.")
    assert events[-1].type == "turn/end"
    assert child not in kept(agent).agents.values()
    said = agent.kernel.must("%session")
    assert f"child        {child}  “Set the limit.” (spawned): completed, 2 steps, 2 tokens in, 2 out" in said
    log = agent.kernel.must(f"%session log {child}")
    assert "task: Set the limit." in log
    assert "assistant: Three." in log
    again = agent.run(f"%session use {child}")
    assert "is a child's" in str(again.evalue)


def test_where_no_page_keeps_the_log_the_outputs_carry_the_children_too(kernel: AgentKernel) -> None:
    """The outputs of the cell give the child's session back, whole."""
    agent = kernel.begin(spawn("Say three."), [say("Three."), usage(1, 1)], DONE)
    cell = agent.run("%agent go")
    carried = read_outputs([{"outputs": cell.outputs}])
    (child, events), main = children(agent)[-1], agent.fold()["session"]
    assert carried.problems == ()
    assert carried.agents == {"main": main}
    assert decode_all(list(carried.sessions[child].lines)) == events


def test_stop_ends_the_child_and_its_parent(kernel: AgentKernel) -> None:
    """The kernel's stop button while the child streams: both logs are closed, and the next cell works."""
    agent = kernel.begin(spawn("Talk.", "fork_agent"), [Slow(0.05), say("word " * 400)], DONE)
    cell = agent.kernel.send("%agent go")
    assert agent.server.wait_for_requests(2, 60)
    agent.kernel.interrupt()
    ended = agent.kernel.wait(cell, 60)
    assert ended.ename == "KeyboardInterrupt"
    assert any("the child agent was stopped" in text for text in ended.shown)
    _, events = children(agent)[-1]
    assert events[-1].data["reason"] == {"kind": "aborted", "reason": {"kind": "parent"}}
    assert agent.fold()["turns"][-1]["end"] == {"kind": "aborted", "reason": {"kind": "user"}}
    assert agent.run("%agent again").shown[-1] == "Done."


def test_depth_is_a_setting_and_children_may_have_children(kernel: AgentKernel) -> None:
    """Both are shown under the one call of the cell; at 0 the model is told to do the task itself."""
    agent = kernel.begin(spawn("Ask on."), spawn("Say three."), [say("Three."), usage(1, 1)], [say("It said three."), usage(1, 1)], DONE)
    shown = agent.run("%agent go").shown
    call_card = next(text for text in shown if text.startswith("spawn_agent (done): Ask on."))
    assert "The child: 2 steps, 1 call:" in call_card
    assert "Ask on. › Say three.: assistant: Three." in call_card
    assert [text for text in shown if text.startswith("spawn_agent")] == [call_card]
    main = agent.fold()["session"]
    grand = next(each for each in kept(agent).sessions.values() if each.header.delegation_depth == 2)
    assert str(grand.header.parent_session).startswith(f"{main}.")
    assert f"child        {grand.header.id}  “Say three.” (spawned): completed" in agent.kernel.must("%session")
    agent = kernel.begin(spawn("Ask on."), DONE)
    agent.kernel.must("%config PlanAgent.max_child_depth = 0")
    try:
        shown = agent.run("%agent go").shown
    finally:
        agent.kernel.must("%config PlanAgent.max_child_depth = 3")
    assert any("agents have no children here: do the task yourself" in text for text in shown)


def test_a_kernel_killed_while_a_child_works_loses_nothing_and_both_logs_close() -> None:
    """Looking changes no file; the parent's first new event closes the child's log too, and the status says how it ended."""
    steps = [spawn("Talk."), [say("Seen."), call("python", {"code": "1"}), usage(1, 1)], [Slow(0.05), say("word " * 400)], DONE]
    with AgentKernel(sys.executable, steps) as agent:
        agent.kernel.must("%sandbox danger-full-access")
        cell = agent.kernel.send("%agent go")
        agent.kernel.until_shown(cell, "The child: 1 step, 1 call", 60)
        assert agent.server.wait_for_requests(3, 60)
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        before = [each.path.read_bytes() for each in journals(agent.folder / "runtime" / "plan_mode_nb")[0]]
        ((child, events),) = children(agent)
        assert [event.type for event in events][-1] in ("step/start", "request/context"), events[-3:]
        assert "Seen." in json.dumps([event.data for event in events])
        assert f"child        {child}  “Talk.” (spawned): open" in agent.kernel.must("%session")
        assert [each.path.read_bytes() for each in journals(agent.folder / "runtime" / "plan_mode_nb")[0]] == before
        # A kernel of another name would find it too: its journal lies beside that of its parent, which the notebook names.
        folder, main = agent.folder / "runtime" / "plan_mode_nb", agent.fold()["session"]
        found = journals_for(folder, notebook=str(agent.notebook), kernels=[], sessions=[main])
        assert {each.header.id for each in found} == {main, child}
        assert agent.run("%agent go on").shown[-1] == "Done."
        ((_, events),) = children(agent)
        assert [event.type for event in events][-2:] == ["step/end", "turn/end"]
        assert events[-1].data["reason"] == {"kind": "interrupted"}
        assert [turn["end"]["kind"] for turn in agent.fold()["turns"]] == ["interrupted", "completed"]
        assert f"child        {child}  “Talk.” (spawned): interrupted, 2 steps" in agent.kernel.must("%session")
