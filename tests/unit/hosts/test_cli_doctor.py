"""``doctor``: each line says ok or what to do, the exit status says whether anything is to be done, and no key is shown."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import stored
from commands import command, private, process

from plan_mode_nb import __version__
from plan_mode_nb.hosts.cli import installed, kept, running
from plan_mode_nb.hosts.cli.findings import Finding, line
from plan_mode_nb.hosts.cli.running import ModelNames
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.store.jsonl import save_jsonl
from plan_mode_nb.store.notebook import write_notebook

SECRET = "sk-0123456789abcdefghij"
LINES = stored.lines(2)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    save_jsonl(tmp_path / "recording.jsonl", stored.header("s"), LINES)
    return tmp_path


def configure(place: Path, content: object) -> None:
    """The person's own configuration file."""
    (place / "config" / "plan_mode_nb.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_fine_installation_is_all_ok_and_status_0(place: Path) -> None:
    recording = f"recording:{place / 'recording.jsonl'}"
    configure(place, {"PlanAgent": {"model": recording, "plan_model": recording}})
    done = process("doctor", cwd=place, environment=private(place))
    assert {text.split()[0] for text in done.stdout.splitlines()} == {"ok"}, done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    for what in (
        "python",
        "ipykernel",
        "lab extension",
        "server extension",
        "configuration",
        "guidance",
        "kernel",
        "model",
        "plan model",
        "journals",
    ):
        assert any(text.startswith(f"ok   {what}") for text in done.stdout.splitlines()), what
    assert f"{place / 'config' / 'plan_mode_nb.json'} sets PlanAgent.model, PlanAgent.plan_model\n" in done.stdout
    assert not (place / "runtime" / "plan_mode_nb").exists(), "looking leaves nothing behind"


def test_without_a_model_it_says_how_to_choose_one_and_status_1(place: Path) -> None:
    done = process("doctor", cwd=place, environment=private(place))
    (model,) = [text for text in done.stdout.splitlines() if " model " in text]
    assert model.startswith("fix  model")
    assert "%config PlanAgent.model" in model
    assert done.returncode == 1


def test_no_part_of_a_key_is_ever_printed(place: Path) -> None:
    secrets = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://me:{SECRET}@127.0.0.1:9/{SECRET}", "ANTHROPIC_API_KEY": SECRET}
    done = process("doctor", cwd=place, environment={**private(place), **secrets})
    assert "ANTHROPIC_API_KEY is set" in done.stdout
    assert SECRET[3:] not in done.stdout + done.stderr


def test_an_unknown_key_is_named_by_the_kernel_that_refuses_it(place: Path) -> None:
    configure(place, {"PlanAgent": {"modle": "x"}})
    done = process("doctor", cwd=place, environment=private(place))
    (kernel,) = [text for text in done.stdout.splitlines() if text.split()[1] == "kernel"]
    assert kernel.startswith("fix")
    assert "'modle'" in kernel
    assert "'model'" in kernel
    assert "sets PlanAgent.modle" in done.stdout, "and the line above says which file has it"
    assert done.returncode == 1


def marks(findings: Iterator[Finding]) -> list[str]:
    return [finding.mark for finding in findings]


@pytest.mark.parametrize("content", ["{", "[]", '{"PlanAgent": 5}'])
def test_a_configuration_file_that_is_damaged_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan_mode_nb.json").write_text(content)
    (finding,) = installed.config_files([tmp_path / "none", tmp_path])
    assert finding.mark == "fix"
    assert str(tmp_path / "plan_mode_nb.json") in finding.text


def test_without_any_configuration_file_there_is_nothing_to_mend(tmp_path: Path) -> None:
    assert marks(installed.config_files([tmp_path])) == []


def test_the_guidance_is_the_first_that_is_set_and_without_one_it_says_what_brings_it_back(tmp_path: Path) -> None:
    for name, content in (
        ("model", {"PlanAgent": {"model": "x"}}),
        ("own", {"PlanMode": {"section": "Mine."}}),
        ("shipped", {"PlanMode": {"section": "x"}}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan_mode_nb.json").write_text(json.dumps(content))
    none, own, shipped = tmp_path / "model", tmp_path / "own", tmp_path / "shipped"
    assert installed.guidance([none, own, shipped]) == Finding("ok", "guidance", f"PlanMode.section of {own / 'plan_mode_nb.json'}")
    assert installed.guidance([none, shipped]) == Finding("ok", "guidance", f"PlanMode.section of {shipped / 'plan_mode_nb.json'}")
    assert installed.guidance([none]).mark == "fix"


def test_mcp_servers_that_are_configured_need_what_speaks_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file that names any decides, and nothing is started."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, servers in ((first, {}), (second, {"shop": {"command": "shop"}})):
        folder.mkdir()
        (folder / "plan_mode_nb.json").write_text(json.dumps({"PlanAgent": {"mcp_servers": servers}}))
    assert marks(installed.mcp_servers([tmp_path])) == []
    assert marks(installed.mcp_servers([second, first])) == ["ok"]
    assert marks(installed.mcp_servers([first, second])) == []
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    (finding,) = installed.mcp_servers([second])
    assert finding.text.endswith("pip install 'plan-mode-nb[mcp]' brings what speaks to them")


def test_the_first_folder_that_speaks_of_the_server_extension_decides(tmp_path: Path) -> None:
    for name, enabled in (("person", False), ("system", True)):
        folder = tmp_path / name / "jupyter_server_config.d"
        folder.mkdir(parents=True)
        (folder / "x.json").write_text(json.dumps({"ServerApp": {"jpserver_extensions": {installed.SERVER_EXTENSION: enabled}}}))
    assert installed.server_extension([tmp_path / "system", tmp_path / "person"]).mark == "ok"
    off = installed.server_extension([tmp_path / "person", tmp_path / "system"])
    assert (off.mark, "jupyter server extension enable" in off.text) == ("fix", True)
    assert installed.server_extension([tmp_path]).mark == "fix"


def extension(folder: Path, name: str, version: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "package.json").write_text(json.dumps({"name": name, "version": version}))


def test_the_lab_extension_must_be_there_enabled_and_of_this_version(tmp_path: Path) -> None:
    names = ["plan-mode-nb", "@jupyter-widgets/jupyterlab-manager", "anywidget"]
    assert marks(installed.lab_extensions({}, [tmp_path])) == ["fix"] * 3
    for name in names:
        extension(tmp_path / "new", name, __version__)
        extension(tmp_path / "old", name, "0.0.1")
    assert marks(installed.lab_extensions({}, [tmp_path / "new"])) == ["ok"] * 3
    assert marks(installed.lab_extensions({"disabledExtensions": names}, [tmp_path / "new"])) == ["fix"] * 3
    assert marks(installed.lab_extensions({"disabledExtensions": ["plan-mode-nb:plugin"]}, [tmp_path / "new"])) == ["fix", "ok", "ok"]
    assert marks(installed.lab_extensions({}, [tmp_path / "old", tmp_path / "new"])) == ["fix", "ok", "ok"]


class Models(http.server.BaseHTTPRequestHandler):
    """A server that wants a key."""

    asked: list[tuple[str, str | None]] = []  # noqa: RUF012 - the class is made anew for each request

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Not on the tests' own stderr."""


@pytest.fixture
def served() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Models.asked.clear()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_that_answers_is_reachable_and_is_not_sent_a_key(served: str) -> None:
    finding = running.reachable("OPENAI_BASE_URL", f"http://me:{SECRET}@{served}/v1/")
    assert finding == Finding("ok", "model server", f"{served} answers (HTTP 401)")
    assert Models.asked == [("/v1/models", None)]


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    finding = running.reachable("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    assert finding.mark == "fix"
    assert f"127.0.0.1:{port} cannot be reached" in finding.text
    assert "OPENAI_BASE_URL" in finding.text


def test_a_server_that_says_nothing_is_waited_for_two_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        finding = running.reachable("OPENAI_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
    assert finding.mark == "fix"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "not an address", ""])
def test_an_address_that_is_none_is_said_to_be_none(url: str) -> None:
    assert running.reachable("OPENAI_BASE_URL", url) == Finding(
        "fix", "model server", "OPENAI_BASE_URL is no http address; write it as http://HOST:PORT/v1"
    )


def test_the_network_is_left_alone_where_no_server_is_configured() -> None:
    (finding,) = running.models(ModelNames(""), {"DEEPSEEK_API_KEY": SECRET})
    assert finding.mark == "ok"
    assert "DEEPSEEK_API_KEY is set" in finding.text


def test_a_recording_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    (finding,) = running.models(ModelNames(f"recording:{tmp_path / 'none.jsonl'}"), {})
    assert finding.mark == "fix"


def test_the_model_of_plan_mode_is_a_finding_of_its_own_and_one_server_is_asked_once(served: str) -> None:
    environ = {"OPENAI_BASE_URL": f"http://{served}/v1", "OPENAI_API_KEY": SECRET}
    found = list(running.models(ModelNames("openai-chat:small", "openai-chat:large"), environ))
    assert [(each.what, each.text.split()[0]) for each in found[:2]] == [
        ("model", "openai-chat:small"),
        ("plan model", "openai-chat:large"),
    ]
    assert "PlanAgent.plan_model" in found[1].text
    assert [each.what for each in found[2:]] == ["model server"]
    assert len(Models.asked) == 1
    wrong = list(running.models(ModelNames("openai-chat:small", "gpt"), {}))[1]
    assert (wrong.mark, wrong.what, "PlanAgent.plan_model 'gpt' names no provider" in wrong.text) == ("fix", "plan model", True)


def test_a_kernel_that_is_not_there_is_a_finding() -> None:
    finding, model = running.kernel("cobol")
    assert (finding.mark, model) == ("fix", None)


def test_journals_whose_conversation_is_in_no_notebook_are_offered_with_the_command_that_keeps_them(tmp_path: Path) -> None:
    folder, notebook = tmp_path / "journals", tmp_path / "a b.ipynb"
    write_notebook(notebook, stored.notebook(stored.metadata({"held": LINES, "grown": stored.lines(1)})))
    for id in ("held", "grown", "absent"):
        stored.journal(folder, id, LINES, kernel="k", path=notebook).close()
    stored.journal(folder, "moved", LINES, kernel="k", path=tmp_path / "gone.ipynb").close()
    stored.journal(folder, "unknown", LINES, kernel="k", path=None).close()
    live = stored.journal(folder, "live", LINES, kernel="k", path=None)
    (folder / "bad.k.journal").write_text("x\n")
    findings = {finding.text.split()[1]: finding for finding in kept.waiting(folder) if finding.what == "journal"}
    live.close()
    assert {id: finding.mark for id, finding in findings.items()} == {
        "journal": "fix", "held": "ok", "grown": "ok", "absent": "fix", "moved": "fix", "unknown": "fix",
    }  # fmt: skip
    assert f"plan-mode-nb import {folder / 'moved.k.journal'} NOTEBOOK.ipynb" in findings["moved"].text
    for id in ("moved", "unknown", "absent"):
        done = command("import", folder / f"{id}.k.journal", tmp_path / "new.ipynb", cwd=tmp_path)
        assert done.returncode == 0, "and that command works"
    assert decode_all(stored.held(json.loads((tmp_path / "new.ipynb").read_text())["metadata"])["moved"]) == decode_all(LINES)


def test_a_finding_is_one_line_and_no_command_to_the_terminal() -> None:
    assert line(Finding("fix", "x", "two\nlines \x1b[31mred")).count("\n") == 0
    assert "\x1b" not in line(Finding("fix", "x", "\x1b[31mred"))
