"""``python`` with ``where: "scratch"``: code beside the kernel, on copies, under the limits of the session."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hands import beyond_private, needs_a_sandbox
from scratching import SCRATCH, Scratched, gone_from, processes_in, python, ready, scratched

from plan_mode_nb.agent.tools import ToolCall, ToolRegistry
from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.sandbox.backends import Landlock, Missing
from plan_mode_nb.features.tools import kernel, scratch
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call

pytestmark = needs_a_sandbox
AT_LEAST = "[ran in a new scratch process; sandbox mode workspace-write, no network"


@pytest.fixture(scope="module")
def outside() -> Iterator[Path]:
    """A folder beside the workspace that is really outside it: not in a folder that confined programs have of their own."""
    folder = beyond_private()
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()


def test_code_works_on_copies_and_the_notebook_stays_as_it_is(tmp_path: Path) -> None:
    """Printed text, last value, several calls of one turn in one namespace; the person's list is the person's."""
    orders = [3, 1, 2]
    ran = scratched(
        tmp_path / "ws",
        [python("orders.sort()\nprint('sorted')\norders", "orders"), python("total = sum(orders)\ntotal")],
        variables={"orders": orders},
    )
    assert ran.texts[0].startswith("sorted\n[1, 2, 3]\n[ran in a new scratch process, with copies of orders; sandbox mode workspace-write")
    assert ran.texts[1].startswith("6\n[ran in this turn's scratch process; sandbox mode workspace-write")
    assert orders == [3, 1, 2]
    assert ran.shell.variables == {"orders": orders}
    assert ran.shell.ran == []


def test_nobody_is_asked_and_the_kernel_still_asks(tmp_path: Path) -> None:
    """One answer with both: only the call in the kernel has an approval."""
    ran = scratched(tmp_path / "ws", [python("1"), call("python", {"code": "x = 1"})], answers=["rejected"])
    assert [event.data["toolName"] for event in ran.bench.events("approval/asked")] == ["python"]
    assert ran.bench.events("approval/asked")[0].data["callId"] == ran.bench.events("tool/call")[1].data["callId"]
    assert ran.codes == [None, "APPROVAL_REJECTED"]


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
@pytest.mark.parametrize("policy", ["ask", "never"])
@pytest.mark.parametrize("planning", [False, True])
def test_under_every_mode_and_policy_it_runs_unasked_within_the_mode(mode: str, policy: str, planning: bool, outside: Path) -> None:
    """What it may write is what the mode allows; it is called confined only where it is; plan mode changes nothing."""
    root = outside / "ws"
    inside, beyond = root / "inside.txt", outside / "beyond.txt"
    code = (
        f"import pathlib\nfor path in {[str(inside), str(beyond)]!r}:\n    try:\n        pathlib.Path(path).write_text('x')\n"
        "    except OSError:\n        pass"
    )
    made = ready(root, [python(code)], mode=mode, policy=policy)
    if planning:
        made.bench.session.append(draft("plan/mode", {"active": True}))
    asyncio.run(made.bench.ask("go"))
    try:
        assert (inside.exists(), beyond.exists()) == {
            "read-only": (False, False),
            "workspace-write": (True, False),
            "danger-full-access": (True, True),
        }[mode]
        assert made.codes == [None]
        assert not made.bench.events("approval/asked")
        said = made.texts[0].rpartition("\n")[2]
        assert said.endswith("not confined: sandbox mode danger-full-access]") is (mode == "danger-full-access")
        assert (f"sandbox mode {mode}, no network" in said) is (mode != "danger-full-access")
    finally:
        inside.unlink(missing_ok=True)
        beyond.unlink(missing_ok=True)


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_where_nothing_confines_nothing_runs(mode: str, tmp_path: Path) -> None:
    """It fails closed, with a sentence that names the ways out."""
    ran = scratched(tmp_path / "ws", python("open('made', 'w')"), mode=mode, found=Missing("nothing here can confine a program"))
    assert ran.codes == ["SANDBOX_UNAVAILABLE"]
    assert "%sandbox danger-full-access" in ran.texts[0]
    assert not (tmp_path / "ws" / "made").exists()


def test_a_refusal_of_the_sandbox_is_told_with_the_way_that_asks(tmp_path: Path) -> None:
    """The model learns why it failed."""
    ran = scratched(tmp_path / "ws", python("open('made', 'w')"), mode="read-only")
    assert ran.codes == ["PYTHON_ERROR"]
    assert '[the sandbox seems to have refused something ("Read-only file system"); where: "kernel" runs without it' in ran.texts[0]


def test_secrets_and_connection_files_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the environment, nor in the runtime folder, nor through the environment of the kernel's process."""
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret-of-the-person")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    (runtime / "kernel-1.json").write_text('{"key": "s3cret-of-the-person"}')
    code = (
        f"import os, pathlib\nprint(os.environ.get('SERVICE_TOKEN'), list(pathlib.Path({str(runtime)!r}).glob('*')))\n"
        f"print(os.path.exists('/proc/{os.getpid()}/environ') and b's3cret' in open('/proc/{os.getpid()}/environ', 'rb').read())"
    )
    assert scratched(tmp_path / "ws", python(code)).said() == "None []\nFalse"


def test_a_traceback_reads_like_one_of_the_kernel(tmp_path: Path) -> None:
    """The code's own lines, no file of ours, no execution count."""
    ran = scratched(tmp_path / "ws", python("def half(x):\n    return x / 2\nprint('before')\nhalf('seven')"))
    assert ran.codes == ["PYTHON_ERROR"]
    assert ran.texts[0].startswith("before\n---")
    assert "Cell In[N], line 4\n" in ran.texts[0]
    assert "TypeError: unsupported operand" in ran.texts[0]
    assert "plan_mode_nb" not in ran.texts[0]


def test_magics_await_and_shell_lines_work_and_the_keyboard_does_not(tmp_path: Path) -> None:
    """As in a cell."""
    code = "import asyncio\nawait asyncio.sleep(0)\n!echo from the shell\n%pwd"
    ran = scratched(tmp_path / "ws", [python(code), python("input('name?')"), python("exit()"), python("1 + 1")])
    assert ran.said(0) == f"from the shell\n'{tmp_path / 'ws'}'"
    assert ran.codes == [None, "PYTHON_ERROR", "PYTHON_ERROR", None]
    assert ran.said(3) == "2"


def test_figures_come_back_as_images_and_nothing_else_does(tmp_path: Path) -> None:
    """A PNG is an image of the result and is displayed from the log; HTML and drawings are text, since a page would run them."""
    code = (
        "import struct, zlib\nfrom IPython.display import HTML, Image, SVG, display\n"
        "def chunk(kind, data):\n    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
        "head = struct.pack('>IIBBBBB', 3, 2, 8, 0, 0, 0, 0)\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(bytes(8))) + chunk(b'IEND', b'')\n"
        "display(Image(png), HTML('<script>alert(1)</script>'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))"
    )
    ran = scratched(tmp_path / "ws", python(code))
    text, image = ran.blocks[0]["content"]
    assert (image["type"], image["attachment"]["width"], image["attachment"]["height"]) == ("image", 3, 2)
    assert "<script>" not in json.dumps(ran.blocks)
    assert ran.bench.events("tool/result")[0].data["meta"] == kernel.FIGURES
    assert "HTML object" in text["text"]


def test_a_matplotlib_figure_is_drawn_without_a_magic(tmp_path: Path) -> None:
    """As in a kernel; and no word of folders that it could not write."""
    ran = scratched(tmp_path / "ws", python("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()", timeout=300))
    assert [block["type"] for block in ran.blocks[0]["content"]] == ["text", "image"]
    assert ran.said() == "<Figure size 640x480 with 1 Axes>"


class Stubborn:
    """Says no to being copied."""

    def __reduce__(self) -> Any:
        raise SystemExit("not me")


def test_what_cannot_be_copied_is_named_in_one_sentence_and_nothing_runs(tmp_path: Path) -> None:
    """Missing, unpicklable, defined in the notebook, too strange: each with its reason; the others are not handed over either."""

    def defined() -> None:
        """In a notebook."""

    defined.__module__ = "__main__"
    defined.__qualname__ = "defined"
    variables = {"orders": [1], "lines": (x for x in ()), "lock": threading.Lock(), "clean": defined, "odd": Stubborn()}
    ran = scratched(tmp_path / "ws", python("open('made', 'w')", "order", *variables), variables=variables)
    (text,) = ran.texts
    assert ran.codes == ["NOT_COPIED"]
    assert "\n" not in text
    assert text.startswith(
        "Error: nothing ran, because not everything could be copied: order is no variable of the notebook; did you mean orders?;"
    )
    for name, why in {
        "lines": "(generator) cannot be copied",
        "lock": "cannot be copied: cannot pickle",
        "clean": "needs the function defined, which only the notebook defines",
        "odd": "cannot be copied: not me",
    }.items():
        assert f"{name} " in text
        assert why in text
    assert "orders " not in text.partition("; did you mean")[2].partition(";")[0]
    assert not (tmp_path / "ws" / "made").exists()


def test_frames_and_arrays_are_copied_whole(tmp_path: Path) -> None:
    """Types, index and all."""
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2026-03-02", "2026-03-03"]), "amount": [1.5, 2.5]}, index=["a", "b"])
    ran = scratched(
        tmp_path / "ws",
        python(
            "print(frame.dtypes.astype(str).to_list(), frame.loc['b', 'amount'], matrix.sum(), matrix.shape)",
            "frame",
            "matrix",
            timeout=300,
        ),
        variables={"frame": frame, "matrix": numpy.arange(6).reshape(2, 3)},
    )
    dtype = str(frame.dtypes["day"])
    assert ran.said() == f"['{dtype}', 'float64'] 2.5 15 (2, 3)"


def test_what_comes_back_runs_nothing_here(tmp_path: Path) -> None:
    """The code speaks on the answer's own pipe: lines that are no answer, a pickle, too much; the kernel's side loads none of it."""
    trap = tmp_path / "trap"
    find = (
        "import glob, os\nfor path in glob.glob('/proc/self/fd/*'):\n    try:\n        os.write(int(path.rsplit('/', 1)[1]), DATA)\n"
        "    except OSError:\n        pass"
    )
    pickled = f"b'cos\\nsystem\\n(S\"touch {trap}\"\\ntR.\\n'"
    forged = 'b\'{"run": 1, "status": "ok", "text": 7, "images": [[1, 2], ["image/png", "AAAA"], {}]}\\n\''
    ran = scratched(
        tmp_path / "ws",
        *[[python(find.replace("DATA", data))] for data in (pickled, "b'[1]\\n'", forged, "b'\\xff\\n'")],
    )
    assert ran.codes[0] == "SCRATCH_DIED"
    assert "it sent something that is no answer" in ran.texts[0]
    assert ran.codes[1] == "SCRATCH_DIED"
    assert ran.codes[3] == "SCRATCH_DIED"
    assert "[figure 1 (image/png), left out: it is not a PNG, JPEG, GIF or WebP image]" in ran.texts[2]
    assert not trap.exists()


def test_a_dead_process_is_told_and_the_next_call_has_another(tmp_path: Path) -> None:
    """Ended by itself, by a signal, and by the system: the namespace is gone, and it says so."""
    ran = scratched(
        tmp_path / "ws",
        [python("x = 1\nimport os\nos._exit(3)"), python("'x' in globals()"), python("import ctypes\nctypes.string_at(0)"), python("2")],
    )
    assert ran.codes == ["SCRATCH_DIED", None, "SCRATCH_DIED", None]
    assert "(exit status 3); what was made in it is gone, and the next call starts another]" in ran.texts[0]
    assert "(ended by SIGSEGV)" in ran.texts[2]
    assert ran.texts[1].startswith("False\n[ran in a new scratch process")


def test_a_fork_that_comes_back_answers_once(tmp_path: Path) -> None:
    """The child's output is there, its copy of the process is not."""
    ran = scratched(tmp_path / "ws", [python("import os, sys\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)"), python("1 + 1")])
    assert ran.codes == [None, None]
    assert ran.said(1) == "2"


def test_too_much_memory_is_an_error_of_the_code(tmp_path: Path) -> None:
    """The process and its variables live on."""
    ran = scratched(tmp_path / "ws", [python("x = 5\nbytearray(1 << 50)"), python("x")])
    assert "MemoryError" in ran.texts[0]
    assert ran.said(1) == "5"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an interrupt takes its time."""
    monkeypatch.setattr(scratch, "GRACE_S", 60.0)


def test_code_out_of_time_is_interrupted_and_what_it_made_stays(tmp_path: Path, patient: None) -> None:
    """Waiting, computing, awaiting: the text so far, no traceback frames of ours, and the namespace."""
    loops = ["import time\ntime.sleep(600)", "while True:\n    pass", "import asyncio\nawait asyncio.sleep(600)"]
    ran = scratched(
        tmp_path / "ws", [*[python(f"made = {n}\nprint('begun')\n{loop}", timeout=2) for n, loop in enumerate(loops)], python("made")]
    )
    assert ran.codes == ["PYTHON_TIMEOUT"] * 3 + [None]
    assert all(text.startswith("begun\n") and "[ended after 2 s, before it had finished;" in text for text in ran.texts[:3])
    assert all("plan_mode_nb" not in text for text in ran.texts)
    assert ran.said(3) == "2"


def test_code_that_cannot_be_interrupted_is_ended_with_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile pattern holds the interpreter; a signal is ignored."""
    monkeypatch.setattr(scratch, "GRACE_S", 0.5)
    stuck = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True:\n    pass"
    ran = scratched(tmp_path / "ws", [python(stuck, timeout=1), python("'stuck' in globals()")])
    assert ran.codes == ["PYTHON_TIMEOUT", None]
    assert "[the scratch process had to be ended; what was made in it is gone" in ran.texts[0]
    assert ran.said(1) == "False"


async def stopped_while(made: Scratched, file: Path) -> None:
    """Run the turn until code has made ``file``, then stop it."""
    turn = asyncio.ensure_future(made.bench.ask("go"))
    async with asyncio.timeout(60):
        while not file.exists():
            await asyncio.sleep(0.01)
    made.bench.agent.cancel({"kind": "user"})
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await gone_from(file.parent)


def test_stop_keeps_what_was_done_and_leaves_no_process(tmp_path: Path, patient: None) -> None:
    """The result holds the text so far, and the process is gone with the turn."""
    file = tmp_path / "ws" / "begun"
    made = ready(tmp_path / "ws", [python(f"print('half')\nopen({str(file)!r}, 'w').close()\nimport time\ntime.sleep(600)"), python("1")])
    asyncio.run(stopped_while(made, file))
    assert made.texts[0].startswith("half\n")
    assert kernel.INTERRUPTED_LINE in made.texts[0]
    assert made.codes == ["PYTHON_INTERRUPTED", "TOOL_ABORTED_BEFORE_DISPATCH"]


def test_a_turn_leaves_no_process_and_the_next_has_one_of_its_own(tmp_path: Path) -> None:
    """What was made is gone with the turn."""

    async def main() -> Scratched:
        made = ready(tmp_path / "ws", python("x = 1"), "Done.", python("'x' in globals()"))
        await made.bench.ask("go")
        assert await gone_from(tmp_path / "ws")
        await made.bench.ask("again")
        return made

    assert asyncio.run(main()).said(1) == "False"


def test_taking_the_tool_out_ends_its_processes(tmp_path: Path) -> None:
    """In the middle of a turn, too."""

    async def main() -> None:
        made = ready(tmp_path / "ws", python("x = 1"), python("x"))
        undone: list[bool] = []
        made.bench.session.subscribe(
            lambda batch: undone.append(True) if any(event.type == "tool/result" for event in batch) and not undone else None
        )
        turn = asyncio.ensure_future(made.bench.ask("go"))
        async with asyncio.timeout(60):
            while not undone:
                await asyncio.sleep(0)
        for undo in reversed(made.bench.undos):
            undo()
        assert await gone_from(tmp_path / "ws")
        await turn

    asyncio.run(main())


def test_a_stricter_mode_in_the_middle_of_a_turn_holds_at_once(tmp_path: Path) -> None:
    """The process of the wider mode is not used again, and the model is told what that costs."""
    made = ready(tmp_path / "ws", python("x = 1"), python("open('made', 'w')", "held"), variables={"held": 1})
    namespace = made.shell.namespace

    async def stricter() -> Any:
        made.bench.session.append(draft("sandbox/mode", {"mode": "read-only"}))
        return await namespace()

    made.shell.namespace = stricter  # type: ignore[method-assign]
    asyncio.run(made.bench.ask("go"))
    assert "Read-only file system" in made.texts[1]
    assert "[the sandbox mode has changed, so this is another scratch process, without what was made before]" in made.texts[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"variables": ["x"]},
        {"timeout": 3},
        {"where": "elsewhere"},
        {"where": "scratch", "timeout": 0},
        {"where": "scratch", "variables": "x"},
    ],
)
def test_arguments_that_belong_to_the_other_place_are_refused(arguments: dict[str, Any], tmp_path: Path) -> None:
    """One sentence; nothing runs, nobody is asked."""
    ran = scratched(tmp_path / "ws", call("python", json.dumps({"code": "1", **arguments})))
    assert ran.codes == ["BAD_ARGUMENTS"]
    assert not ran.bench.events("approval/asked")


def test_where_there_is_no_such_program_it_says_what_to_use(tmp_path: Path) -> None:
    """A composition without one, and one that does not start."""
    assert scratched(tmp_path / "ws", python("1"), program=()).codes == ["NO_SCRATCH"]
    ran = scratched(tmp_path / "ws", python("1"), program=(sys.executable, "-c", "raise SystemExit('out of order')"))
    assert ran.codes == ["NOT_STARTED"]
    assert "could not be started (exit status 1: out of order)" in ran.texts[0]


def test_a_secret_that_was_copied_is_not_shown(tmp_path: Path) -> None:
    """Output is cleaned as everywhere."""
    ran = scratched(
        tmp_path / "ws", python("print(held)", "held"), variables={"held": "s3cret-of-ada"}, environ={"SERVICE_TOKEN": "s3cret-of-ada"}
    )
    assert ran.said() == "[redacted:SERVICE_TOKEN]"
    assert "s3cret-of-ada" not in "".join(ran.bench.session.lines)


def test_the_tool_reads_the_same_in_both_plan_states_and_under_every_mode(tmp_path: Path) -> None:
    """Its bytes depend on nothing."""
    schemas = {json.dumps(ready(tmp_path / "ws", mode=mode).bench.seams.tools.schemas()) for mode in ("read-only", "danger-full-access")}
    assert len(schemas) == 1
    assert "danger" not in schemas.pop()


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        ('{"code": "1"}', "rebuilds"),
        ('{"code": "1", "where": "kernel"}', "rebuilds"),
        ('{"code": "1", "where": "scratch"}', "played"),
        ("[", "rebuilds"),
    ],
)
def test_a_replay_runs_again_only_what_the_kernel_ran(arguments: str, how: str, tmp_path: Path) -> None:
    """Later cells need what code made there, and nothing of the scratch process."""
    tools: ToolRegistry = ready(tmp_path / "ws").bench.seams.tools
    python_tool, variables = tools.get("python"), tools.get("variables")
    assert python_tool is not None
    assert variables is not None
    assert python_tool.replayed(arguments) == how
    assert variables.replayed(arguments) == "played"


def test_the_process_ends_when_the_kernel_is_killed(tmp_path: Path) -> None:
    """No process of a killed kernel stays, busy or idle."""
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\nfrom scratching import ready, python\n"
        "asyncio.run(ready(Path(sys.argv[1]), python('open(\"begun\", \"w\").close()\\nwhile True: pass')).bench.ask('go'))"
    )

    async def main() -> None:
        folder = tmp_path / "ws"
        folder.mkdir()
        running = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(folder), str(Path(__file__).parent))
        async with asyncio.timeout(60):
            while not (folder / "begun").exists():
                await asyncio.sleep(0.01)
        assert processes_in(folder)
        running.send_signal(signal.SIGKILL)
        await running.wait()
        assert await gone_from(folder)

    asyncio.run(main())


def test_much_text_and_many_figures_are_cut_where_they_are_made(tmp_path: Path) -> None:
    """The process lives on, and the result says what is missing."""
    code = (
        "import os, struct, zlib\nfrom IPython.display import Image, display\n"
        "def chunk(kind, data):\n    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
        "head = struct.pack('>IIBBBBB', 1000, 1000, 8, 2, 0, 0, 0)\n"
        "body = chunk(b'IDAT', zlib.compress(os.urandom(3_001_000), 0)) + chunk(b'IEND', b'')\n"
        "for _ in range(5):\n    display(Image(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head) + body))\nprint('x' * 9_000_000)"
    )
    ran = scratched(tmp_path / "ws", [python("x = 5"), python(code), python("x")])
    assert ran.codes == [None, None, None]
    assert "[3 more figures, which were too many or too large to be sent]" in ran.texts[1]
    assert len(ran.blocks[1]["content"]) == 3
    assert len(ran.texts[1]) <= 30_000
    assert ran.said(2) == "5"


def test_calls_made_at_once_run_one_after_another(tmp_path: Path) -> None:
    """Each gets its own answer, from one process."""

    async def main() -> list[str]:
        made = ready(tmp_path / "ws")
        arguments = [json.dumps({"code": f"{n} * 10", "where": "scratch"}) for n in range(4)]
        calls = [ToolCall("python", each, f"call-{n}", 1, 1, made.bench.agent) for n, each in enumerate(arguments)]
        outcomes = await asyncio.gather(*map(made.bench.seams.tools.run, calls))
        for undo in reversed(made.bench.undos):
            undo()
        assert await gone_from(tmp_path / "ws")
        return [str(outcome.result.content[0]["text"]) for outcome in outcomes]

    texts = asyncio.run(main())
    assert [text.partition("\n")[0] for text in texts] == ["0", "10", "20", "30"]
    assert sum("a new scratch process" in text for text in texts) == 1


def test_under_landlock_it_is_called_partial_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second backend confines it too; the folder of its own goes with the process."""
    abi = backends._landlock()
    if abi is None:
        pytest.skip("landlock is not here, or does not confine")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os\nopen(os.path.join(os.environ['TMPDIR'], 'own'), 'w').close()\nprint('written')\nopen('made', 'w')"
    ran = scratched(tmp_path / "ws", python(code), mode="read-only", found=Landlock(abi))
    assert ran.texts[0].startswith("written\n")
    assert "Permission denied" in ran.texts[0]
    assert ran.texts[0].endswith("[ran in a new scratch process; sandbox mode read-only, no network, partial enforcement]")
    assert not (tmp_path / "ws" / "made").exists()
    assert list(tmp_path.glob("sandbox-*")) == []


def test_a_process_whose_loop_has_ended_is_let_go_and_another_is_started(tmp_path: Path) -> None:
    """The agent's thread may have to be replaced, in the middle of a turn too."""
    made = ready(tmp_path / "ws")

    async def run(turn: int) -> str:
        arguments = json.dumps({"code": "x = globals().get('x', 0) + 1\nx", "where": "scratch"})
        outcome = await made.bench.seams.tools.run(ToolCall("python", arguments, f"call-{turn}", turn, 1, made.bench.agent))
        return str(outcome.result.content[0]["text"])

    texts = [asyncio.run(run(turn)) for turn in (1, 1, 2)]
    assert [text.partition("\n")[0] for text in texts] == ["1", "1", "1"]

    async def close() -> bool:
        for undo in reversed(made.bench.undos):
            undo()
        return await gone_from(tmp_path / "ws")

    assert asyncio.run(close())


def test_a_stop_before_the_code_began_says_that_nothing_ran(tmp_path: Path) -> None:
    """While the copies are made, and while the process starts."""

    async def main(program: list[str], held: bool) -> Scratched:
        reached = asyncio.Event()
        made = ready(tmp_path / "ws", python("open('made', 'w')", "held"), variables={"held": 1}, program=program)
        namespace = made.shell.namespace

        async def reaches() -> Any:
            reached.set()
            if held:
                await asyncio.Event().wait()
            return await namespace()

        made.shell.namespace = reaches  # type: ignore[method-assign]
        turn = asyncio.ensure_future(made.bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 60)
        async with asyncio.timeout(60):
            while not held and not processes_in(tmp_path / "ws"):
                await asyncio.sleep(0.01)
        made.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await gone_from(tmp_path / "ws")
        return made

    never_ready = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    for held, program in ((True, list(SCRATCH)), (False, never_ready)):
        made = asyncio.run(main(program, held))
        assert made.codes == ["PYTHON_INTERRUPTED"]
        assert made.texts == ["Error: the turn was stopped before the code of python began; it did not run"]
        assert not (tmp_path / "ws" / "made").exists()
