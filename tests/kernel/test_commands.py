"""The magics as a person meets them in a kernel: completion, help, images, and the record of every command."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.testing.faults import Status

from .agent_kernel import SECTION, AgentKernel

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAACyl8KpAAAAC0lEQVR4nGNogAEADQoDAX0o2PQAAAAASUVORK5CYII=")
OK = [say("ok"), usage(1, 1)]


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable) as agent:
        yield agent


def commands(agent: AgentKernel) -> list[str]:
    """Those that are a magic of their name."""
    every = "get_ipython()._plan_mode_nb[0].composition.seams.commands.all()"
    return agent.kernel.must(f"print(*[each.name for each in {every} if each.magic])").split()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%pl", ["%plan", "%%plan"]),
        ("%%pl", ["%%plan"]),
        ("%plan ", ["on", "off"]),
        ("%plan o", ["on", "off"]),
        ("x = 1\n  %plan of", ["off"]),
        ("%session f", ["fork"]),
        ("%session c", ["compact"]),
        ("%sandbox w", ["workspace-write"]),
        ("%approval ", ["ask", "never"]),
        ("%%plan --i", ["--image"]),
        ("%%plan --image a.png --", ["--image"]),
        ("%%agent --", ["--image", "--as"]),
    ],
)
def test_what_may_follow_a_magic_is_completed_and_nothing_else_is_offered(agent: AgentKernel, typed: str, offered: list[str]) -> None:
    """No keyword of Python, no name of a variable."""
    reply = agent.kernel.reply(agent.kernel.request("complete_request", {"code": typed, "cursor_pos": len(typed)}))
    assert reply["matches"] == offered
    assert typed[reply["cursor_start"] :] in offered[0]


@pytest.mark.parametrize("typed", ["%plan o of", "%%plan\n%plan the o", "%%plan\n--im", "%agent o"])
def test_a_message_is_not_completed_to_a_keyword_of_a_magic(agent: AgentKernel, typed: str) -> None:
    """Inside words for the agent there is no ``off`` and no option."""
    reply = agent.kernel.reply(agent.kernel.request("complete_request", {"code": typed, "cursor_pos": len(typed)}))
    assert not {"on", "off", "--image"} & set(reply["matches"])


def test_every_magic_has_help_behind_a_question_mark_and_under_shift_tab(agent: AgentKernel) -> None:
    """Line and cell, and none of it selects anything or says anything to the agent."""
    agent.begin()
    for name in [*commands(agent), "agent", "session"]:
        assert f"%{name}" in str(agent.run(f"%{name}?").payload)
        reply = agent.kernel.reply(agent.kernel.request("inspect_request", {"code": f"%{name}", "cursor_pos": 1 + len(name)}))
        assert f"%{name}" in reply["data"]["text/plain"]
    for name in ("plan", "agent"):
        assert f"%%{name} [--image FILE]" in str(agent.run(f"%%{name}?").payload)
    assert agent.types() == []
    assert agent.server.requests == []


@pytest.mark.parametrize(
    "message",
    ['fix {x} under $HOME "quoted', "why does the join fail?", "keep the trailing \\", "add tests", "off the legacy API", "don't"],
)
def test_plan_with_a_message_selects_plan_mode_and_sends_it_as_written(agent: AgentKernel, message: str) -> None:
    """As an ordinary user message under the guidance; the next line of the cell is untouched, and nothing is expanded."""
    agent.begin(OK)
    agent.kernel.must("x = 5")
    assert agent.run(f"%plan   {message}  \nafter = {message!r}").status == "ok"
    assert agent.kernel.must("print(after)") == f"{message}\n"
    body = agent.server.requests[0].body["messages"]
    assert [each["content"] for each in body if each["role"] == "user"] == [message]
    assert any(SECTION in each["content"] for each in body if each["role"] == "system")
    assert agent.fold()["plan"] == {"active": True, "pending": None}


def test_another_agent_of_the_notebook_keeps_its_own_plan_mode(agent: AgentKernel) -> None:
    """``%plan`` is the main agent's: the other's request has no guidance, the same tools, and none of the conversation."""
    agent.begin(OK, OK, OK)
    agent.kernel.must("%plan")
    assert agent.run("%%agent --as analyst\nlook at the data").status == "ok"
    assert agent.run("%agent go on").status == "ok"
    assert agent.run("%%agent --as analyst\nand again").status == "ok"
    bodies = [request.body for request in agent.server.requests]
    prompts = ["".join(each["content"] for each in body["messages"] if each["role"] == "system") for body in bodies]
    assert [SECTION in prompt for prompt in prompts] == [False, True, False]
    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]
    said = [[each["content"] for each in body["messages"] if each["role"] == "user"] for body in bodies]
    assert said == [["look at the data"], ["go on"], ["look at the data", "and again"]]


def attachments(agent: AgentKernel) -> list[str]:
    return agent.kernel.must("print(*get_ipython()._plan_mode_nb[0].composition.seams.attachments)").split()


def test_images_go_ahead_of_the_text_on_the_wire(agent: AgentKernel, tmp_path: Path) -> None:
    """In the order given, names with spaces in quotes; with an empty body the images alone."""
    agent.begin(OK, OK)
    for name in ("a.png", "b c.png"):
        (tmp_path / name).write_bytes(PNG)
    assert agent.run(f"%%plan --image {tmp_path}/a.png --image '{tmp_path}/b c.png'\nwhat is\nthis?").status == "ok"
    assert agent.run(f"%%plan --image {tmp_path}/a.png").status == "ok"
    first, second = [[message for message in each.body["messages"] if message["role"] == "user"][-1] for each in agent.server.requests]
    image = {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}
    kinds = [part["type"] for part in first["content"]]
    assert kinds == ["image_url", "image_url", "text"]
    assert first["content"][0]["image_url"]["url"] == image["url"]
    assert first["content"][2]["text"] == "what is\nthis?"
    assert [part["type"] for part in second["content"]] == ["image_url"]
    assert agent.fold()["plan"] == {"active": True, "pending": None}


def test_a_cell_magic_without_a_body_says_what_to_do_or_selects(agent: AgentKernel) -> None:
    """IPython's own refusal never shows; what stands on other lines is a body, and Python cells are left alone."""
    agent.begin(OK)
    assert "Plan mode on." in agent.run("%%plan").text
    assert "already on" in agent.run("\n%%plan\n\n").text
    assert "say something to the agent" in str(agent.run("%%agent").evalue)
    assert "Plan mode: the agent" in str(agent.run("%%plan?").payload)
    assert agent.run("%%agent\nhello").status == "ok"
    assert agent.kernel.must("text = '''\n%%plan\n'''\nprint(len(text))") == "8\n"
    assert len(agent.server.requests) == 1


def test_an_image_that_cannot_be_sent_changes_nothing(agent: AgentKernel, tmp_path: Path) -> None:
    """A missing file, a text and a wrong option are one sentence each; nothing is logged, sent or kept, not even the good image."""
    agent.begin()
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notes.png").write_text("no image")
    before = attachments(agent)
    for line, words in (
        (f"--image {tmp_path}/a.png --image {tmp_path}/missing.png", "cannot be read"),
        (f"--image {tmp_path}/a.png --image {tmp_path}/notes.png", "not a PNG, JPEG, GIF or WebP"),
        (f"--image {tmp_path}/a.png off", "first line"),
        ("--image", "needs a value"),
    ):
        ran = agent.run(f"%%plan {line}\nlook")
        assert ran.status == "error"
        assert words in str(ran.evalue)
        assert len(ran.traceback) == 1
    assert agent.types() == []
    assert attachments(agent) == before


def test_off_with_images_is_refused_before_anything_changes(agent: AgentKernel, tmp_path: Path) -> None:
    """The command says so and is recorded; plan mode stays, no message waits, and the images stay with whoever had them."""
    agent.begin()
    agent.kernel.must("%plan")
    (tmp_path / "a.png").write_bytes(PNG)
    before = attachments(agent)
    ran = agent.run(
        "from plan_mode_nb.hosts.kernel.image_files import attached\n"
        "host = get_ipython()._plan_mode_nb[0]\n"
        f"with attached(['{tmp_path}/a.png'], host.composition.seams.attachments, lambda digest: False) as images:\n"
        "    host.command('plan', 'off', images=images)"
    )
    assert "leave them out" in str(ran.evalue)
    assert agent.fold()["plan"] == {"active": True, "pending": None}
    assert agent.types()[4:] == ["command/run", "notebook/cell", "command/done"]
    assert attachments(agent) == before


def test_the_image_is_in_the_notebook_and_nothing_that_was_refused_is(tmp_path: Path, agent: AgentKernel) -> None:
    """Run headless: the bytes once, under their sha256; an image of a refused cell is nowhere in the file."""
    agent.begin(OK)
    (tmp_path / "a.png").write_bytes(PNG)
    other = PNG[:-1] + bytes([PNG[-1] ^ 1])
    (tmp_path / "refused.png").write_bytes(other)
    sources = [
        "%load_ext plan_mode_nb\n%config PlanAgent.model = 'openai-chat:m'",
        "try:\n    get_ipython().run_cell_magic('plan', '--image refused.png --image missing.png', 'x')\nexcept Exception as error:\n"
        "    print(error)",
        "%%plan --image a.png --image a.png\nlook",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    environment = {**os.environ, **agent._environment, "OPENAI_BASE_URL": agent.server.url, "PLAN_MODE_NB_NOTEBOOK": ""}
    command = [sys.executable, "-m", "plan_mode_nb", "run", "n.ipynb"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    document = read_metadata(json.loads((tmp_path / "n.ipynb").read_text())["metadata"])
    assert [base64.b64decode(data) for data in document.attachments.values()] == [PNG]
    (digest,) = document.attachments
    lines = document.sessions[document.agents["main"]].lines
    assert sum(line.count(digest) for line in lines if '"user/message"' in line) == 2


def events(agent: AgentKernel) -> list[dict[str, Any]]:
    code = (
        "import json\n"
        "print(json.dumps([{'type': e.type, 'data': e.data} for e in get_ipython()._plan_mode_nb[0].agent().session.events], default=str))"
    )
    loaded: list[dict[str, Any]] = json.loads(agent.kernel.must(code))
    return loaded


def test_every_command_is_recorded_as_a_pair_that_no_request_shows(agent: AgentKernel) -> None:
    """Run and done share an id, directly behind the run stands its cell, a turn starts after done; the model hears nothing of it."""
    agent.begin(OK, OK)
    agent.kernel.must("%plan")
    agent.kernel.must("%plan off")
    agent.run("%sandbox nonsense")
    agent.kernel.must("%approval never")
    agent.kernel.must("%plan secret-name of a plan")
    agent.kernel.must("%agent again")
    log = events(agent)
    runs = [index for index, event in enumerate(log) if event["type"] == "command/run"]
    told = [(log[index]["data"]["name"], log[index]["data"]["args"]) for index in runs]
    assert told == [("plan", ""), ("plan", "off"), ("sandbox", "nonsense"), ("approval", "never"), ("plan", "secret-name of a plan")]
    done = [event["data"] for event in log if event["type"] == "command/done"]
    assert [each["kind"] for each in done] == ["success", "success", "error", "success", "success"]
    assert [each["commandId"] for each in done] == [log[index]["data"]["commandId"] for index in runs]
    for index in runs:
        assert log[index + 1]["type"] == "notebook/cell"
        assert log[index + 1]["data"]["command"] == log[index]["data"]["commandId"]
    types = [event["type"] for event in log]
    assert types.index("turn/start") > len(types) - 1 - types[::-1].index("command/done")
    said = json.dumps([request.body["messages"] for request in agent.server.requests])
    assert "command" not in said.replace(SECTION, "")
    assert "nonsense" not in said


def test_a_conversation_is_compacted_in_a_cell_of_its_own_or_one_line_says_why_not(agent: AgentKernel) -> None:
    """Not in a turn, by code of the agent's; not under %%capture; a failure changes nothing. The words reach the model as typed."""
    long = "a row of March, " * 60
    tried = call("python", {"code": "%session compact"})
    agent.begin([tried, usage(1, 1)], [say(long), usage(1, 1)], [Status(500, "down")], [say("## Rows\n- *März*"), usage(1, 1)], OK)
    agent.kernel.must("%sandbox danger-full-access")
    ran = agent.run(f"%agent count {long}", 60)
    assert ran.status == "ok"
    assert any("An agent turn is already running in this kernel" in text for text in ran.shown)
    captured = agent.run("%%capture\n%session compact")
    assert (captured.ename, "remove it and run the cell again" in str(captured.evalue)) == ("HostError", True)
    before = agent.fold()
    failed = agent.run("%session compact", 60)
    assert (failed.status, failed.ename) == ("error", "CommandError")
    assert str(failed.evalue).startswith("The conversation was not compacted and is as it was: openai-chat:scripted failed on its side")
    assert [text for text in failed.shown if text.startswith("The conversation was not compacted and is as it was:")] == failed.shown
    assert agent.fold()["messages"] == before["messages"]
    done = agent.run("%session compact keep the 'März' $HOME {x}", 60)
    assert done.status == "ok"
    assert done.shown[0].startswith("Compacted 3 messages (about ")
    assert agent.server.requests[-1].body["messages"][-1]["content"].endswith("\nkeep the 'März' $HOME {x}")
    assert agent.run("%agent go on", 60).status == "ok"
    sent = [message["role"] for message in agent.server.requests[-1].body["messages"]]
    assert sent == ["system", "user", "assistant", "user"]
    assert "compact" not in agent.kernel.must("print(*get_ipython().magics_manager.magics['line'])").split()
    assert "compacted at 80 %" not in agent.kernel.must("%session")


def test_a_command_given_while_a_turn_runs_is_recorded_in_it_and_says_from_the_next_step(agent: AgentKernel) -> None:
    """By the controls card: queued, and the pair stands inside the turn."""
    agent.begin([call("exit_plan_mode", {"plan": "# Plan\n\nDo it.\n"}), usage(1, 1)], OK)
    cell = agent.kernel.send("%plan work")
    agent.next_card()
    agent.act("controls", {"kind": "plan", "active": False})
    assert agent.kernel.wait(cell, 20).status == "ok"
    log = events(agent)
    inside = [event for event in log if event["type"].startswith("command/")][2:]
    assert [event["data"].get("text") for event in inside] == [None, "Leaving plan mode (applies from the next step)."]
    types = [event["type"] for event in log]
    assert types.index("turn/start") < len(types) - 1 - types[::-1].index("command/run") < types.index("turn/end")
