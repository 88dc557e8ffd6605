"""The agent's hands in a real kernel: commands under the sandbox, the card that lets one out, questions, files, and no secret anywhere."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.sandbox.backends import Missing
from plan_mode_nb.models.script import call, say, usage

from .agent_kernel import AgentKernel

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or isinstance(backends.detect(), Missing), reason="nothing confines programs on this machine"
)
SECRET = "s3cret-of-the-person"
DONE = [say("Done."), usage(1, 1)]


@pytest.fixture(scope="module")
def kernel() -> Iterator[AgentKernel]:
    """One kernel, whose working folder is a workspace of its own outside /tmp, and whose environment holds a secret."""
    folder = Path(tempfile.mkdtemp(prefix="plan-mode-nb-test-", dir=Path.home()))
    (folder / "workspace").mkdir()
    try:
        with AgentKernel(sys.executable, load=False, environment={"SERVICE_TOKEN": SECRET}) as agent:
            agent.kernel.must(f"%cd -q {folder / 'workspace'}\n%load_ext plan_mode_nb")
            agent.workspace = folder / "workspace"  # type: ignore[attr-defined]
            yield agent
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def workspace(kernel: AgentKernel) -> Path:
    found: Path = kernel.workspace  # type: ignore[attr-defined]
    return found


def results(agent: AgentKernel) -> list[str]:
    """What the model was told, call by call."""
    messages = agent.server.requests[-1].body["messages"]
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def bash(command: str) -> Any:
    return [call("bash", {"command": command}), usage(1, 1)]


def test_the_session_says_what_enforces(kernel: AgentKernel) -> None:
    """In words that claim no more than is so."""
    said = kernel.kernel.must("%session")
    assert "sandbox      workspace-write (enforcement: full; bubblewrap" in said or "(enforcement: partial; landlock" in said
    assert "network off; code in the kernel process cannot be confined)" in said or "and of the network only TCP is off" in said


def test_a_refused_command_runs_again_without_the_sandbox_only_after_allow_once(kernel: AgentKernel, workspace: Path) -> None:
    """The card shows exactly the command and why it asks; rejected, nothing happens."""
    outside = workspace.parent / "outside.txt"
    command = f"echo inside > made.txt; echo out > {outside}"
    for label, there in (("Reject", False), ("Allow once", True)):
        agent = kernel.begin(bash(command), DONE)
        cell = agent.kernel.send("%agent write both")
        agent.next_card()
        card = agent.kernel.comms[agent.card("approval")]
        assert (card["tool"], card["preview"]) == ("bash", command)
        assert "the sandbox refused something that this command did" in card["reason"]
        agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": [label]}]})
        shown = agent.kernel.wait(cell, 60).shown
        assert (workspace / "made.txt").read_text() == "inside\n"
        assert outside.exists() is there
        assert any(text.startswith(f"Approval of bash: {'allowed' if there else 'rejected'}") for text in shown)
        assert ("ran again" in results(agent)[0] or "run again without the sandbox" in results(agent)[0]) is there


def test_a_batch_of_questions_is_answered_on_one_card(kernel: AgentKernel) -> None:
    """Choices, several choices and the person's own words come back under their questions."""
    questions = [
        {"id": "colour", "question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]},
        {"id": "parts", "question": "Which parts?", "options": [{"label": "Head"}, {"label": "Tail"}], "multi_select": True},
        {"id": "name", "question": "What name?"},
    ]
    agent = kernel.begin([call("ask_user_question", {"questions": questions}), usage(1, 1)], DONE)
    cell = agent.kernel.send("%agent ask me")
    agent.next_card()
    given = [
        {"id": "colour", "selected": ["Blue"]},
        {"id": "parts", "selected": ["Head", "Tail"]},
        {"id": "name", "selected": [], "custom": "Ada's"},
    ]
    agent.act("question", {"kind": "answer", "answers": given})
    shown = agent.kernel.wait(cell, 30).shown
    assert results(agent) == [
        "colour: Which colour?\nChosen: Blue\n\nparts: Which parts?\nChosen: Head, Tail\n\nname: What name?\nIn their own words: Ada's"
    ]
    (card,) = [text for text in shown if text.startswith("Question: answered")]
    assert "☑ Blue" in card
    assert "☐ Red" in card


def test_files_are_written_and_edited_in_the_workspace_and_nowhere_else(kernel: AgentKernel, workspace: Path) -> None:
    """No approval is asked for what the mode allows, nor offered for what it does not."""
    outside = workspace.parent / "elsewhere.txt"
    agent = kernel.begin(
        [call("write", {"path": "a.py", "content": "x = 1\n"}), call("edit", {"path": "a.py", "old": "1", "new": "2"}), usage(1, 1)],
        [call("write", {"path": str(outside), "content": "x"}), usage(1, 1)],
        DONE,
    )
    cell = agent.kernel.run("%agent write", 60)
    assert cell.status == "ok"
    assert (workspace / "a.py").read_text() == "x = 2\n"
    assert not outside.exists()
    assert "outside the workspace" in results(agent)[2]
    assert "approval/asked" not in agent.types()


def test_a_secret_that_code_prints_and_displays_is_in_no_output_log_journal_or_request(kernel: AgentKernel, workspace: Path) -> None:
    """Case 12: printed, in a traceback, in a table, letter by letter, by a command, in the model's own words and in the prompt."""
    code = (
        "import os, sys, time\nfrom IPython.display import HTML, display\nvalue = os.environ['SERVICE_TOKEN']\nprint(value)\n"
        "for letter in value:\n    sys.stdout.write(letter); sys.stdout.flush(); time.sleep(0.02)\n"
        "display(HTML(f'<b>{value}</b>'))\nraise ValueError(value)"
    )
    agent = kernel.begin(
        [call("python", {"code": code}), usage(1, 1)],
        [*[say(letter) for letter in f"It is {SECRET} indeed. "], call("bash", {"command": "echo $SERVICE_TOKEN-"}), usage(1, 1)],
        DONE,
    )
    agent.kernel.must("%sandbox danger-full-access")
    cell = agent.kernel.run(f"%agent show {SECRET}", 60)
    journals = "".join(path.read_text() for path in (agent.folder / "runtime").rglob("*.journal"))
    everything = json.dumps([cell.messages, journals, [request.body for request in agent.server.requests]], default=str)
    own_code = everything.count(f"%agent show {SECRET}")
    assert everything.count(SECRET) == own_code, "only the person's own cell may hold it"
    assert everything.count("[redacted:SERVICE_TOKEN]") > 8
    displayed = [output["data"]["text/html"] for output in cell.outputs if "<b>[redacted" in output.get("data", {}).get("text/html", "")]
    assert displayed == ["<b>[redacted:SERVICE_TOKEN]</b>"]
    assert "[redacted:SERVICE_TOKEN]-" in results(agent)[1]


def test_a_result_too_long_for_the_model_is_kept_whole_where_it_can_be_read_back(kernel: AgentKernel) -> None:
    """In a private file beside the journals, which confined commands see too though its folder is hidden from them."""
    agent = kernel.begin(bash("seq 1 20000"), DONE)
    agent.kernel.must("%sandbox read-only")
    agent.kernel.run("%agent count", 60)
    first = results(agent)[0]
    kept = Path(first.rpartition("the whole text is in ")[2].partition("]")[0])
    assert kept.read_text().endswith("\n20000\n")
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    again = agent.begin(bash(f"tail -n 1 {kept}; ls {kept.parents[2]}"), DONE)
    again.kernel.must("%sandbox read-only")
    again.kernel.run("%agent read", 60)
    assert results(again)[0].splitlines() == ["20000", "plan_mode_nb"]


PICTURE = (
    "89504e470d0a1a0a0000000d494844520000000300000002080000000053a9ca7f"
    "0000000d4944415478da636868406000000e0401019a4d0d1b0000000049454e44ae426082"
)
SCRATCHED = f"""\
from IPython.display import Image, display
orders.append(4)
display(Image(bytes.fromhex('{PICTURE}')))
orders"""


def test_scratch_code_works_on_a_copy_shows_its_figure_and_asks_nobody(kernel: AgentKernel) -> None:
    """The variable is the notebook's, the figure stands under the call, the text says where it ran."""
    code = {"code": SCRATCHED, "where": "scratch", "variables": ["orders"]}
    agent = kernel.begin([call("python", code), usage(1, 1)], DONE)
    agent.kernel.must("%sandbox workspace-write\norders = [1, 3, 2]")
    cell = agent.kernel.run("%agent try it", 60)
    assert cell.status == "ok"
    kinds = [sorted(output["data"]) for output in cell.outputs if "data" in output]
    (card,) = [place for place, text in enumerate(cell.shown) if text.startswith("python (done): scratch: from IPython")]
    assert (
        "[1, 3, 2, 4]\n[ran in a new scratch process, with copies of orders; sandbox mode workspace-write, no network" in cell.shown[card]
    )
    assert kinds[card + 1] == ["image/png", "text/plain"]
    assert cell.shown[card + 1].startswith("Figure of the scratch process: figure 1 image/png")
    assert agent.kernel.must("print(orders)") == "[1, 3, 2]\n"
    assert "approval/asked" not in agent.types()


def test_the_stop_button_ends_scratch_code_and_the_kernel_stays_free_meanwhile(kernel: AgentKernel, workspace: Path) -> None:
    """The stop button ends the turn within the call; nothing of the process stays; the next turn has another."""
    begun = workspace / "begun"
    code = {"code": f"print('half')\nopen({str(begun)!r}, 'w').close()\nwhile True: pass", "where": "scratch"}
    agent = kernel.begin([call("python", code), usage(1, 1)], [call("python", {"code": "6 * 7", "where": "scratch"}), usage(1, 1)], DONE)
    cell = agent.kernel.send("%agent go")
    agent.kernel.comm(kind="controls")
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline
        assert agent.kernel.reply(agent.kernel.request("complete_request", {"code": "pri", "cursor_pos": 3}), 60)["matches"]
    agent.kernel.interrupt()
    assert agent.kernel.wait(cell, 60).ename == "KeyboardInterrupt"
    again = agent.kernel.run("%agent once more", 60)
    assert any("42\n[ran in a new scratch process" in text for text in again.shown)
    (stopped,) = [text for text in agent.kernel.cell(cell).shown if text.startswith("python (failed): scratch")]
    assert "half\n" in stopped
    assert "[the code was interrupted; what it had done until then stays done]" in stopped


PROGRAM = """\
import json
lines = bash(command="seq 3").split()
code = "from IPython.display import Image, display\\ndisplay(Image(bytes.fromhex('{picture}')))\\nfrom_program = "
print(python(code=code + json.dumps(lines)))
"""


def test_a_program_calls_the_kernel_only_after_its_card_and_its_figure_stands_below(kernel: AgentKernel) -> None:
    """The card shows the code of that call; what it made stays, and so does nothing of the program's own."""
    agent = kernel.begin([call("run_code", {"code": PROGRAM.replace("{picture}", PICTURE)}), usage(1, 1)], DONE)
    agent.kernel.must("%sandbox workspace-write\n%config PlanAgent.code_mode = True")
    cell = agent.kernel.send("%agent go")
    agent.next_card()
    card = agent.kernel.comms[agent.card("approval")]
    assert card["tool"] == "python"
    assert card["preview"].endswith('from_program = ["1", "2", "3"]')
    agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Allow once"]}]})
    ended = agent.kernel.wait(cell, 60)
    assert ended.status == "ok"
    (shown,) = [place for place, text in enumerate(ended.shown) if text.startswith("run_code (done)")]
    assert "  bash (done): seq 3" in ended.shown[shown]
    images = [place for place, output in enumerate(ended.outputs) if "image/png" in output.get("data", {})]
    assert len(images) == 1
    assert agent.kernel.must("print(from_program, 'lines' in globals())") == "['1', '2', '3'] False\n"
    sent = agent.server.requests[-1].body["messages"]
    assert "def bash(command: str" in sent[0]["content"]


def test_the_stop_button_ends_a_program_and_the_next_turn_works(kernel: AgentKernel) -> None:
    """Whatever it does, with its calls in the log."""
    agent = kernel.begin([call("run_code", {"code": "glob(pattern='*')\nwhile True: pass"}), usage(1, 1)], DONE)
    agent.kernel.must("%config PlanAgent.code_mode = True")
    cell = agent.kernel.send("%agent go")
    agent.kernel.until_shown(cell, "glob (done)", 60)
    agent.act("controls", {"kind": "stop"})
    assert agent.kernel.wait(cell, 60).ename == "KeyboardInterrupt"
    assert agent.kernel.run("%agent still there?\n%config PlanAgent.code_mode = False", 60).status == "ok"
    assert "[the program was stopped" in results(agent)[0]
    assert "tool/code-dispatch" in agent.types()


def test_an_mcp_server_starts_with_a_turn_and_ends_with_the_extension(kernel: AgentKernel) -> None:
    """From the setting alone; its tools are in the request, each call asks, and no process of it stays."""
    shop = Path(__file__).resolve().parents[1] / "unit" / "features" / "mcp_shop.py"
    agent = kernel.begin([call("mcp__shop__process", {}), usage(1, 1)], DONE, [say("It is gone."), usage(1, 1)])
    agent.kernel.must(
        f"%sandbox workspace-write\n%config PlanAgent.mcp_servers = {{'shop': {{'command': {sys.executable!r}, 'args': [{str(shop)!r}]}}}}"
    )
    cell = agent.kernel.send("%agent where are you?")
    agent.next_card()
    assert agent.kernel.comms[agent.card("approval")]["preview"] == "process of the MCP server shop\n(no arguments)"
    agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": ["Allow once"]}]})
    assert agent.kernel.wait(cell, 60).status == "ok"
    assert "\nmcp          shop: 6 tools\n" in agent.kernel.must("%session")
    running = os.pidfd_open(int(results(agent)[0]))
    try:
        agent.kernel.must("%unload_ext plan_mode_nb", 60)
        assert select.select([running], [], [], 60)[0] == [running]
    finally:
        os.close(running)
    agent.kernel.must("%load_ext plan_mode_nb\n%config PlanAgent.mcp_servers = {'shop': {'comand': 'x'}}")
    refused = agent.kernel.run("%agent are you there?", 60)
    assert refused.evalue.startswith("PlanAgent.mcp_servers: the server 'shop' must have either a command or a url")
    assert agent.kernel.run("%config PlanAgent.mcp_servers = {}\n%agent are you there?", 60).status == "ok"
    assert "mcp__shop__process" not in str(agent.server.requests[-1].body["tools"])
