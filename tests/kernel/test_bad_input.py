"""Bad input in a real kernel: one sentence that says what to do next, nothing lost, no traceback of ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest

from plan_mode_nb.models.script import say, usage
from plan_mode_nb.testing.faults import Status

from .agent_kernel import SECTION, AgentKernel
from .driver import Cell


@pytest.fixture(scope="module")
def shared() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable, load=False) as agent:
        yield agent


def sentence(cell: Cell) -> str:
    """The one line of the cell's error; asserts that there is no traceback behind it."""
    assert cell.status == "error", cell
    shown = "\n".join(cell.traceback)
    assert "Traceback" not in shown
    assert "plan_mode_nb/" not in shown
    assert len([line for line in cell.traceback if line.strip()]) == 1, shown
    return str(cell.evalue)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        pytest.param({"PlanMode": {"section": ""}}, ["PlanMode.section", "plan_mode_nb.json"], id="missing"),
        pytest.param({"PlanMode": {"section": "  \n"}}, ["PlanMode.section", "blank"], id="blank"),
        pytest.param({"PlanMode": {"section": 42}}, ["section"], id="not-a-string"),
        pytest.param({"PlanMode": {"section": SECTION, "sectoin": "x"}}, ["sectoin", "section"], id="unknown-key"),
        pytest.param({"PlanAgent": {"max_stepz": 3}, "PlanMode": {"section": SECTION}}, ["max_stepz", "max_steps"], id="unknown-agent-key"),
        pytest.param({"PlanAgent": {"max_steps": 0}, "PlanMode": {"section": SECTION}}, ["max_steps"], id="out-of-range"),
        pytest.param({"PlanAgnet": {}}, ["PlanAgnet"], id="unknown-part"),
        pytest.param([1], ["object of objects"], id="no-object"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_load(shared: AgentKernel, config: Any, names: list[str]) -> None:
    """Loading fails with a sentence that names the key; nothing of the extension stays behind."""
    (shared.folder / "config" / "plan_mode_nb.json").write_text(json.dumps(config))
    ran = shared.run("%load_ext plan_mode_nb")
    said = f"{ran.evalue} {ran.text}"
    assert all(name in said for name in names), said
    assert "Traceback" not in "\n".join(ran.traceback)
    left = "ip = get_ipython(); print(hasattr(ip, '_plan_mode_nb'), 'plan' in ip.magics_manager.magics['line'], "
    left += "[type(c).__name__ for c in ip.configurables if type(c).__name__.startswith('Plan')])"
    assert shared.kernel.must(left) == "False False []\n"


@pytest.fixture(scope="module")
def loaded() -> Iterator[AgentKernel]:
    with AgentKernel(sys.executable) as agent:
        yield agent


@pytest.mark.parametrize(
    ("model", "names"),
    [
        pytest.param("gpt", ["gpt", "provider:"], id="no-provider"),
        pytest.param("opneai-chat:x", ["opneai-chat", "openai-chat"], id="typo"),
        pytest.param("recording:nowhere.jsonl", ["nowhere.jsonl"], id="no-recording"),
    ],
)
def test_a_bad_model_name_is_one_sentence(loaded: AgentKernel, model: str, names: list[str]) -> None:
    """The turn ends in error and says how a model is named; the message is not lost from the log; the next turn works."""
    loaded.begin([say("Here."), usage(1, 1)])
    loaded.kernel.must(f"%config PlanAgent.model = {model!r}")
    said = sentence(loaded.run("%agent hello"))
    assert all(name in said for name in names), said
    loaded.kernel.must("%config PlanAgent.model = 'openai-chat:scripted'")
    assert loaded.run("%agent hello again").shown[-1] == "Here."
    assert "hello" in json.dumps(loaded.fold()["messages"])


def test_an_unreachable_server_is_one_sentence(loaded: AgentKernel) -> None:
    """It names the address and asks whether the server runs."""
    loaded.begin()
    loaded.kernel.must("%env OPENAI_BASE_URL=http://127.0.0.1:9/v1")
    said = sentence(loaded.run("%agent hello"))
    assert "127.0.0.1:9" in said
    assert loaded.fold()["turns"][-1]["end"]["error"]["code"] == "TRANSPORT"


@pytest.mark.parametrize(("status", "code"), [(401, "AUTH"), (400, "BAD_REQUEST"), (500, "SERVER")])
def test_a_refused_request_is_one_sentence(loaded: AgentKernel, status: int, code: str) -> None:
    """A refused key, a bad request, a server's fault: the log says which, the cell ends in error so that Run All stops."""
    loaded.begin(Status(status, "no"))
    sentence(loaded.run("%agent hello"))
    end = loaded.fold()["turns"][-1]["end"]
    assert (end["kind"], end["error"]["code"]) == ("error", code)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("%session nonsense", ["nonsense", "export"]),
        ("%session fork x", ["fork"]),
        ("%session fork 99999", ["ends at"]),
        ("%session use nobody", ["nobody"]),
        ("%session plan plan.md", ["no plan was approved"]),
        ("%session import nowhere.jsonl", ["nowhere.jsonl"]),
        ("%sandbox everything", ["everything", "workspace-write"]),
        ("%approval perhaps", ["perhaps", "never"]),
        ("%agent", ["MESSAGE"]),
        ("%%agent --image nowhere.png\nlook", ["nowhere.png"]),
        ("%%plan --image\nlook", ["--image"]),
        ("%%agent --as 9\nlook", ["--as"]),
    ],
)
def test_a_magic_used_wrongly_says_what_to_type_instead(loaded: AgentKernel, line: str, names: list[str]) -> None:
    """One line; nothing changed."""
    loaded.begin()
    before = loaded.types()
    said = sentence(loaded.run(line))
    assert all(name in said for name in names), said
    assert [kind for kind in loaded.types() if not kind.startswith("command/") and kind != "notebook/cell"] == [
        kind for kind in before if not kind.startswith("command/") and kind != "notebook/cell"
    ]


def test_a_setting_that_does_not_exist_is_refused_by_name(loaded: AgentKernel) -> None:
    """``%config`` of an unknown key says so and sets nothing."""
    ran = loaded.run("%config PlanAgent.max_stepz = 3")
    assert "max_stepz" in f"{ran.evalue}{ran.text}{ran.traceback}"


def test_a_log_that_does_not_validate_is_refused_and_left_as_it_is() -> None:
    """One sentence; the file untouched; a new session beside it."""
    with AgentKernel(sys.executable, [[say("New."), usage(1, 1)]], load=False) as agent:
        notebook = nbformat.v4.new_notebook()
        line = '{"type":"plan/mode","seq":0,"time":1,"data":{"active":"yes"}}'
        header = {"version": 0, "id": "bad", "createdAt": 1, "delegationDepth": 0}
        notebook.metadata.update({"plan_mode_nb": {"format": 1, "agents": {"main": "bad"}, "sessions": {"bad": header}}})
        notebook.metadata["plan_mode_nb/bad/0000000"] = [line]
        nbformat.write(notebook, agent.notebook)
        before = agent.notebook.read_bytes()
        agent.kernel.must("%load_ext plan_mode_nb")
        ran = agent.run("%agent hello")
        assert ran.status == "ok", ran
        assert "session bad was refused" in ran.text
        assert "true or false" in ran.text
        assert ran.text.count("\n") == 1
        assert agent.notebook.read_bytes() == before
        assert agent.fold()["session"] != "bad"
