"""The log outlives the kernel: killed, restarted, reopened, exported, forked."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path

import nbformat

from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.store.journal import journals
from plan_mode_nb.store.notebook import load_document
from plan_mode_nb.testing.faults import Slow

from .agent_kernel import SECTION, AgentKernel

PLAN = {"plan": "# Count\n\nCount the rows."}


def test_a_killed_kernel_loses_nothing_that_was_seen() -> None:
    """``kill -9`` in the middle of a turn: the restarted kernel finds every event, and the open turn is closed as interrupted. A steer that
    no step had taken yet is offered, and not sent unasked."""
    picture = (Path(__file__).parents[1] / "golden" / "grey.png").resolve()
    steps = [[say("Seen."), call("python", {"code": "x = 1"})], [Slow(0.05), say("word " * 200)], [say("Going on."), usage(1, 1)]]
    with AgentKernel(sys.executable, steps) as agent:
        agent.kernel.must("%sandbox danger-full-access")
        cell = agent.kernel.send(f"%%plan --image {picture}\nwork")
        agent.kernel.until_shown(cell, "word", 20)
        agent.kernel.handled(agent.act("controls", {"kind": "steer", "text": "but in blue"}), 60)
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        before = agent.fold()
        assert before["turns"] == [{"turn": 1, "steps": 2, "end": None}]
        assert "Seen." in json.dumps(before["messages"])
        assert before["plan"] == {"active": True, "pending": None}
        assert "a message was never sent (but in blue); %agent alone sends it" in agent.run("%session").text
        ran = agent.run("%agent go on")
        assert ran.shown[-1] == "Going on."
        assert ran.text.endswith("To send it:\n%agent but in blue\n")
        assert "but in blue" not in str(agent.server.requests[-1].body)
        assert b64encode(picture.read_bytes()).decode() in str(agent.server.requests[-1].body), "the journal has the image too"
        after = agent.fold()
        assert [turn["end"]["kind"] for turn in after["turns"]] == ["interrupted", "completed"]
        request = agent.server.requests[-1].body["messages"]
        assert SECTION in request[0]["content"]
        assert sum("kernel was restarted" in str(message["content"]) for message in request) == 1


def test_killed_while_a_review_waits_is_still_planning() -> None:
    """The question is unresolved, never answered; nothing is pending."""
    with AgentKernel(sys.executable, [[call("exit_plan_mode", PLAN)]]) as agent:
        agent.kernel.send("%plan work")
        agent.next_card()
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        folded = agent.fold()
        assert folded["plan"] == {"active": True, "pending": None}
        assert [review["title"] for review in folded["open_reviews"]] == ["Count"]


def test_killed_right_after_an_approval_leaves_at_the_next_step() -> None:
    """Approved and not yet applied: the next step leaves plan mode, without a notice."""
    steps = [[call("exit_plan_mode", PLAN)], [Slow(0.05), say("word " * 200)], [say("Left."), usage(1, 1)]]
    with AgentKernel(sys.executable, steps) as agent:
        cell = agent.kernel.send("%plan work")
        agent.answer("Approve")
        agent.kernel.until_shown(cell, "approved", 20)
        assert agent.server.wait_for_requests(2, 60)
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.run("%agent go on").shown[-1] == "Left."
        assert agent.fold()["plan"] == {"active": False, "pending": None}
        assert "switched this session" not in json.dumps(agent.server.requests[-1].body["messages"])


def test_looking_writes_nothing() -> None:
    """Loading the extension, ``%session`` and ``%session log`` make no journal and no event."""
    with AgentKernel(sys.executable) as agent:
        agent.run("%session")
        agent.run("%session log")
        assert agent.types() == []
        assert journals(agent.folder / "runtime" / "plan_mode_nb")[0] == []


def test_journals_are_private() -> None:
    """The folder is 0700, the file 0600."""
    with AgentKernel(sys.executable) as agent:
        agent.run("%plan")
        folder = agent.folder / "runtime" / "plan_mode_nb"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [file.stat().st_mode & 0o777 for file in folder.glob("*.journal")] == [0o600]


def test_a_session_in_the_notebook_file_is_found_by_another_kernel() -> None:
    """No journal, another kernel: the file alone brings the conversation back, with the plan state it had."""
    with AgentKernel(sys.executable, [[say("First."), usage(1, 1)], [say("Second."), usage(1, 1)]]) as agent:
        agent.run("%plan hello")
        exported = Path(agent.folder / "session.jsonl")
        agent.run(f"%session export {exported}")
        before = agent.fold()
        rows = exported.read_text().splitlines()
        header = json.loads(rows[0])
        header.pop("type")
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["plan_mode_nb"] = {"format": 1, "agents": {"main": header["id"]}, "sessions": {header["id"]: header}}
        notebook.metadata[f"plan_mode_nb/{header['id']}/0000000"] = rows[1:]
        nbformat.write(notebook, agent.notebook)
        assert load_document(agent.notebook).problems == ()
        for file in (agent.folder / "runtime" / "plan_mode_nb").iterdir():
            file.unlink()
        agent.replace_kernel()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.fold() == before
        assert agent.run("%agent go on").shown[-1] == "Second."
        assert "First." in str(agent.server.requests[-1].body["messages"])


def test_a_fork_goes_on_beside_its_parent() -> None:
    """``%session fork`` inherits, ``%session use`` goes back, and neither changes the other. The choice outlives a kernel that is killed
    before any page has it."""
    with AgentKernel(sys.executable, [[say("A."), usage(1, 1)], [say("B."), usage(1, 1)]]) as agent:
        agent.run("%plan one")
        parent = agent.fold()
        agent.run("%session fork")
        assert agent.fold()["plan"] == {"active": True, "pending": None}
        agent.run("%plan off")
        agent.run("%agent two")
        assert agent.fold()["session"] != parent["session"]
        fork = agent.fold()
        agent.run(f"%session use {parent['session']}")
        assert agent.fold() == parent
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.fold() == parent
        agent.run(f"%session use {fork['session']}")
        agent.run("%session new")
        agent.kernel.kill()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.fold()["events"] == 0
        listed = agent.run("%session").text
        assert parent["session"] in listed
        assert fork["session"] in listed


def test_an_exported_session_can_be_imported() -> None:
    """Export, then import under another id: the events are the same."""
    with AgentKernel(sys.executable, [[say("A."), usage(1, 1)]]) as agent:
        agent.run("%plan one")
        before = agent.fold()
        file = agent.folder / "out.jsonl.zstd"
        assert agent.run(f"%session export {file}").status == "ok"
        refused = agent.run(f"%session import {file}")
        assert "already" in str(refused.evalue)
        other = agent.folder / "other.jsonl"
        assert agent.run(f"%session export {other}").status == "ok"
        other.write_text(other.read_text().replace(before["session"], "imported-session"))
        assert agent.run(f"%session import {other}").status == "ok"
        assert agent.fold() == {**before, "session": "imported-session"}


def test_the_approved_plan_can_be_written_to_a_file() -> None:
    """``%session plan FILE`` writes the exact bytes that were submitted."""
    plan = "# Plan ✓\r\n\nCount — twice.\n"
    with AgentKernel(sys.executable, [[call("exit_plan_mode", {"plan": plan})], [say("Done."), usage(1, 1)]]) as agent:
        cell = agent.kernel.send("%plan work")
        agent.answer("Approve")
        agent.kernel.wait(cell, 30)
        file = agent.folder / "plan.md"
        assert agent.run(f"%session plan {file}").status == "ok"
        assert file.read_bytes() == plan.encode()
