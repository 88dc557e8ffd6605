"""How a turn ends when something under it ends: an exception, the agent's thread, the kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .driver import Kernel

pytestmark = pytest.mark.kernel

AGAIN = "run the cell again to continue in a new one."


def assert_one_line(kernel: Kernel, code: str, line: str) -> None:
    ran = kernel.run(code)
    assert ran.status == "error"
    assert ran.traceback == [line]
    assert "ended: failed" in ran.shown
    assert kernel.must("print(B.leftovers())") == "[]\n"


def test_an_exception_of_the_agent_is_one_line_in_the_cell_and_the_thread_lives_on(kernel: Kernel) -> None:
    kernel.must("before = thread.get(get_ipython())")
    assert_one_line(
        kernel,
        "go(scripted(('text', 3, .01), ('raise', ValueError('boom'))))",
        "HostError: The turn failed (ValueError: boom); run the cell again.",
    )
    assert kernel.must("print(thread.get(get_ipython()) is before)") == "True\n"


def test_an_error_made_for_people_is_shown_as_it_is(kernel: Kernel) -> None:
    kernel.must("from plan_mode_nb.exceptions import ModelError")
    assert_one_line(kernel, "go(scripted(('raise', ModelError('Set a key.'))))", "ModelError: Set a key.")


def test_an_exception_of_a_job_is_raised_where_the_job_was_awaited(kernel: Kernel) -> None:
    kernel.must(
        "async def body(t):\n"
        "    for error in (KeyError('k'), StopIteration(1), SystemExit(2), KeyboardInterrupt()):\n"
        "        def job(): raise error\n"
        "        try: await t.on_main(job)\n"
        "        except Exception as caught: SEEN.append(type(caught).__name__)\n"
        "SEEN.clear(); go(body)"
    )
    assert kernel.must("print(SEEN)") == "['KeyError', 'RuntimeError', 'HostError', 'HostError']\n"


def test_system_exit_in_the_agent_is_said_once_and_the_next_turn_gets_a_new_thread(kernel: Kernel) -> None:
    """In the body itself, and in a task of its own, where it ends the loop under the body."""
    kernel.must("before = thread.get(get_ipython())")
    ran = kernel.run("go(scripted(('text', 3, .01), ('raise', SystemExit(3))))")
    assert len(ran.traceback) == 1
    assert "SystemExit: 3" in ran.traceback[0]
    kernel.must("async def leave(): raise SystemExit(4)\nasync def body(t): await asyncio.create_task(leave())\nimport asyncio")
    ran = kernel.run("go(body)")
    assert len(ran.traceback) == 1
    assert "SystemExit: 4" in ran.traceback[0]
    assert kernel.must("print(before.alive, thread.get(get_ipython()).alive)") == "False True\n"
    assert kernel.must("print(turn(scripted(('python', '1')))[0].text); print(B.leftovers())") == "1\n\n[]\n"


def test_a_loop_that_is_stopped_under_a_turn_ends_it_with_a_sentence(kernel: Kernel) -> None:
    assert_one_line(
        kernel,
        "go(scripted(('text', 3, .01), ('call', lambda t: t.agent.loop.stop()), ('sleep', 60)))",
        f"HostError: The agent's thread ended (its event loop was stopped); {AGAIN}",
    )


def test_a_turn_on_a_thread_that_has_ended_says_so(kernel: Kernel) -> None:
    kernel.must("dead = thread.AgentThread(); dead.stop()")
    ran = kernel.run("CellTurn(get_ipython(), dead, scripted(('text', 3, .01)), Slots()).run()")
    assert ran.traceback == [f"HostError: The agent's thread ended; {AGAIN}"]


def test_a_turn_cancelled_by_somebody_else_says_so(kernel: Kernel) -> None:
    assert_one_line(
        kernel,
        "import asyncio\nasync def body(t):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(5)\ngo(body)",
        "HostError: The agent's turn was cancelled from outside; run the cell again.",
    )


def test_an_agent_that_does_not_stop_is_abandoned_after_the_grace_period(kernel: Kernel) -> None:
    """The person gets the kernel back; the next turn runs on a new thread."""
    kernel.must("before = thread.get(get_ipython())")
    sent = kernel.send("go(scripted(('text', 3, .01), ('hang',)))")
    kernel.until_shown(sent, "s02")
    pressed = kernel.interrupt()
    ran = kernel.wait(sent)
    assert ran.ename == "KeyboardInterrupt"
    assert ran.traceback[0].endswith("the agent did not stop within 2 s and was abandoned")
    assert ran.replied_at is not None
    assert 1.9 < ran.replied_at - pressed < 15
    assert kernel.must("print(turn(scripted(('python', '1')))[0].text)") == "1\n\n"
    assert kernel.must("before.stop(5); print(B.leftovers())") == "[]\n"


def test_a_body_that_fails_while_it_is_being_stopped_still_ends_in_keyboard_interrupt(kernel: Kernel) -> None:
    kernel.must(
        "import asyncio\nasync def body(t):\n    B.VIEW.put('s', 'inside')\n"
        "    try: await asyncio.sleep(60)\n    finally: raise ValueError('cleanup')"
    )
    sent = kernel.send("go(body)")
    kernel.until_shown(sent, "inside")
    kernel.interrupt()
    assert kernel.wait(sent).traceback == ["KeyboardInterrupt: agent turn cancelled"]


def test_a_view_that_fails_does_not_lose_the_turn_and_is_said_at_its_end(kernel: Kernel) -> None:
    """The body runs to its end; nothing is repainted any more; the cell ends in one line."""
    kernel.must(
        "class Broken(Slots):\n    def flush(self):\n        self.flushes += 1; raise KeyError('paint')\n"
        "done = []\nasync def body(t):\n    await stream(t, 's', 30, .01); done.append(1)"
    )
    ran = kernel.run("turn(body, Broken())")
    assert ran.traceback == ["HostError: The turn ran to its end, but its output could not be shown (KeyError: 'paint')."]
    assert kernel.must("print(done, B.VIEW.flushes)") == "[1] 1\n"


def test_a_view_that_cannot_open_starts_no_turn(kernel: Kernel) -> None:
    kernel.must("class Shut(Slots):\n    def open(self, turn): raise RuntimeError('no display')\nSEEN.clear()")
    ran = kernel.run("turn(scripted(('call', lambda t: SEEN.append('ran'))), Shut())")
    assert "RuntimeError: no display" in ran.traceback[0]
    assert kernel.must("print(SEEN)") == "[]\n"


def test_a_posted_job_runs_and_after_the_cell_has_ended_it_is_refused(kernel: Kernel) -> None:
    kernel.must("kept = []\nasync def body(t):\n    kept.append(t); t.post(SEEN.append, 'posted')\nSEEN.clear(); go(body)")
    assert kernel.must("print(SEEN, kept[0].post(print))") == "['posted'] False\n"
    late = (
        "async def late(): await kept[0].on_main(print)\ntry: thread.get(get_ipython()).run(late)\nexcept Exception as error: print(error)"
    )
    assert kernel.must(late).startswith("The cell of this turn has ended")


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("('text', 3000, .01)", "s05 "),
        ("('ask',)", "waiting for you"),
        ("('python', 'print(\"inside\"); import time; time.sleep(60)')", "inside"),
        ("('python', 'print(\"inside\"); import asyncio; await asyncio.sleep(60)')", "inside"),
    ],
    ids=["streaming", "review", "synchronous tool", "awaiting tool"],
)
def test_a_kernel_shut_down_in_the_middle_of_a_turn_ends_soon(python: str, fresh: Callable[..., Kernel], body: str, seen: str) -> None:
    kernel = fresh(python)
    sent = kernel.send(f"go(scripted({body}))")
    kernel.until_shown(sent, seen)
    assert kernel.shutdown() < 20


def test_a_shutdown_request_alone_ends_the_turn(python: str, fresh: Callable[..., Kernel]) -> None:
    """Without the interrupt that managers send first."""
    kernel = fresh(python)
    sent = kernel.send("go(scripted(('ask',)))")
    kernel.until_shown(sent, "waiting for you")
    kernel.client.shutdown(restart=False)
    assert kernel.until_ended(timeout=20) == 0


def test_a_restarted_kernel_runs_turns_again(python: str, fresh: Callable[..., Kernel]) -> None:
    kernel = fresh(python)
    sent = kernel.send("go(scripted(('text', 3000, .01)))")
    kernel.until_shown(sent, "s05 ")
    kernel.shutdown(restart=True)
    kernel.must("import kernel_bodies as B\nfrom kernel_bodies import *")
    assert kernel.must("print(turn(scripted(('python', '1')))[0].text)") == "1\n\n"
