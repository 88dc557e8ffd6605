"""``plan-mode-nb run`` on a real kernel, with a recording as the model."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest

from plan_mode_nb.document.chunks import is_ours, read_metadata
from plan_mode_nb.hosts.cli.main import main
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.events import Event
from plan_mode_nb.store.jsonl import save_jsonl
from plan_mode_nb.testing import logs

pytestmark = pytest.mark.kernel
PLAN = "# Tidy up\n\n1. Look.\n2. Tidy."
UNCONFINED = "%sandbox danger-full-access"


class Workspace:
    """A folder with a notebook, a recording for its model, and a Jupyter of its own."""

    def __init__(self, folder: Path) -> None:
        self.notebook = folder / "work" / "a notebook.ipynb"
        self.notebook.parent.mkdir()
        self.journals = folder / "runtime" / "plan_mode_nb"
        config = folder / "config"
        config.mkdir()
        settings = {"PlanAgent": {"model": f"recording:{folder / 'recording.jsonl'}"}, "PlanMode": {"section": "Plan first."}}
        (config / "plan_mode_nb.json").write_text(json.dumps(settings))
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
        private = {"JUPYTER_CONFIG_DIR": config, "JUPYTER_RUNTIME_DIR": folder / "runtime", "IPYTHONDIR": folder / "ipython"}
        self.environment = {**kept, **{name: str(path) for name, path in private.items()}}
        self.recording = folder / "recording.jsonl"
        self.record()

    def record(self, *answers: Sequence[Any]) -> None:
        """What the model answers: each a list of texts and calls, one a step of one turn."""
        session = logs.new_session("recorded")
        session.append(logs.turn_start(1))
        for step, blocks in enumerate(answers, start=1):
            session.append(
                logs.step_start(1, step), *([logs.user()] if step == 1 else []), logs.request_header("initial" if step == 1 else "change")
            )
            session.append(logs.assistant(1, step, *blocks, id=f"a{step}"))
            for block in blocks:
                if isinstance(block, dict):
                    session.append(logs.tool_call(1, step, block["id"], block["name"]), logs.tool_result(1, step, block["id"]))
            session.append(logs.step_end(1, step))
        session.append(logs.turn_end(1))
        save_jsonl(self.recording, session.header, session.lines)

    def write(self, *sources: str, metadata: dict[str, Any] | None = None) -> None:
        """A notebook of code cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources], metadata=metadata or {})
        nbformat.write(notebook, self.notebook)

    def start(self, *options: str) -> subprocess.Popen[str]:
        """``plan-mode-nb run`` from another folder."""
        command = [sys.executable, "-m", "plan_mode_nb", "run", str(self.notebook), *options]
        return subprocess.Popen(
            command, cwd=self.recording.parent, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def refused(self, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
        """As ``run``, where it comes to no kernel: in this process."""
        with pytest.raises(SystemExit) as ended:
            main(["run", str(self.notebook), *options])
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    def run(self, *options: str) -> tuple[int, str, str]:
        """Its exit status, stdout and stderr."""
        process = self.start(*options)
        out, err = process.communicate(timeout=160)
        return process.returncode, out, err

    @property
    def saved(self) -> Any:
        """The notebook as it is on disk now; it must be a valid one."""
        notebook = nbformat.read(self.notebook, as_version=4)
        nbformat.validate(notebook)
        return notebook

    def session(self) -> list[Event]:
        """The events of the main agent's session in the file."""
        document = read_metadata(self.saved.metadata)
        assert document.problems == ()
        return [decode(line) for line in document.sessions[document.agents["main"]].lines]

    def left_journals(self) -> list[str]:
        """What is left in the journals' folder."""
        return sorted(os.listdir(self.journals)) if self.journals.exists() else []


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def kinds(events: Sequence[Event]) -> list[str]:
    return [event.type for event in events]


def test_a_notebook_runs_in_place_and_its_log_lands_in_its_metadata(work: Workspace) -> None:
    """A second run begins a session beside the first."""
    work.record(["Hello from the recording."])
    work.write("import os; os.getcwd(), os.environ['PLAN_MODE_NB_NOTEBOOK']", "%load_ext plan_mode_nb", "%agent hello", "1 + 1")
    status, out, err = work.run()
    assert (status, err) == (0, "")
    cells = work.saved.cells
    assert literal_eval(cells[0].outputs[0].data["text/plain"]) == (str(work.notebook.parent), str(work.notebook))
    assert "Hello from the recording." in json.dumps(cells[2].outputs)
    assert cells[3].outputs[0].data["text/plain"] == "2"
    assert all("execution" not in cell.metadata for cell in cells), "no clock gets into the cells"
    events = work.session()
    assert kinds(events)[-1] == "turn/end"
    assert events[-1].data["reason"] == {"kind": "completed"}
    said = [event.data["message"]["content"] for event in events if event.type == "assistant/message"]
    assert said == [[{"type": "text", "text": "Hello from the recording."}]]
    assert f"4 cells ran. Session {read_metadata(work.saved.metadata).agents['main']}: 1 turn, {len(events)} events." in out
    assert work.left_journals() == [], "a journal goes once its events are in the file"

    first = read_metadata(work.saved.metadata)
    assert work.run()[0] == 0
    second = read_metadata(work.saved.metadata)
    (old,) = first.sessions
    assert second.sessions[old] == first.sessions[old]
    assert len(second.sessions) == 2
    assert second.agents["main"] != old
    assert kinds(work.session()).count("turn/start") == 1, "running twice does not double the conversation"


def test_a_cell_that_fails_stops_the_run_and_everything_so_far_is_saved(work: Workspace) -> None:
    work.record(["Fine."])
    work.write("%load_ext plan_mode_nb", "%agent hello", "print('before')\nraise ValueError('three\\nlines\\nof it')", "print('after')")
    status, out, err = work.run()
    assert (status, out) == (1, "")
    assert err == "plan-mode-nb: a notebook.ipynb: cell 3 (print('before')) failed: ValueError: three\n"
    cells = work.saved.cells
    assert [output.output_type for output in cells[2].outputs] == ["stream", "error"]
    assert cells[3].outputs == []
    assert kinds(work.session())[-1] == "turn/end"


def test_a_failed_turn_is_a_failed_cell(work: Workspace) -> None:
    work.write("%load_ext plan_mode_nb", "%agent hello")
    status, _, err = work.run()
    assert status == 1
    assert "cell 2 (%agent hello) failed: " in err
    assert "the recording ends here" in err
    assert err.count("\n") == 1
    assert work.session()[-1].data["reason"]["kind"] == "error"


def test_a_review_that_nobody_can_answer_is_not_an_error(work: Workspace) -> None:
    work.record([logs.call_block("c", "exit_plan_mode", {"plan": PLAN})], ["Nobody was there."])
    work.write("%load_ext plan_mode_nb", "%plan tidy up")
    status, out, err = work.run()
    assert (status, err) == (0, "")
    events = work.session()
    answered = [event.data for event in events if event.type == "question/answered"]
    assert [(each["outcome"], each["by"]) for each in answered] == [("unavailable", "policy")]
    assert [event.data for event in events if event.type == "plan/mode"] == [{"active": True}], "and never an approval"
    assert "1 review had nobody to answer" in out


def test_a_notebook_without_an_agent_gets_nothing_of_ours(work: Workspace) -> None:
    work.write("print(1)")
    assert work.run() == (0, "a notebook.ipynb: 1 cell ran.\n", "")
    assert not any(map(is_ours, work.saved.metadata))


def test_metadata_that_cannot_be_read_stays_as_it_is_and_the_journal_stays_too(work: Workspace) -> None:
    newer = {"format": 2, "all": "new"}
    work.write("%load_ext plan_mode_nb", "%plan on", metadata={"plan_mode_nb": newer})
    status, _, err = work.run()
    assert status == 0
    assert "upgrade plan_mode_nb" in err
    assert {key: value for key, value in work.saved.metadata.items() if is_ours(key)} == {"plan_mode_nb": newer}
    assert len(work.left_journals()) == 1


def test_a_cell_that_takes_too_long_ends_the_run(work: Workspace) -> None:
    work.write("print('in')", "import time\ntime.sleep(600)")
    status, _, err = work.run("--timeout", "2")
    assert (status, err) == (1, "plan-mode-nb: a notebook.ipynb: cell 2 (import time) took longer than 2 s; give it more with --timeout\n")
    assert work.saved.cells[0].outputs[0].text == "in\n"


def test_a_kernel_that_dies_in_a_turn_leaves_its_log_in_the_notebook(work: Workspace) -> None:
    work.record(["I try.", logs.call_block("c", "python", {"code": "import os; os.kill(os.getpid(), 9)"})])
    work.write("%load_ext plan_mode_nb", UNCONFINED, "%agent try it")
    status, _, err = work.run()
    assert status == 1
    assert err == "plan-mode-nb: a notebook.ipynb: the kernel died in cell 3 (%agent try it); what it had logged was kept\n"
    assert kinds(work.session())[-1] == "tool/call"
    assert work.left_journals() == []


def test_ctrl_c_lets_the_turn_close_its_log(work: Workspace) -> None:
    begun = socket.create_server(("127.0.0.1", 0))
    begun.settimeout(120)
    code = f"import socket, time; socket.create_connection(('127.0.0.1', {begun.getsockname()[1]})); time.sleep(600)"
    work.record(["I wait.", logs.call_block("c", "python", {"code": code})])
    work.write("%load_ext plan_mode_nb", UNCONFINED, "%agent wait", "print('after')")
    process = work.start()
    with begun:
        begun.accept()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "plan-mode-nb: a notebook.ipynb: stopped in cell 3 (%agent wait)\n")
    assert work.session()[-1].type == "turn/end"
    assert work.session()[-1].data["reason"]["kind"] == "aborted"
    assert work.saved.cells[3].outputs == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not a notebook"),
        ('{"nbformat": 3, "metadata": {}, "worksheets": []}', "format 3"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "cod"}]}', "is not a valid notebook"),
    ],
)
def test_what_is_no_notebook_is_refused_and_left_alone(
    work: Workspace, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    if content is not None:
        work.notebook.write_text(content)
    status, out, err = work.refused(capsys)
    assert (status, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1
    assert not work.notebook.exists() if content is None else work.notebook.read_text() == content


def test_a_kernel_that_is_not_there_is_named_with_those_that_are(work: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    work.write("print(1)")
    status, _, err = work.refused(capsys, "--kernel", "cobol")
    assert (status, err.count("\n")) == (1, 1)
    assert "there is no kernel 'cobol' here; choose one with --kernel: " in err
    assert "python3" in err


def test_a_time_limit_that_is_none_is_a_usage_error(work: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    work.write("print(1)")
    assert work.refused(capsys, "--timeout", "0")[0] == 2
