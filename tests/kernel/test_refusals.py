"""Where a turn cannot run, it says so in one line, before anything happened."""

from __future__ import annotations

import pytest

from .driver import Cell, Kernel, NoSubshells

pytestmark = pytest.mark.kernel

CAPTURED = "HostError: A turn's cards cannot be shown under %%capture; remove it and run the cell again."


def assert_refused(cell: Cell, line: str) -> None:
    assert (cell.ename, cell.traceback) == ("HostError", [line])
    assert cell.shown == []


def test_a_turn_inside_a_tools_code_is_refused_and_the_outer_turn_goes_on(kernel: Kernel) -> None:
    inner = "import kernel_bodies as B\\nB.turn(B.scripted((\\'text\\', 1, .01)))"
    ran = kernel.run(f"print(turn(scripted(('python', '{inner}'), ('text', 3, .01)))[0].text)")
    assert ran.text == "HostError: An agent turn is already running in this kernel; wait until its cell has ended.\n"
    assert ran.shown[-1] == "s10 s11 s12"


def test_a_turn_inside_a_widgets_callback_is_refused(kernel: Kernel) -> None:
    kernel.must(
        "import ipywidgets\nb = ipywidgets.Button(description='Inner')\nsaid = []\n"
        "def inner(_):\n    try: turn(scripted(('text', 1, .01)), Slots())\n    except Exception as error: said.append(str(error))\n"
        "b.on_click(inner)"
    )
    sent = kernel.send("go(scripted(('ask',)))")
    kernel.until_shown(sent, "waiting for you")
    kernel.handled(kernel.click("Inner"))
    kernel.click("Approve")
    assert kernel.wait(sent).status == "ok"
    said = kernel.must("print(said)")
    assert "already running" in said or "without a subshell" in said


@pytest.mark.parametrize(
    "code",
    [
        "%%capture\ngo(scripted(('text', 1, .01)))",
        "%%capture --no-display\ngo(scripted(('text', 1, .01)))",
        "from IPython.utils.capture import capture_output\nwith capture_output(): go(scripted(('text', 1, .01)))",
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): go(scripted(('text', 1, .01)))",
    ],
)
def test_a_turn_whose_output_would_be_captured_is_refused(kernel: Kernel, code: str) -> None:
    assert_refused(kernel.run(code), CAPTURED)


def test_a_turn_in_a_subshell_is_refused(kernel: Kernel) -> None:
    try:
        sent = kernel.execute_in_subshell("go(scripted(('text', 1, .01)))")
    except NoSubshells:
        pytest.skip("ipykernel 6 has no subshells")
    line = "HostError: Agent turns run in the kernel's main shell; run this cell without a subshell."
    assert_refused(kernel.wait(sent), line)


def test_a_turn_in_a_thread_is_refused(kernel: Kernel) -> None:
    code = (
        "def inner():\n    try: turn(scripted(('text', 1, .01)))\n    except Exception as error: print(error)\n"
        "t = threading.Thread(target=inner); t.start(); t.join()"
    )
    assert kernel.must(code) == "Agent turns run in the kernel's main shell; run this cell without a subshell.\n"


def test_a_kernel_of_unknown_layout_is_refused(kernel: Kernel) -> None:
    kernel.must("handlers = get_ipython().kernel.shell_handlers; kept = handlers.pop('comm_info_request')")
    ran = kernel.run("go(scripted(('text', 1, .01)))")
    kernel.must("handlers['comm_info_request'] = kept")
    line = (
        "HostError: This kernel is not built like ipykernel 6.29 to 7.x, so a cell cannot wait in it; "
        "install ipykernel>=6.29,<8 and restart it."
    )
    assert_refused(ran, line)
    assert kernel.must("print(turn(scripted(('python', '1')))[0].text)") == "1\n\n"
