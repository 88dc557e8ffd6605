"""A turn in a cell: what is shown, in which order, and how it stops."""

from __future__ import annotations

import time

import pytest

from .driver import Cell, Kernel

pytestmark = pytest.mark.kernel

CANCELLED = "KeyboardInterrupt: agent turn cancelled"

# What the turn is doing when it is stopped, and what its output shows by then.
MOMENTS = {
    "streaming": ("go(scripted(('text', 3000, .01)))", "s05 "),
    "synchronous tool": (
        "go(scripted(('python', 'import time\\nfor i in range(600):\\n    print(i); time.sleep(.05)'), ('text', 9, .01)))",
        "\n3",
    ),
    "one long call": ("go(scripted(('python', 'print(\"inside\"); import time; time.sleep(30)')))", "inside"),
    "awaiting tool": ("go(scripted(('python', 'print(\"inside\"); import asyncio; await asyncio.sleep(30)')))", "inside"),
    "agent asleep": ("go(scripted(('sleep', 60)))", "sleeping"),
    "review waiting": ("go(scripted(('ask',)))", "waiting for you"),
}
# While synchronous code holds the main thread, Stop has to wait for it: only the kernel's stop button acts.
STOPPABLE = [moment for moment in MOMENTS if moment not in ("synchronous tool", "one long call")]


PUMPED = [moment for moment in STOPPABLE if moment != "awaiting tool"]


def has_received_all(kernel: Kernel) -> None:
    """Messages arrive in order, so an answered completion says that the cells sent before it are in the kernel.

    Jupyter aborts what it has received when a cell fails; what comes later runs.
    """
    kernel.reply(kernel.request("complete_request", {"code": "pri", "cursor_pos": 3}))


def assert_stopped(cell: Cell, pressed: float) -> None:
    assert (cell.status, cell.ename) == ("error", "KeyboardInterrupt")
    assert cell.traceback == [CANCELLED]
    assert cell.replied_at is not None
    assert cell.replied_at - pressed < 5  # what was interrupted would have taken 30 s
    assert "ended: interrupted" in cell.shown
    assert "log closed" in cell.shown


def assert_next_turn_works(kernel: Kernel) -> None:
    ran = kernel.run("print(turn(scripted(('text', 3, .01), ('python', '6*7')))[0].text)")
    assert (ran.status, ran.text) == ("ok", "42\n\n")
    assert kernel.must("print(B.leftovers())") == "[]\n"


def test_text_repaints_while_it_streams_at_most_ten_times_a_second_and_ends_complete(kernel: Kernel) -> None:
    ran = kernel.run("go(scripted(('text', 150, .01)))")
    assert ran.status == "ok"
    assert ran.shown == ["ended: completed", " ".join(f"s0{n}" for n in range(150))]
    updates = ran.kinds.count("update_display_data")
    assert ran.seconds is not None
    assert 5 <= updates <= ran.seconds * 10 + 3


def test_outputs_stand_in_the_order_in_which_they_began(kernel: Kernel) -> None:
    steps = "('text', 5, .01), ('python', 'print(1)\\n2'), ('text', 5, .01), ('python', 'print(3)')"
    ran = kernel.run(f"go(scripted({steps}))")
    assert ran.shown == ["ended: completed", "s00 s01 s02 s03 s04", "[ok] 1\n2\n", "s20 s21 s22 s23 s24", "[ok] 3\n"]


def test_the_output_of_running_code_is_shown_while_it_runs_up_to_its_last_line(kernel: Kernel) -> None:
    """A print just before a long call is seen during that call, not after it."""
    sent = kernel.send(
        "GATES['on'] = threading.Event()\n"
        "go(scripted(('python', 'print(1)\\nprint(2)\\nprint(3)\\nimport kernel_bodies\\n"
        'print(kernel_bodies.GATES["on"].wait(20))\')))'
    )
    kernel.until_shown(sent, "[running] 1\n2\n3\n")
    kernel.interrupt()
    assert kernel.wait(sent).status == "error"


def test_cells_queued_behind_a_turn_run_after_it_in_order(kernel: Kernel) -> None:
    kernel.must("order = []")
    sent = [kernel.send("go(scripted(('ask',))); order.append(1)"), *(kernel.send(f"order.append({n})") for n in (2, 3, 4))]
    kernel.until_shown(sent[0], "waiting for you")
    late = kernel.send("order.append(5)")
    kernel.click("Approve")
    assert [kernel.wait(one).status for one in (*sent, late)] == ["ok"] * 5
    assert kernel.must("print(order)") == "[1, 2, 3, 4, 5]\n"


def test_a_click_reaches_a_waiting_turn_and_its_message_gets_its_idle(kernel: Kernel) -> None:
    sent = kernel.send("print(turn(scripted(('ask',), ('text', 3, .01))))")
    kernel.until_shown(sent, "waiting for you")
    kernel.handled(kernel.click("Approve"))
    ran = kernel.wait(sent)
    assert (ran.status, ran.text) == ("ok", "['approved']\n")
    assert ran.shown == ["ended: completed", "approved", "s10 s11 s12"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_stop_button_of_the_kernel_ends_a_turn_and_aborts_the_queued_cells(kernel: Kernel, moment: str) -> None:
    """The cell ends in KeyboardInterrupt, the body has cleaned up, queued cells end as after any interrupt."""
    code, seen = MOMENTS[moment]
    kernel.must("SEEN.clear()")
    sent, queued = kernel.send(code), [kernel.send("print('ran')"), kernel.send("print('ran')")]
    kernel.until_shown(sent, seen)
    if moment in PUMPED:
        has_received_all(kernel)
    pressed = kernel.interrupt()
    assert_stopped(kernel.wait(sent), pressed)
    assert [kernel.wait(one).status for one in queued] == ["aborted", "aborted"]
    assert kernel.must("print([what for what, _ in SEEN].count('cancelled'))") == "1\n"
    assert_next_turn_works(kernel)


@pytest.mark.parametrize("moment", STOPPABLE)
def test_stop_on_the_card_is_the_stop_button_of_the_kernel(kernel: Kernel, moment: str) -> None:
    code, seen = MOMENTS[moment]
    sent, queued = kernel.send(code), kernel.send("print('ran')")
    kernel.until_shown(sent, seen)
    if moment in PUMPED:
        has_received_all(kernel)
    pressed = time.monotonic()
    kernel.click("Stop")
    assert_stopped(kernel.wait(sent), pressed)
    assert kernel.wait(queued).status == "aborted"
    assert_next_turn_works(kernel)


def test_an_interrupted_tool_reports_what_it_had_done(kernel: Kernel) -> None:
    """A job that main was running when the turn was cancelled gives its partial result to the cancelled caller."""
    kernel.must("SEEN.clear()")
    sent = kernel.send("go(scripted(('python', 'print(\"half\"); import time; time.sleep(30)')))")
    kernel.until_shown(sent, "half")
    kernel.interrupt()
    kernel.wait(sent)
    status, text = eval(kernel.must("print(repr(SEEN[0][1]))"))
    assert status == "interrupted"
    assert text.startswith("half\n")
    assert text.endswith("KeyboardInterrupt: ")
    assert "interrupts.py" not in text, "a line of ours, in the traceback of somebody's code"


def test_code_that_swallows_the_interrupt_is_stopped_by_pressing_again(kernel: Kernel) -> None:
    swallow = (
        "import time\\nfor i in range(3):\\n    try:\\n        print(i, flush=True); time.sleep(30)\\n"
        "    except BaseException: print(\\'swallowed\\')"
    )
    sent = kernel.send(f"go(scripted(('python', '{swallow}'), ('text', 500, .01)))")
    for number in range(3):
        kernel.until_shown(sent, f"{number}\n")
        kernel.interrupt()
    ran = kernel.wait(sent)
    assert ran.traceback == [CANCELLED]
    assert any(text.endswith("2\nswallowed\n") for text in ran.shown)
    assert_next_turn_works(kernel)


def test_synchronous_code_inside_awaiting_code_is_interrupted_at_once(kernel: Kernel) -> None:
    code = "import asyncio, time\\nawait asyncio.sleep(.01)\\nprint(\\'busy\\')\\ntime.sleep(30)"
    sent = kernel.send(f"go(scripted(('python', '{code}')))")
    kernel.until_shown(sent, "busy")
    pressed = kernel.interrupt()
    assert_stopped(kernel.wait(sent), pressed)
    assert_next_turn_works(kernel)


def test_widgets_stay_alive_while_the_tool_awaits(kernel: Kernel) -> None:
    code = (
        "import asyncio, ipywidgets\\nclicked = asyncio.Event()\\nb = ipywidgets.Button(description=\\'Go\\')\\n"
        "loop = asyncio.get_running_loop()\\nb.on_click(lambda _: loop.call_soon_threadsafe(clicked.set))\\n"
        "print(\\'ready\\')\\nawait clicked.wait()\\n\\'clicked\\'"
    )
    sent = kernel.send(f"print(turn(scripted(('python', '{code}')))[0].text)")
    kernel.until_shown(sent, "ready")
    kernel.click("Go")
    assert kernel.wait(sent).text == "ready\n'clicked'\n\n"


def test_a_hung_widget_callback_can_be_interrupted(kernel: Kernel) -> None:
    """Where comm messages run on the main thread, the callback itself ends; in a subshell (7.0 to 7.3), only the turn can."""
    kernel.must(
        "import ipywidgets, time\nhang = True\nb = ipywidgets.Button(description='Hang')\n"
        "def stuck(_):\n    print('stuck', flush=True)\n    end = time.monotonic() + 20\n"
        "    while hang and time.monotonic() < end: pass\n"
        "b.on_click(stuck)"
    )
    sent = kernel.send("go(scripted(('text', 3000, .01)))")
    kernel.until_shown(sent, "s05 ")
    kernel.click("Hang")
    kernel.until_printed("stuck")
    pressed = kernel.interrupt()
    assert_stopped(kernel.wait(sent), pressed)
    kernel.must("hang = False")
    assert_next_turn_works(kernel)
