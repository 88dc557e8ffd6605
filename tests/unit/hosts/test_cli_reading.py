"""``fold`` and ``log``: the machine interface, the readable ones, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import stored
from commands import command, process

from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.hosts.cli.reading import readable
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.store.jsonl import save_jsonl
from plan_mode_nb.store.notebook import write_notebook
from plan_mode_nb.testing import logs

LINES = stored.lines(3, "naïve 计划")
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "dsh-logs"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same session in every kind of file."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("log.jsonl", "log.jsonl.zstd"):
        save_jsonl(folder / name, stored.header("s"), LINES)
    two = {"s": LINES, "other": stored.lines(1)}
    write_notebook(folder / "notebook.ipynb", stored.notebook(stored.metadata(two)))
    stored.journal(folder / "journals", "s", LINES, kernel="k", path=None).close()
    journal = next((folder / "journals").iterdir())
    return {"jsonl": folder / "log.jsonl", "zstd": folder / "log.jsonl.zstd", "notebook": folder / "notebook.ipynb", "journal": journal}


@pytest.mark.parametrize("kind", ["jsonl", "zstd", "notebook", "journal"])
def test_fold_json_prints_exactly_the_fold_of_the_log(files: dict[str, Path], kind: str) -> None:
    before = files[kind].read_bytes()
    done = command("fold", files[kind], "--json", cwd=files[kind].parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == fold_summary(stored.header("s"), decode_all(LINES))
    assert files[kind].read_bytes() == before, "a file that is read is not written"


def test_fold_json_has_the_keys_of_the_machine_interface_in_their_order(files: dict[str, Path]) -> None:
    printed = json.loads(command("fold", files["jsonl"], "--json", cwd=files["jsonl"].parent).stdout)
    assert list(printed) == [
        "session", "events", "plan", "messages", "header", "todos", "approval_policy", "sandbox_mode", "turns", "usage", "open_reviews",
    ]  # fmt: skip


@pytest.mark.parametrize("at", [0, 5, 6, len(LINES) - 1])
def test_at_includes_its_event_and_invents_no_end(files: dict[str, Path], at: int) -> None:
    done = command("fold", files["jsonl"], "--json", "--at", at, cwd=files["jsonl"].parent)
    assert json.loads(done.stdout) == fold_summary(stored.header("s"), decode_all(LINES)[: at + 1])


def test_a_session_is_chosen_by_its_id_and_main_is_the_default(files: dict[str, Path]) -> None:
    done = command("fold", files["notebook"], "--json", "--session", "other", cwd=files["notebook"].parent)
    assert json.loads(done.stdout) == fold_summary(stored.header("other"), decode_all(stored.lines(1)))


def test_json_is_readable_whatever_the_terminal_can_show(files: dict[str, Path]) -> None:
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process("fold", files["jsonl"], "--json", cwd=files["jsonl"].parent, environment=environment)
    assert json.loads(done.stdout) == fold_summary(stored.header("s"), decode_all(LINES))
    assert process("log", files["jsonl"], cwd=files["jsonl"].parent, environment=environment).returncode == 0


def test_without_json_the_fold_is_a_few_lines_for_people(files: dict[str, Path]) -> None:
    done = command("fold", files["jsonl"], cwd=files["jsonl"].parent)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "session      s",
        "events       18",
        "turns        3 (3 completed)",
        "messages     6",
        "plan mode    off",
        "model        none asked yet",
        "todos        0 of 0 done",
        "approval     default",
        "sandbox      default",
        "tokens       0 in, 0 cached, 0 out",
    ]


def test_a_waiting_review_and_a_pending_choice_are_named() -> None:
    session = logs.new_session()
    session.append(logs.plan_mode(True), logs.turn_start(1), logs.plan_selected(False), logs.review_asked("q", "# Tidy\x1b[31m up\n\nAll."))
    said = readable(fold_summary(session.header, session.events))
    assert "plan mode    on, off from the next step" in said
    assert "turns        1 (1 open)" in said
    assert "open review  Tidy" in said
    assert "\x1b" not in said, "nothing in a log reaches the terminal as a command to it"


def test_log_prints_the_timeline_with_local_times(files: dict[str, Path]) -> None:
    done = process("log", files["notebook"], cwd=files["notebook"].parent, environment={"TZ": "UTC"})
    assert done.returncode == 0
    first, *_, last = done.stdout.splitlines()
    assert first.split() == ["0", "2025-11-30", "13:40:00", "1", "turn", "1", "starts"]
    assert last.split()[-3:] == ["turn", "ends:", "completed"]
    assert "you: naïve 计划" in done.stdout


def test_an_empty_log_is_said_to_be_one(tmp_path: Path) -> None:
    save_jsonl(tmp_path / "empty.jsonl", stored.header("s"), [])
    assert command("log", "empty.jsonl", cwd=tmp_path).stdout == "nothing has happened yet\n"
    assert json.loads(command("fold", "empty.jsonl", "--json", cwd=tmp_path).stdout) == fold_summary(stored.header("s"), [])
    refused = command("fold", "empty.jsonl", "--at", 0, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "plan-mode-nb: empty.jsonl has no event 0: it is empty; leave out --at\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.jsonl", None, "none.jsonl cannot be read (No such file or directory)"),
        ("text.jsonl", b"hello\n", "text.jsonl: this is not a session log: its first line is not JSON"),
        ("newer.jsonl", b'{"type":"session","version":1,"id":"s","createdAt":0,"delegationDepth":0}\n', "format version 1"),
        ("bare.ipynb", b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}', "bare.ipynb holds no session"),
        ("broken.ipynb", b"{", "broken.ipynb is not a notebook: its JSON is damaged"),
        ("x.journal", b"x\n", "is no journal of plan_mode_nb"),
    ],
)
@pytest.mark.parametrize("verb", ["fold", "log"])
def test_a_refused_file_is_one_sentence_on_stderr_and_status_1(
    tmp_path: Path, name: str, content: bytes | None, said: str, verb: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = command(verb, name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("plan-mode-nb: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_log_that_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    line = f'{{"type":"plan/mode","seq":{len(LINES)},"time":1,"data":{{"active":"yes"}}}}'
    save_jsonl(tmp_path / "bad.jsonl", stored.header("s"), [*LINES, line])
    done = command("fold", "bad.jsonl", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.jsonl" in done.stderr


def test_a_torn_tail_is_left_out_and_said(tmp_path: Path, files: dict[str, Path]) -> None:
    (tmp_path / "torn.jsonl").write_bytes(files["jsonl"].read_bytes() + b'{"type":"turn/st')
    done = command("fold", "torn.jsonl", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["events"] == len(LINES)
    assert done.stderr == "note: line 20 is cut off and was left out\n"


@pytest.mark.parametrize("arguments", [["fold"], ["fold", "a", "--at", "-1"], ["fold", "a", "--at", "x"], ["nothing"], ["fold", "a", "b"]])
def test_usage_is_status_2(tmp_path: Path, arguments: list[str]) -> None:
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_reader_that_stops_reading_is_no_error(files: dict[str, Path]) -> None:
    line = f"{sys.executable} -m plan_mode_nb fold {files['jsonl']} --json | head -n 1; exit ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_help_imports_neither_a_model_nor_jupyter(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom plan_mode_nb.hosts.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "slow = {'pydantic_ai', 'nbclient', 'nbformat', 'jupyter_client', 'IPython', 'markdown_it'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for verb in ("demo", "run", "fold", "log", "import", "export", "doctor"):
        assert f"  {verb} " in done.stdout


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded deepseek-harness logs are not here")
def test_the_logs_of_deepseek_harness_fold_as_it_folds_them() -> None:
    done = command("fold", SHARED / "apps__web__tests__snapshots__plan-review.jsonl", "--json", cwd=SHARED)
    expected = json.loads((SHARED / "apps__web__tests__snapshots__plan-review.expected.json").read_text())
    printed = json.loads(done.stdout)
    for mine, theirs in (("messages", "messages"), ("events", "events"), ("header", "header"), ("todos", "todos")):
        assert printed[mine] == expected[theirs]
    assert printed["plan"] == {"active": expected["plan"], "pending": None}
