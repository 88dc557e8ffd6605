"""What a piece of the agent's Python does and what is recorded of it, on every kernel."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import pytest

from .driver import Kernel

pytestmark = pytest.mark.kernel

KEYBOARD = "Code that the agent runs cannot read from the keyboard; put the value into the code, or ask the person."
DEBUGGER = "Code that the agent runs cannot stop in a debugger; print what you want to see instead."
EXIT = "Code that the agent runs cannot end the kernel; the person can restart it."


@dataclass(frozen=True)
class Probe:
    """``code`` ends with ``status`` and this ``text`` (None: not compared), holding ``has``, with displays of these mimes."""

    code: str
    text: str | None = None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    status: str = "ok"
    mimes: tuple[str, ...] = ()


PROBES: dict[str, Probe] = {
    "an expression": Probe("x = 41\nx + 1", "42\n"),
    "a semicolon hides the value": Probe("5 + 5;", ""),
    "a semicolon and a comment": Probe("5 + 5;  # quiet", ""),
    "None shows nothing": Probe("None", ""),
    "text and value in order": Probe("print('a')\n'b'", "a\n'b'\n"),
    "text without a newline before a value": Probe("print('a', end='')\n1", "a\n1\n"),
    "both streams in order": Probe("import sys\nprint('out'); print('err', file=sys.stderr); print('out')", "out\nerr\nout\n"),
    "an error": Probe(
        "def f():\n    return 1/0\nprint('before')\nf()",
        status="error",
        has=("before\n---", "ZeroDivisionError: division by zero", "Cell In[N], line 4", "----> 4 f()"),
        lacks=("\x1b", "/tmp", "run_cell"),
    ),
    "a syntax error": Probe("def f(:\n    1", status="error", has=("Cell In[N], line 1", "SyntaxError: "), lacks=("\x1b",)),
    "an indentation error": Probe("if 1:\npass", status="error", has=("IndentationError",)),
    "an error group": Probe("raise ExceptionGroup('two', [ValueError(1), KeyError(2)])", status="error", has=("ExceptionGroup",)),
    "an error in a displayed value": Probe(
        "class Bad:\n    def _repr_html_(self): raise ValueError('no html')\n    def __repr__(self): return 'bad'\nBad()",
        has=("bad\n", "no html"),
    ),
    "a line magic": Probe("%time sum(range(10))", has=("Wall time", "45\n")),
    "a cell magic": Probe("%%time\ny = 3", has=("Wall time",)),
    "capture inside": Probe("%%capture cap\nprint('x'); 5", ""),
    "a script magic": Probe("%%bash\necho from bash", "from bash\n"),
    "an unknown magic": Probe("%nosuchmagic", status="error", has=("UsageError: Line magic function `%nosuchmagic` not found.",)),
    "a shell command": Probe("!echo hi; echo err >&2", has=("hi", "err")),
    "a shell command that would read": Probe("!cat; echo done", has=("done",)),
    "a shell command's lines": Probe("lines = !echo one two\nlines", has=("one two",)),
    "os.system before and after Python": Probe(
        "import os\nos.system('echo first')\nprint('second')\nos.system('echo third');", "first\nsecond\nthird\n"
    ),
    "a subprocess": Probe("import subprocess\nsubprocess.run(['echo', 'from sub']); print('py')", "from sub\npy\n"),
    "a subprocess given sys.stdout": Probe(
        "import subprocess, sys\nsubprocess.run(['echo', 'x'], stdout=sys.stdout, check=True); None", "x\n"
    ),
    "bytes to file descriptor 2": Probe("import os\nos.write(2, b'raw\\n');", "raw\n"),
    "C's own buffer": Probe("import ctypes\nctypes.CDLL(None).puts(b'from C');", "from C\n"),
    "top-level await": Probe("import asyncio\nawait asyncio.sleep(.01)\n'awaited'", "'awaited'\n"),
    "gather": Probe(
        "import asyncio\nasync def g():\n    return await asyncio.gather(*[asyncio.sleep(.01, i) for i in range(3)])\nawait g()",
        "[0, 1, 2]\n",
    ),
    "an error after await": Probe("import asyncio\nawait asyncio.sleep(0)\n1/0", status="error", has=("ZeroDivisionError", "----> 3 1/0")),
    "an error of cancellation that is the code's own": Probe(
        "import asyncio\nraise asyncio.CancelledError('mine')", status="error", has=("CancelledError: mine",)
    ),
    "exit()": Probe("exit()", status="error", has=(EXIT,)),
    "quit()": Probe("quit()", status="error", has=(EXIT,)),
    "sys.exit()": Probe("import sys\nprint(1)\nsys.exit(2)", "1\nSystemExit: 2", status="error"),
    "input()": Probe("input('? ')", status="error", has=(f"RuntimeError: {KEYBOARD}",)),
    "getpass": Probe("import getpass\ngetpass.getpass()", status="error", has=(KEYBOARD,)),
    "breakpoint()": Probe("breakpoint()", status="error", has=(DEBUGGER,)),
    "pdb.set_trace()": Probe("import pdb\npdb.set_trace()\nprint('on')", status="error", has=(KEYBOARD,)),
    "%debug": Probe("%debug", has=(DEBUGGER,)),
    "sys.stdin": Probe("import sys\nprint(repr(sys.stdin.readline()))", "''\n"),
    "help": Probe("len?", has=("Return the number of items in a container.",), lacks=("\x1b",)),
    "source of a function": Probe("def f(): 'doc of f'\nf?", has=("doc of f",)),
    "next input": Probe("get_ipython().set_next_input('zzz')", ""),
    "a figure": Probe(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]); print('done')",
        "done\n<Figure size 640x480 with 1 Axes>\n",
        mimes=("image/png",),
    ),
    "figures between text": Probe(
        "import matplotlib.pyplot as plt\nplt.plot([1]); plt.show(); print('after'); plt.plot([2]);",
        "<Figure size 640x480 with 1 Axes>\nafter\n<Figure size 640x480 with 1 Axes>\n",
        mimes=("image/png", "image/png"),
    ),
    "a widget is its text": Probe("import ipywidgets\nipywidgets.IntSlider(value=3)", has=("IntSlider(value=3",), mimes=()),
    "a display updated": Probe(
        "from IPython.display import display\nh = display('a', display_id=True); h.update('b'); display('c')", "'b'\n'c'\n"
    ),
    "html": Probe("from IPython.display import HTML\nHTML('<b>x</b>')", has=("IPython.core.display.HTML object",), mimes=("text/html",)),
    "an object that displays itself": Probe("class D:\n    def _ipython_display_(self): print('myself')\nD()", "myself\n"),
    "clear_output": Probe("from IPython.display import clear_output\nprint(1); clear_output(); print(2)", "2\n"),
    "clear_output(wait=True)": Probe(
        "from IPython.display import clear_output\nfor i in range(3): print(i); clear_output(wait=True)", "2\n"
    ),
    "a progress line": Probe("for i in range(3): print(f'\\r{i}', end='')", "2"),
    "colours": Probe("print('\\x1b[31mred\\x1b[0m')", "red\n"),
    "another thread prints": Probe(
        "import threading\nt = threading.Thread(target=lambda: print('from thread')); t.start(); t.join()", "from thread\n"
    ),
    "a forked process prints": Probe(
        "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\nos.waitpid(pid, 0)\nprint('parent')",
        "child\nparent\n",
    ),
    "logging": Probe("import logging\nlogging.warning('warned')", has=("warned",)),
    "a warning names no process": Probe("import warnings\nwarnings.warn('ww')", has=("<cell>:2: UserWarning: ww",)),
    "%tb shows, and is not an error": Probe("%tb", has=("Traceback",), status="ok"),
    "a future import": Probe("from __future__ import annotations\nx: int = 3\nprint(1)", "1\n"),
    "no code": Probe("", ""),
    "only a comment": Probe("# nothing", ""),
    "a very long line": Probe("print('x' * 100_000)", "x" * 100_000 + "\n"),
    "bytes through sys.stdout.buffer": Probe("import sys\nsys.stdout.buffer.write(b'b\\n');", "b\n"),
    "stdout replaced and left so": Probe("import io, sys\nsys.stdout = io.StringIO()\nprint('lost')", ""),
}


def tool(kernel: Kernel, code: str) -> dict[str, Any]:
    """Run ``code`` as the agent's, in a turn; what was recorded, and what the cell published meanwhile."""
    kernel.must(f"code = {code!r}")
    ran = kernel.run("r = turn(scripted(('python', code)))[0]", timeout=30)
    assert ran.status == "ok", ran
    seen = kernel.must(
        "print(repr({'status': r.status, 'text': r.text, 'mimes': [[m for m in d.data if m != 'text/plain'] for d in r.displays]}))"
    )
    return {"cell": ran, **ast.literal_eval(seen)}


@pytest.mark.parametrize("name", PROBES)
def test_user_code(kernel: Kernel, name: str) -> None:
    """Each kind of code gives its record, the cell publishes the view's two slots and nothing else, and nothing is left behind."""
    probe = PROBES[name]
    got = tool(kernel, probe.code)
    assert got["status"] == probe.status, got["text"]
    if probe.text is not None:
        assert got["text"] == probe.text
    for part in probe.has:
        assert part in got["text"]
    for part in probe.lacks:
        assert part not in got["text"]
    assert [mimes[0] for mimes in got["mimes"]] == list(probe.mimes)
    assert set(got["cell"].kinds) <= {"display_data", "update_display_data"}
    assert len(got["cell"].outputs) == 2
    assert got["cell"].payload == []
    assert kernel.must("print(B.leftovers())") == "[]\n"


def test_the_persons_history_is_untouched(kernel: Kernel) -> None:
    """`_`, `Out`, `In`, the execution count and the recorded outputs go on as if only the person's cells had run."""
    kernel.run("123")
    before = kernel.must("print((_, sorted(Out), get_ipython().execution_count, len(In)))")
    tool(kernel, "7 * 7")
    tool(kernel, "1/0")
    after = kernel.must("print((_, sorted(Out), get_ipython().execution_count, len(In)))")
    (last, outs, count, length), (last2, outs2, count2, length2) = ast.literal_eval(before), ast.literal_eval(after)
    assert (last2, outs2) == (last, outs)
    # Each `tool` is three cells of the person's, and reading it is one.
    assert (count2 - count, length2 - length) == (7, 7)
    assert "7 * 7" not in kernel.must("print([line for line in In if line.startswith('7')])")


def test_the_value_of_the_persons_cell_still_shows_after_a_turn(kernel: Kernel) -> None:
    ran = kernel.run("go(scripted(('python', '7*7')))\n'outer'")
    assert ran.kinds[-1] == "execute_result"
    assert ran.shown[-1] == "'outer'"
    assert kernel.must("print(_)") == "outer\n"


def test_an_error_of_the_agents_code_does_not_end_the_persons_cell(kernel: Kernel) -> None:
    sent = [kernel.send("go(scripted(('python', '1/0'))); print('on')"), kernel.send("print('still')")]
    assert [kernel.wait(one).text for one in sent] == ["on\n", "still\n"]


def test_the_kernels_own_loop_still_runs_the_next_cells(kernel: Kernel) -> None:
    tool(kernel, "import asyncio\nawait asyncio.sleep(.01)")
    assert kernel.must("import asyncio; await asyncio.sleep(.01); print('ok')") == "ok\n"


def test_a_task_made_in_one_call_can_be_awaited_in_the_next(kernel: Kernel) -> None:
    tool(kernel, "import asyncio\nawait asyncio.sleep(0)\nT = asyncio.create_task(asyncio.sleep(.01, 'T'))")
    assert tool(kernel, "await T")["text"] == "'T'\n"


def test_what_belongs_to_the_kernels_loop_is_named_as_foreign(kernel: Kernel) -> None:
    kernel.must("import asyncio\nF = asyncio.get_running_loop().create_future()\nawait asyncio.sleep(0)")
    got = tool(kernel, "await F")
    assert got["status"] == "error"
    assert "cannot be awaited here; make them inside this call." in got["text"]


def test_a_display_of_an_earlier_cell_is_updated_where_it_is(kernel: Kernel) -> None:
    sent = kernel.send("h = display('old', display_id=True)")
    kernel.wait(sent)
    tool(kernel, "h.update('new')")
    assert kernel.cell(sent).shown == ["'new'"]


def test_a_logging_handler_made_before_is_recorded_and_one_made_inside_outlives_the_call(kernel: Kernel) -> None:
    kernel.must(
        "import logging, sys\nlog = logging.getLogger('probe'); log.propagate = False; log.handlers = [logging.StreamHandler(sys.stdout)]"
    )
    assert tool(kernel, "log.warning('recorded')")["text"] == "recorded\n"
    tool(kernel, "log.handlers = [logging.StreamHandler(sys.stdout)]")
    assert kernel.must("log.warning('in the cell')") == "in the cell\n"
    assert tool(kernel, "log.warning('recorded again')")["text"] == "recorded again\n"


def test_a_signal_handler_that_code_leaves_behind_does_not_disable_stop(kernel: Kernel) -> None:
    sent = kernel.send("go(scripted(('python', 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)'), ('text', 3000, .01)))")
    kernel.until_shown(sent, "s15 ")
    kernel.interrupt()
    assert kernel.wait(sent).ename == "KeyboardInterrupt"


def test_hooks_of_other_extensions_see_the_agents_cells(kernel: Kernel) -> None:
    """`pre_run_cell` and `post_run_cell` fire, so that reloaders and the like work; the person's cell keeps its result."""
    kernel.must("ran = []; hook = lambda info: ran.append(info.raw_cell); get_ipython().events.register('pre_run_cell', hook)")
    tool(kernel, "'agent'")
    assert "'agent'" in kernel.must("get_ipython().events.unregister('pre_run_cell', hook); print(ran)")


def test_many_calls_leave_no_file_and_no_thread_behind(kernel: Kernel) -> None:
    count = "import os; print((len(os.listdir('/proc/self/fd')), threading.active_count()))"
    tool(kernel, "print(1)")
    files, threads = ast.literal_eval(kernel.must(count))
    kernel.must("go(scripted(*[('python', 'print(1)')] * 20))")
    files_after, threads_after = ast.literal_eval(kernel.must(count))
    assert threads_after == threads
    # The kernel's own messaging opens and closes a few by itself; a leak would be twenty.
    assert files_after < files + 10


def test_the_recorder_bounds_what_it_keeps(kernel: Kernel) -> None:
    """Endless output keeps its beginning and its end, and says how much is missing."""
    got = tool(kernel, "for i in range(1200): print(str(i).rjust(9999))")
    assert got["text"].startswith("0".rjust(9999) + "\n")
    assert got["text"].endswith("1199".rjust(9999) + "\n")
    assert "characters left out]" in got["text"]
    assert len(got["text"]) < 8_100_000
