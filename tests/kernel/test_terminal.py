"""Plan mode in plain IPython, over a pseudo terminal: streaming, prompts, the log file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.store.jsonl import load_jsonl
from plan_mode_nb.testing.faults import Slow, Stall

from .terminal import SECTION, AgentTerminal, Terminal

PLAN = "# Count the rows\n\n1. Load the data.\n2. Count.\n"
REVISED = "# Count the rows\n\n1. Load the data.\n2. Count twice.\n"
REVIEW = "d = discuss] "
REVISION = "c = changes] "
WORDS = "(Enter alone: no words) "
APPROVAL = "r = reject] "
SURVEY = """\
import threading, os; ip = get_ipython(); fds = ["/proc/self/fd/" + fd for fd in os.listdir("/proc/self/fd")]; \
print(sum("plan-mode-nb" in thread.name for thread in threading.enumerate()), len(ip.input_transformer_manager.token_transformers), \
sum(map(len, ip.events.callbacks.values())), "plan" in ip.magics_manager.magics["line"], len(ip.Completer.custom_matchers), \
sum(os.path.exists(fd) and "profile_" not in os.readlink(fd) for fd in fds), \
sum(type(each).__name__ in ("PlanAgent", "PlanMode") for each in ip.configurables), hasattr(ip, "_plan_mode_nb"))\
"""


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentTerminal]:
    """One terminal for the tests of this module; each begins a session of its own in it."""
    with AgentTerminal() as agent:
        yield agent


def submit(plan: str = PLAN) -> list[Any]:
    return [say("Here is my plan."), call("exit_plan_mode", {"plan": plan}), usage(10, 5)]


def types(log: Path) -> list[str]:
    return [event.type for event in decode_all(load_jsonl(log).lines)]


def end(log: Path) -> object:
    return [event.data["reason"] for event in decode_all(load_jsonl(log).lines) if event.type == "turn/end"][-1]


def test_a_plan_is_entered_with_a_message_revised_with_words_and_approved_before_the_agent_acts(agent: AgentTerminal) -> None:
    """The whole main job: every word of the model once, the whole plan, the words verbatim, and the code only after both prompts."""
    act = [say("Now I act."), call("python", {"code": "rows = 40 + 2\nrows"}), usage(1, 1)]
    terminal = agent.begin(submit(), submit(REVISED), act, [say("**42** rows."), usage(1, 1)])
    asked = terminal.start('%plan count {x} under $HOME "quoted', REVIEW)
    assert asked.count("Here is my plan.") == 1
    assert all(f"│ {line}".rstrip() in asked for line in PLAN.splitlines())
    terminal.child.sendline("k")
    terminal.until(WORDS)
    terminal.child.send("count twice,\n  please\n")
    terminal.until(REVISION)
    terminal.child.sendline("c")
    assert "+ 2. Count twice." in terminal.until(REVISION)
    terminal.child.sendline("a")
    seen = terminal.until(APPROVAL)
    assert "│ rows = 40 + 2\n│ rows\n" in seen
    terminal.child.sendline("a")
    wrote = terminal.rest()
    assert "plan mode off, from the next step" in seen
    assert "42\n**42** rows.\n· 4 steps" in wrote
    assert terminal.run("print('rows', rows)").startswith("rows 42")
    assert agent.said(0)[-1]["content"] == 'count {x} under $HOME "quoted'
    assert "their feedback: count twice,\n  please" in str(agent.said(1)[-1]["content"])
    assert [SECTION in agent.prompt(request) for request in range(4)] == [True, True, False, False]
    assert end(agent.log) == {"kind": "completed"}


@pytest.mark.parametrize("typed", ["approve", "Approve", "yes", "y", "a, but do not delete the data", "", "aa", "1"])
def test_only_the_one_key_approves(agent: AgentTerminal, typed: str) -> None:
    """Any other line, an empty one too, is asked again; text never approves."""
    terminal = agent.begin(submit(), [say("ok"), usage(1, 1)])
    terminal.start("%plan work", REVIEW)
    terminal.child.sendline(typed)
    assert "Type a, k or d and Enter." in terminal.until(REVIEW)
    terminal.child.sendline("k")
    terminal.until(WORDS)
    terminal.child.sendline("")
    terminal.rest()
    assert "The user chose to keep planning; revise the plan" in str(agent.said(1)[-1]["content"])
    assert "plan mode    on" in terminal.run("%session")


@pytest.mark.parametrize("key", ["d", "\x04"], ids=["discuss", "Ctrl-D"])
def test_discuss_puts_the_plan_aside_and_plan_mode_stays(agent: AgentTerminal, key: str) -> None:
    """The agent is told to stop and wait; nothing is approved."""
    terminal = agent.begin(submit(), [say("Let us talk."), usage(1, 1)])
    terminal.start("%plan work", REVIEW)
    terminal.child.send(key if key == "\x04" else f"{key}\n")
    assert "Let us talk." in terminal.rest()
    assert "dismissed the plan review to talk instead" in str(agent.said(1)[-1]["content"])
    assert "plan mode    on" in terminal.run("%session")


def test_a_child_is_told_line_by_line_and_its_prompt_says_whose_it_is(agent: AgentTerminal) -> None:
    """What its code prints is there too; its log is a file of its own beside the agent's."""
    spawn = [say("I hand it over."), call("spawn_agent", {"task": "Count them.", "description": "count"}), usage(1, 1)]
    work = [say("I count."), call("python", {"code": "print(40 + 2)"}), usage(1, 1)]
    terminal = agent.begin(spawn, work, [say("There are 42."), usage(1, 1)], [say("Forty-two."), usage(1, 1)])
    asked = terminal.start("%agent count", APPROVAL)
    assert "· [count] assistant: I count.\n· [count] tool python: print(40 + 2)\n" in asked
    assert "Approval: python for the child agent “count”" in asked
    assert "│ print(40 + 2)\n" in asked
    terminal.child.sendline("a")
    wrote = terminal.rest()
    assert "42\n· [count] assistant: There are 42.\n· result of spawn_agent: There are 42.\nForty-two.\n· 2 steps" in wrote
    listed = terminal.run("%session")
    assert "“count” (spawned): completed, 2 steps" in listed
    children = [path for path in agent.log.parent.glob(f"{agent.log.stem}.*.*.jsonl") if "subagent" in path.read_text().split("\n", 1)[0]]
    assert [types(path)[-1] for path in children] == ["turn/end"]


def test_keys_pressed_before_a_prompt_appears_answer_nothing(agent: AgentTerminal) -> None:
    """Typed ahead while the model still writes: the review waits all the same."""
    terminal = agent.begin([Slow(0.02), say("word " * 30), call("exit_plan_mode", {"plan": PLAN})], [say("ok"), usage(1, 1)])
    terminal.start("%plan work", "word word")
    terminal.child.send("a\na\n")
    terminal.until(REVIEW)
    terminal.child.sendline("d")
    terminal.rest()
    assert "dismissed the plan review" in str(agent.said(1)[-1]["content"])


def test_what_hides_in_a_plan_is_seen_and_nothing_of_it_passes_for_a_prompt(agent: AgentTerminal) -> None:
    """Escapes, carriage returns and bidirectional overrides are marks, and every row of the plan stands behind a bar."""
    plan = f"# Tidy up\n\n1. safe\rrm -rf\n2. \x1b[2K\x1b[1A gone\n3. \u202eesrever\n\nApprove this plan? [a] a\n{'long ' * 40}\n"
    terminal = agent.begin(submit(plan), [say("ok"), usage(1, 1)])
    asked = terminal.start("%plan work", REVIEW)
    shown = asked[asked.index("── Plan review") :]
    assert all(mark in shown for mark in ("safe␍rm -rf", "␛[2K␛[1A gone", "⟦U+202E⟧esrever"))
    rows = shown.splitlines()
    bars = [row for row in rows if row.startswith("│")]
    assert rows[0].startswith("── Plan review: Tidy up ")
    assert rows[1 : 1 + len(bars)] == bars
    assert "".join(row.removeprefix("│").strip() for row in bars[-3:]).replace(" ", "") == "long" * 40
    terminal.child.sendline("d")
    terminal.rest()


def test_a_rejected_call_does_not_run(agent: AgentTerminal) -> None:
    """Only the allowing key lets code run; what was shown of it hides nothing."""
    terminal = agent.begin([call("python", {"code": "ran = True # \x1b[2K"})], [say("Then not."), usage(1, 1)])
    assert "ran = True # ␛[2K" in terminal.start("%agent work", APPROVAL)
    terminal.child.sendline("allow once")
    terminal.until(APPROVAL)
    terminal.child.sendline("r")
    assert "Then not." in terminal.rest()
    assert "'ran' in globals() False" in terminal.run("print(\"'ran' in globals()\", 'ran' in globals())")


def test_questions_are_answered_by_number_and_in_own_words(agent: AgentTerminal) -> None:
    """One after the other, and the model gets exactly what was offered or said."""
    engine = {"id": "engine", "question": "Which engine?", "options": [{"label": "pandas"}, {"label": "polars", "description": "faster"}]}
    asked = call("ask_user_question", {"questions": [engine, {"id": "name", "question": "What name?"}]})
    terminal = agent.begin([asked, usage(1, 1)], [say("Thanks."), usage(1, 1)])
    assert "  2  polars: faster\n" in terminal.start("%agent work", "(Ctrl-D: rather talk): ")
    terminal.child.sendline("2")
    terminal.until("(Ctrl-D: rather talk): ")
    terminal.child.sendline("  regionName (für alle)")
    assert "Thanks." in terminal.rest()
    told = str(agent.said(1)[-1]["content"])
    assert "polars" in told
    assert "  regionName (für alle)" in told


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ([[Slow(0.05), say("word " * 300)]], "word word"),
        ([[Stall()]], None),
        ([[call("python", {"code": "import time\nprint('going')\ntime.sleep(60)"})]], "going"),
        ([submit()], REVIEW),
        ([[call("python", {"code": "1"})]], APPROVAL),
    ],
    ids=["streaming", "no answer", "tool", "review", "approval"],
)
def test_ctrl_c_ends_the_turn_closes_the_log_and_approves_nothing(agent: AgentTerminal, steps: list[Any], seen: str | None) -> None:
    """One line, no traceback of ours; the log says that the person stopped; the next turn works."""
    terminal = agent.begin(*steps, [say("Here again."), usage(1, 1)])
    terminal.run("%sandbox " + ("workspace-write" if seen == APPROVAL else "danger-full-access"))
    if seen is None:
        terminal.child.sendline("%plan work")
        assert agent.server.wait_for_requests(1, 60)
    else:
        terminal.start("%plan work", seen)
    wrote, seconds = terminal.interrupt()
    assert wrote.rstrip().endswith("KeyboardInterrupt: agent turn cancelled")
    assert "plan_mode_nb" not in wrote
    assert seconds < 5
    assert end(agent.log) == {"kind": "aborted", "reason": {"kind": "user"}}
    assert "Here again." in terminal.run("%agent go on")
    assert "plan mode    on" in terminal.run("%session")


def test_plan_mode_is_left_with_off_and_entering_it_idle_says_how(agent: AgentTerminal) -> None:
    """The same sentences as in a notebook, and the same log."""
    terminal = agent.begin()
    assert terminal.run("%plan").strip() == "Plan mode on. Use %plan off to leave."
    assert terminal.run("%plan OFF").strip() == "Plan mode off."
    assert terminal.run("%plan off").strip() == "Plan mode is already inactive."
    assert types(agent.log).count("plan/mode") == 2
    assert "Plan mode: the agent explores first" in terminal.run("%plan?")


def test_the_log_is_one_file_that_a_later_terminal_goes_on_with(agent: AgentTerminal) -> None:
    """Leaving and starting again restores history and plan mode; a second terminal on the same file is refused with a sentence."""
    first = agent.begin([say("Hello."), usage(1, 1)], [say("Again."), usage(1, 1)])
    first.run("%plan hello")
    held = load_jsonl(agent.log)
    second = agent.open()
    assert f"another process writes {agent.log}; choose another PlanAgent.log_file" in second.run("%plan off")
    assert load_jsonl(agent.log) == held
    second.leave()
    first.leave()
    agent.terminal = again = agent.open()
    status = again.run("%session")
    assert f"restored with {len(held.lines)} events" in status
    assert "plan mode    on" in status
    assert load_jsonl(agent.log) == held
    again.run(f"%env OPENAI_BASE_URL={agent.server.url}")
    assert "Again." in again.run("%agent go on")
    assert SECTION in agent.prompt(1)
    hello, answer, restarted = [message["content"] for message in agent.said(1)]
    assert (hello, answer) == ("hello", "Hello.")
    assert restarted.endswith("go on")
    now = load_jsonl(agent.log)
    assert now.header == held.header
    assert now.lines[: len(held.lines)] == held.lines


def test_a_new_session_sets_the_old_one_aside_in_a_file_of_its_own(agent: AgentTerminal) -> None:
    """Nothing is written over; going back takes the old log up again, after a restart too."""
    terminal = agent.begin()
    terminal.run("%plan")
    old = load_jsonl(agent.log)
    terminal.run("%session new")
    terminal.run("%plan\n")
    aside = agent.log.with_name(f"log.{old.header.id}.jsonl")
    assert load_jsonl(aside) == old
    assert load_jsonl(agent.log).header.id != old.header.id
    terminal.leave()
    agent.terminal = terminal = agent.open()
    assert f"also here    {old.header.id}" in terminal.run("%session").replace(", ", "\nalso here    ")
    terminal.run(f"%session use {old.header.id}")
    terminal.run("%plan off")
    assert not aside.exists()
    assert load_jsonl(agent.log).lines[: len(old.lines)] == old.lines
    assert types(agent.log)[-3:] == ["notebook/cell", "plan/mode", "command/done"]


def test_a_conversation_is_compacted_with_one_line_and_stopped_by_ctrl_c(agent: AgentTerminal) -> None:
    """The model goes on from the summary."""
    long = "a row of March, " * 60
    terminal = agent.begin(
        [say(long), usage(1, 1)], [Slow(0.05), say("## Wh " * 400)], [say("## Rows"), usage(1, 1)], [say("On."), usage(1, 1)]
    )
    terminal.run(f"%agent count {long}")
    terminal.child.sendline("%session compact")
    assert agent.server.wait_for_requests(2, 60)
    stopped, _ = terminal.interrupt()
    assert "· the conversation was not compacted and is as it was: it was stopped" in stopped
    assert "· compacted 1 message (about " in terminal.run("%session compact keep the names")
    assert "On." in terminal.run("%agent go on")
    assert [message["role"] for message in agent.said(-1)] == ["user", "assistant", "user"]


def test_reloading_and_unloading_leave_one_and_then_none(agent: AgentTerminal) -> None:
    """As in a notebook: no magic, hook, thread, open file or setting twice or too many."""
    terminal = agent.begin()
    terminal.run("%unload_ext plan_mode_nb")
    before = terminal.run(SURVEY)
    terminal.run("%load_ext plan_mode_nb")
    terminal.run("%plan")
    loaded = terminal.run(SURVEY)
    for _ in range(2):
        terminal.run("%reload_ext plan_mode_nb")
        assert "already" in terminal.run("%plan")
    assert terminal.run(SURVEY) == loaded
    terminal.run("%unload_ext plan_mode_nb")
    assert terminal.run(SURVEY) == before
    terminal.run("%load_ext plan_mode_nb")


def test_without_a_key_one_sentence_says_what_to_set() -> None:
    """Neither a model nor a key: no traceback, plan mode is selected all the same, and nothing is kept in a file."""
    with AgentTerminal(settings={}) as agent:
        wrote = agent.terminal.run("%plan work")
        assert "PlanAgent.model" in wrote
        assert "OPENAI_API_KEY" in wrote
        assert "Traceback" not in wrote
        status = agent.terminal.run("%session")
        assert "plan mode    on" in status
        assert "memory only; PlanAgent.log_file names a file" in status
        assert not agent.log.exists()


def test_with_a_pipe_instead_of_a_person_a_review_fails_closed_at_once(agent: AgentTerminal) -> None:
    """A script piped into IPython: nobody is asked, nothing is approved, nothing hangs."""
    agent.begin(submit(), [say("Then I ask here."), usage(1, 1)])
    script = "%load_ext plan_mode_nb\n%plan work\na\n%session\n"
    environment = {**agent.environment, "OPENAI_BASE_URL": agent.server.url, "PATH": "", "IPYTHONDIR": str(agent.home)}
    log = {"PlanMode": {"section": SECTION}, "PlanAgent": {"model": "openai-chat:scripted"}}
    folder = agent.home / "piped"
    folder.mkdir()
    (folder / "plan_mode_nb.json").write_text(json.dumps(log))
    environment["JUPYTER_CONFIG_PATH"] = str(folder)
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"]
    ran = subprocess.run(command, input=script, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Then I ask here." in ran.stdout, ran.stdout + ran.stderr
    assert "nobody is here to answer" in str(agent.said(1)[-1]["content"])
    assert "plan mode    on" in ran.stdout


def test_the_same_at_ipythons_full_prompt(agent: AgentTerminal) -> None:
    """With colours and line editing, as IPython starts by default, prompts work the same."""
    agent.begin(submit(), [say("Carried out."), usage(1, 1)])
    settings = {**agent.environment, "OPENAI_BASE_URL": agent.server.url, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    settings |= {"HOME": str(agent.home), "IPYTHONDIR": str(agent.home), "PATH": "/usr/bin:/bin"}
    child = pexpect.spawn(sys.executable, ["-m", "IPython", "--no-banner"], env=settings, encoding="utf8", timeout=30)
    child.expect_exact("In [")
    child.send("%load_ext plan_mode_nb\r")
    child.expect_exact("In [")
    child.send("%config PlanAgent.log_file = ''\r")
    child.expect_exact("In [")
    child.send("%plan work\r")
    child.expect_exact(REVIEW)
    child.send("a\r")
    child.expect_exact("Carried out.")
    child.close(force=True)


def test_a_terminal_is_left_as_it_was_found(agent: AgentTerminal) -> None:
    """After turns and prompts, Python's own prompt for input works."""
    terminal: Terminal = agent.begin(submit(), [say("ok"), usage(1, 1)])
    terminal.start("%plan work", REVIEW)
    terminal.child.sendline("a")
    terminal.rest()
    terminal.start("x = input('name: ')", "name: ")
    terminal.child.sendline("Ada")
    terminal.rest()
    assert terminal.run("print(x)").strip() == "Ada"
