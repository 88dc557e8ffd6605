"""``demo``: a first look that needs no key, leaves nothing behind, and stops when told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import private, process
from jupyter_client.blocking.client import BlockingKernelClient

from plan_mode_nb.document.chunks import read_metadata
from plan_mode_nb.exceptions import ConfigError, StoreError
from plan_mode_nb.hosts.cli.demo import answers_from_recording, require
from plan_mode_nb.hosts.cli.demo_folder import CONFIG, NOTEBOOK, demo_files, make_folder, with_config
from plan_mode_nb.log.codec import decode
from plan_mode_nb.store.notebook import load_document, read_notebook


def test_headless_runs_the_recorded_session_and_tells_what_happened(tmp_path: Path) -> None:
    home, scratch = tmp_path / "home", tmp_path / "tmp"
    for folder in (home, scratch):
        folder.mkdir()
    packaged = demo_files()
    done = process("demo", "--headless", cwd=tmp_path, environment={"HOME": str(home), "TMPDIR": str(scratch)})
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout
    assert "A recorded session" in said, "it is said plainly to be one"
    for what in ("In: %plan ", "review answered by replay — Keep planning", "review answered by replay — Approve", "[a figure was drawn]"):
        assert what in said
    assert said.index("Plan review: approved") < said.index("[a figure was drawn]") < said.index("The log of session ")
    assert "turn ends: completed" in said
    assert list(home.iterdir()) == [], "nothing is written outside the scratch folder"
    (folder,) = scratch.iterdir()
    assert f"The notebook with all of this is {folder / NOTEBOOK}." in said
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != NOTEBOOK} == {
        name: data for name, data in packaged.items() if name != NOTEBOOK
    }
    document = read_metadata(read_notebook(folder / NOTEBOOK)["metadata"])
    events = [decode(text) for text in document.sessions[document.agents["main"]].lines]
    answered = [event.data for event in events if event.type == "question/answered"]
    assert [each["by"] for each in answered] == ["replay", "replay"], "and never looks as if a person had approved"
    assert demo_files() == packaged, "the packaged files are as they were"


class Served:
    """``plan-mode-nb demo`` with its server, until it is told to stop."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.home = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plan_mode_nb", "demo", "--no-browser", *options],
            cwd=folder,
            env={**os.environ, **private(folder), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        # A demo that never prints its address is ended, and reading its output with it.
        watch = threading.Timer(120, self.process.kill)
        watch.start()
        assert self.process.stdout is not None
        self.said: list[str] = []
        for text in self.process.stdout:
            self.said.append(text)
            if "Ctrl-C" in text:
                break
        watch.cancel()
        found = re.search(r"(?P<base>http://127\.0\.0\.1:\d+/)lab/tree/(?P<path>\S+)\?token=(?P<token>\w+)", "".join(self.said))
        assert found, "".join(self.said)
        self.base, self.path, self.token = found["base"], found["path"], found["token"]

    def ask(self, path: str, body: object = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}api/{path}", data, {"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def stop(self, number: int) -> tuple[int, str]:
        """Its exit status and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


def wait_for(client: BlockingKernelClient) -> None:
    """Until the kernel answers. The client takes a kernel whose heart does not beat yet for a dead one."""
    for attempt in range(30):
        try:
            client.wait_for_ready(timeout=60)
            return
        except RuntimeError:
            assert attempt < 29, "the kernel does not answer"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, "--dir", str(tmp_path / "demo"))
    yield served
    if served.process.poll() is None:
        served.process.kill()
        served.process.wait()


def test_the_server_has_the_notebook_its_kernels_have_the_recording_and_ctrl_c_leaves_nothing(served: Served) -> None:
    assert served.path == NOTEBOOK
    model = served.ask(f"contents/{NOTEBOOK}?content=0")
    assert isinstance(model, dict)
    assert model["type"] == "notebook"
    session = served.ask("sessions", {"path": NOTEBOOK, "name": NOTEBOOK, "type": "notebook", "kernel": {"name": "python3"}})
    assert isinstance(session, dict)
    client = BlockingKernelClient(connection_file=str(served.home / "runtime" / f"kernel-{session['kernel']['id']}.json"))
    client.load_connection_file()
    client.start_channels()
    wait_for(client)
    shown: list[str] = []
    for code in ("%load_ext plan_mode_nb", "%config PlanAgent.model", "%plan on"):
        reply = client.execute_interactive(
            code,
            timeout=60,
            allow_stdin=False,
            output_hook=lambda message: shown.append(message["content"].get("data", {}).get("text/plain", "")),
        )
        assert reply["content"]["status"] == "ok"
    client.stop_channels()
    assert "'recording:penguins-recording.jsonl'" in shown
    assert served.stop(signal.SIGINT) == (0, "")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(served.base, timeout=5)
    notebook = served.home / "demo" / NOTEBOOK
    document = load_document(notebook)
    assert len(document.sessions) == 1, "what the kernel had logged is in the notebook"
    assert list((served.home / "runtime" / "plan_mode_nb").iterdir()) == [], "and its journal is gone"
    assert not list((served.home / "runtime").glob("kernel-*.json")), "as is the kernel"


def test_a_termination_stops_the_server_too(served: Served) -> None:
    assert served.stop(signal.SIGTERM) == (0, "")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(served.base, timeout=5)


def test_without_dir_the_files_go_to_a_new_scratch_folder_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = make_folder(None), make_folder(None)
    assert first != second
    assert {path.name: path.read_bytes() for path in first.iterdir()} == demo_files()


def test_a_folder_that_holds_the_demo_is_used_as_it_is(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "new" / "demo")
    (folder / NOTEBOOK).write_text("changed")
    (folder / ".ipynb_checkpoints").mkdir()
    assert make_folder(folder) == folder
    assert (folder / NOTEBOOK).read_text() == "changed", "what somebody did there is kept"


@pytest.mark.parametrize("more", [["mine.txt"], [NOTEBOOK], [*demo_files(), "mine.txt"]])
def test_a_folder_that_holds_anything_else_is_refused_and_left_alone(tmp_path: Path, more: list[str]) -> None:
    for name in more:
        (tmp_path / name).write_text("mine")
    with pytest.raises(StoreError, match="is not empty"):
        make_folder(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(more, "mine")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = process("demo", "--headless", "--dir", "file", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_folders_configuration_comes_first_and_the_others_stay() -> None:
    folder = Path("/demo")
    assert with_config(folder, {"A": "1"}) == {"A": "1", "JUPYTER_CONFIG_PATH": "/demo"}
    others = os.pathsep.join(["/x", "/y"])
    assert with_config(folder, {"JUPYTER_CONFIG_PATH": others})["JUPYTER_CONFIG_PATH"].split(os.pathsep) == ["/demo", "/x", "/y"]


def test_the_recorded_answers_are_for_that_run_only(tmp_path: Path) -> None:
    config = make_folder(tmp_path / "demo") / CONFIG
    before = config.read_bytes()
    with answers_from_recording(config):
        assert json.loads(config.read_text())["PlanAgent"]["answers"] == "recording"
        assert json.loads(config.read_text())["PlanAgent"]["model"] == json.loads(before)["PlanAgent"]["model"]
    assert config.read_bytes() == before
    config.write_text("[]")
    with pytest.raises(StoreError, match="cannot be used"), answers_from_recording(config):
        raise AssertionError("it does not begin")


def test_what_is_missing_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError, match=re.escape("the demo needs no_such_module: pip install 'plan-mode-nb[demo]'")):
        require("json", "no_such_module")
