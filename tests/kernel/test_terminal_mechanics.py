"""A turn in plain IPython, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .terminal import Terminal

BODIES = "import kernel_bodies as B, threading; from kernel_bodies import *"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("ipython"), first=BODIES)
    yield terminal
    terminal.child.close(force=True)


def assert_nothing_left(terminal: Terminal) -> None:
    assert "LEFT []\n" in terminal.run("print('LEFT', B.leftovers())")


def test_text_streams_to_the_terminal_as_it_comes(terminal: Terminal) -> None:
    terminal.start("go(scripted(('text', 400, .01)))", "s00 s01")
    terminal.child.expect_exact("s0399")
    assert "ended: completed" in terminal.rest()
    assert_nothing_left(terminal)


def test_a_tools_code_runs_and_is_recorded(terminal: Terminal) -> None:
    wrote = terminal.run("print(turn(scripted(('python', 'print(1)\\n6*7')))[0].text)")
    assert wrote.endswith("1\n42\n\n\n")
    assert "OUT []\n" in terminal.run("print('OUT', sorted(Out))")


def test_what_the_tool_prints_is_shown_while_it_runs(terminal: Terminal) -> None:
    """The painter writes past the redirected descriptors, to the terminal itself."""
    terminal.start("go(scripted(('python', 'import time; print(1); print(2); time.sleep(60)')))", "[running] 1\r\n2\r\n")
    wrote, seconds = terminal.interrupt()
    assert "KeyboardInterrupt: agent turn cancelled" in wrote
    assert seconds < 5


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import asyncio; await asyncio.sleep(.05); 11", "11\n"),
        ('import os; os.system("echo sys"); print(5)', "sys\n5\n"),
        ("!echo bang", "bang\n"),
        ("!cat", ""),
        ("%time 1", None),
        ("len?", None),
    ],
)
def test_user_code_in_a_terminal(terminal: Terminal, code: str, text: str | None) -> None:
    wrote = terminal.run(f"r = turn(scripted(('python', {code!r})))[0]; print('GOT', repr((r.status, r.text)))")
    got = wrote[wrote.index("GOT ") + 4 :]
    assert got.startswith(f"('ok', {text!r})" if text is not None else "('ok', ")
    assert_nothing_left(terminal)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("input()", "cannot read from the keyboard"),
        ("breakpoint()", "cannot stop in a debugger"),
        ("import pdb; pdb.set_trace(); 1", "Error"),
        ("exit()", "cannot end the kernel"),
        ("1/0", "ZeroDivisionError"),
    ],
)
def test_what_code_may_not_do_in_a_terminal_is_an_error_with_a_sentence(terminal: Terminal, code: str, sentence: str) -> None:
    wrote = terminal.run(f"r = turn(scripted(('python', {code!r})))[0]; print('GOT', r.status, {sentence!r} in r.text)")
    assert "GOT error True" in wrote
    assert_nothing_left(terminal)


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("('text', 3000, .01)", "s05 "),
        ("('sleep', 60)", "sleeping"),
        ("('python', 'print(\"inside\"); import time; time.sleep(60)')", "inside"),
        ("('python', 'print(\"inside\"); import asyncio; await asyncio.sleep(60)')", "inside"),
    ],
    ids=["streaming", "agent asleep", "synchronous tool", "awaiting tool"],
)
def test_ctrl_c_ends_a_turn_and_the_next_one_works(terminal: Terminal, body: str, seen: str) -> None:
    terminal.start(f"go(scripted({body}))", seen)
    wrote, seconds = terminal.interrupt()
    assert "log closed" in wrote
    assert "ended: interrupted" in wrote
    assert wrote.rstrip().endswith("KeyboardInterrupt: agent turn cancelled")
    assert seconds < 5
    assert_nothing_left(terminal)


def test_a_failing_agent_and_a_dead_thread_are_one_line(terminal: Terminal) -> None:
    wrote = terminal.run("go(scripted(('raise', ValueError('boom'))))")
    assert "HostError: The turn failed (ValueError: boom); run the cell again." in wrote
    assert "SystemExit: 3" in terminal.run("go(scripted(('raise', SystemExit(3))))")
    assert "ended: completed" in terminal.run("go(scripted(('text', 2, .01)))")


def test_leaving_the_terminal_with_an_idle_agent_thread_does_not_hang(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, first=BODIES)
    terminal.run("go(scripted(('text', 2, .01)))")
    terminal.leave()
    assert not terminal.child.isalive()
