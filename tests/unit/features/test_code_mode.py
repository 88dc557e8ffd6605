"""``run_code``: one confined program whose functions are the agent's tools; every call that it makes is a call like any."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hands import Hands, needs_a_sandbox, ready

from plan_mode_nb.agent.dispatch import call_inside
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, ToolCall, ToolError, ToolResult, text_result
from plan_mode_nb.features import code_mode, redaction, todo
from plan_mode_nb.features.code_mode import program, tool
from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.sandbox.backends import Missing
from plan_mode_nb.features.tools import files
from plan_mode_nb.log.messages import text_block
from plan_mode_nb.render.turn_view import render_turn

pytestmark = needs_a_sandbox
Add = Callable[[Seams], Undo | None]


def programs(root: Path, *codes: str | dict[str, Any], add: Add = lambda seams: None, **how: Any) -> Hands:
    """One turn with these programs, a step each. ``add``: registers more tools; ``how``: as for `ready`."""
    calls = [("run_code", {"code": code} if isinstance(code, str) else code) for code in codes]
    made = ready(root, *calls, **how)
    files.install(made.bench.seams, root)
    todo.install(made.bench.seams)
    add(made.bench.seams)
    code_mode.install(made.bench.seams)
    return made


def ran(root: Path, *codes: str | dict[str, Any], **more: Any) -> Hands:
    made = programs(root, *codes, **more)
    asyncio.run(made.bench.ask("go"))
    return made


def inner(made: Hands) -> list[tuple[str, str, bool, str]]:
    """Parent, name, whether it failed, and text of every call that a program made, in order."""
    return [
        (data["parentCallId"], data["name"], data["isError"], data["content"][0]["text"])
        for data in (event.data for event in made.bench.events("tool/code-dispatch"))
    ]


def test_a_program_gets_the_texts_of_its_calls_and_the_model_what_it_prints(tmp_path: Path) -> None:
    """Last expression, `return` and `await` as a model writes them; each call stands in the log between the program's two ends."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("one\ntwo\n")
    made = ran(
        tmp_path / "ws",
        "sizes = {name: len(read(path=name)) for name in ['a.txt']}\nprint('found', len(sizes))\nsizes",
        "import asyncio\nboth = await asyncio.gather(read('a.txt'), read({'path': 'a.txt'}))\nlen(both)",
        "for each in range(9):\n    if each == 2:\n        return {'at': each}",
        "todo_write(todos=[{'content': 'Look', 'status': 'pending'}])['todos'][0]['content']",
        "x = 1",
    )
    assert made.results == [
        ("found 1\n{'a.txt': 21}", None),
        ("2", None),
        ("{'at': 2}", None),
        ("Look", None),
        ("(no output: print what you want to see)", None),
    ]
    types = [kind for kind in made.bench.types if kind.startswith(("tool/", "todo/"))]
    assert types[:4] == ["tool/call", "tool/code-dispatch-start", "tool/code-dispatch", "tool/result"]
    assert types[-7:-2] == ["tool/call", "tool/code-dispatch-start", "todo/write", "tool/code-dispatch", "tool/result"]
    first = made.bench.events("tool/code-dispatch-start")[0].data
    call_id = made.bench.events("tool/call")[0].data["callId"]
    assert first == {
        "rootCallId": call_id,
        "parentCallId": call_id,
        "subCallId": f"{call_id}:code:1",
        "name": "read",
        "arguments": {"path": "a.txt"},
    }


def test_only_what_is_printed_reaches_the_model(tmp_path: Path) -> None:
    """The texts between are in the log, for people."""
    made = ran(tmp_path / "ws", "text = bash(command='echo a-long-text')\nprint(len(text))")
    assert made.texts == ["11"]
    assert inner(made)[0][1:] == ("bash", False, "a-long-text")
    sent = str(list(made.bench.model.requests[-1].messages))
    assert "a-long-text" not in sent.replace("echo a-long-text", "")


def test_a_call_that_fails_raises_in_the_program_with_the_tools_own_words(tmp_path: Path) -> None:
    """Caught or not; uncaught it is the program's traceback, from its own first line on."""
    made = ran(
        tmp_path / "ws",
        "try:\n    bash(command='echo no; exit 3')\nexcept ToolCallError as error:\n    print(error.tool, '|', error)",
        "def look(name):\n    return read(path=name)\nlook('nowhere.txt')",
    )
    assert made.texts[0] == "bash | no\n[exit status 3]"
    text, code = made.results[1]
    assert code == "PROGRAM_FAILED"
    assert text.splitlines()[:2] == ["Traceback (most recent call last):", '  File "<run_code>", line 3, in <module>']
    assert text.splitlines()[-1] == "ToolCallError: nowhere.txt does not exist; find it with glob"
    assert "worker.py" not in text


@pytest.mark.parametrize(
    ("code", "says", "error"),
    [
        ("df.head()", "python(code=…) reaches them", "PROGRAM_FAILED"),
        ("!ls", "for shell lines call bash", "PROGRAM_FAILED"),
        ("if True print(1)", "SyntaxError", "PROGRAM_FAILED"),
        ("read(file='a')", "read takes no argument 'file': def read(path: str, offset", "PROGRAM_FAILED"),
        ("read('a', 1, 2, 3)", "an argument too many", "PROGRAM_FAILED"),
        ("read(path='a', offset='x')", "Expected `int`", "PROGRAM_FAILED"),
        ("read(path={1, 2})", "must be plain JSON values", "PROGRAM_FAILED"),
        ("write(path='a', content='\\ud800')", "send plain JSON values", "PROGRAM_FAILED"),
        ("read(path='a', limit=10**400)", "read", "PROGRAM_FAILED"),
        ("bash(command='true', timeout=float('nan'))", "must be plain JSON values", "PROGRAM_FAILED"),
        ("tools['nothing']()", "there is no tool 'nothing'", "PROGRAM_FAILED"),
        ("input('name? ')", "EOFError", "PROGRAM_FAILED"),
        ("import sys\nsys.exit('enough')", "enough\n[the program ended itself]", "PROGRAM_FAILED"),
        ("import sys\nprint('so far')\nsys.exit()", "so far", None),
        ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError", "PROGRAM_FAILED"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "PROGRAM_FAILED"),
        ("print('so far', flush=True)\nimport os, time\ntime.sleep(0.1)\nos._exit(3)", "exit status 3", "PROGRAM_DIED"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV", "PROGRAM_DIED"),
        ("import os\nos.kill(0, 9)", "the program's process ended in the middle", "PROGRAM_DIED"),
        ({"code": "while True: pass", "timeout": 1}, "ended after 1 s of its own", "PROGRAM_TIMEOUT"),
        ({"code": "import time\nprint('so far')\ntime.sleep(999)", "timeout": 5}, "so far\n[ended after", "PROGRAM_TIMEOUT"),
        ("  \n", "the program is empty", "BAD_ARGUMENTS"),
    ],
)
def test_whatever_a_program_does_its_end_is_a_result_that_says_what_to_do(
    code: str | dict[str, Any], says: str, error: str | None, tmp_path: Path
) -> None:
    """Nothing of it ends the turn."""
    made = ran(tmp_path / "ws", code)
    text, found = made.results[0]
    assert found == error, text
    assert says in text
    assert made.bench.events("turn/end")[0].data["reason"] == {"kind": "completed"}


def test_a_program_is_confined_as_bash_is_and_its_calls_are_what_calls_are(tmp_path: Path) -> None:
    """Read-only keeps it from writing; what `write` may do is decided for `write`."""
    made = ran(tmp_path / "ws", "open('x.txt', 'w')", "write(path='x.txt', content='')", "import os\nos.environ.get('TOKEN_OF_MINE')",
               mode="read-only", environ={"TOKEN_OF_MINE": "a-secret-value", "PATH": "/usr/bin"})  # fmt: skip
    assert "Read-only file system" in made.texts[0] or "Permission denied" in made.texts[0]
    assert "was not written: sandbox mode read-only" in made.texts[1]
    assert made.texts[2] == "(no output: print what you want to see)"
    assert not (tmp_path / "ws" / "x.txt").exists()


def test_without_a_backend_no_program_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails closed, with the way out."""
    made = programs(tmp_path / "ws", "1")
    from plan_mode_nb.features import sandbox
    from plan_mode_nb.features.sandbox.confiner import SandboxConfiner

    grounds = sandbox.Grounds(tmp_path / "ws", home=tmp_path)
    made.bench.seams.confinement.provide(SandboxConfiner(grounds, environ={}, detect=lambda: Missing(backends.NOTHING)))
    asyncio.run(made.bench.ask("go"))
    assert made.results[0][1] == "SANDBOX_UNAVAILABLE"


def asking(seams: Seams) -> Undo:
    async def free(call: ToolCall, what: str) -> Outcome:
        """Does something that nothing confines."""
        await seams.permissions.require(call, what)
        return Outcome(text_result(f"did {what}"))

    return seams.tools.register(tool_from(free))


def test_a_call_asks_for_the_approval_that_it_would_ask_for_anyway(tmp_path: Path) -> None:
    """Each one, by the id of that call; what is refused raises, and the next is asked for again."""
    code = "for each in 'ab':\n    try:\n        print(free(what=each))\n    except ToolCallError as error:\n        print(str(error)[:24])"
    made = ran(tmp_path / "ws", {"code": code, "timeout": 30}, add=asking, answers=["rejected", "allowed-once"])
    assert made.texts == ["the user rejected this c\ndid b"]
    asked = [event.data for event in made.bench.events("approval/asked")]
    call_id = made.bench.events("tool/call")[0].data["callId"]
    assert [(each["toolName"], each["callId"]) for each in asked] == [("free", f"{call_id}:code:{number}") for number in (1, 2)]
    assert [request.preview for request in made.approvals.requests] == ["a", "b"]


def test_secrets_are_taken_out_of_what_goes_into_a_call_and_of_what_comes_out(tmp_path: Path) -> None:
    """In the log, and for the program too, so that nothing passes through it."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "key.txt").write_text("warehouse-9182736")
    seen: list[str] = []

    def add(seams: Seams) -> None:
        redaction_of = redaction.Redactor({"WAREHOUSE_TOKEN": "warehouse-9182736"})
        seams.redactions.register("more", redaction_of.text, redaction_of.settled)

        def note(text: str) -> str:
            """Note a text."""
            seen.append(text)
            return text

        seams.tools.register(tool_from(note))

    made = ran(tmp_path / "ws", "note(text=open('key.txt').read())\nread(path='key.txt')", add=add)
    assert seen == ["[redacted:WAREHOUSE_TOKEN]"]
    assert "warehouse-9182736" not in "\n".join(made.bench.session.lines)
    assert "[redacted:WAREHOUSE_TOKEN]" in made.texts[0]


def test_images_that_tools_give_a_program_come_with_its_result(tmp_path: Path) -> None:
    """The program gets the words, the model the pictures, as many as one result carries."""

    def add(seams: Seams) -> None:
        def picture() -> ToolResult:
            """A picture."""
            about = {"attachmentId": "sha256:" + "0" * 64, "mediaType": "image/png", "bytes": 1, "width": 1, "height": 1}
            return ToolResult((text_block("drawn"), {"type": "image", "attachment": about}))

        seams.tools.register(tool_from(picture))

    made = ran(tmp_path / "ws", "for _ in range(12): last = picture()\nlast", add=add)
    content = made.bench.events("tool/result")[0].data["message"]["content"][0]["content"]
    assert [block["type"] for block in content] == ["text"] + ["image"] * 10
    assert content[0]["text"] == "drawn\n[2 more images, shown to the user only]"


def test_the_number_of_calls_and_the_output_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is said."""
    monkeypatch.setattr(tool, "MAX_CALLS", 3)
    counting = "done = 0\ntry:\n    while True:\n        glob(pattern='*')\n        done += 1\n"
    counting += "except ToolCallError as error:\n    print(done, error)"
    made = ran(tmp_path / "ws", counting, "print('x' * 5_000_000)\nprint('the end')")
    assert made.texts[0] == "3 glob was not called: a program may make 3 calls; go on in another one"
    assert len(made.texts[1]) <= 30_000
    assert made.texts[1].endswith("the end")
    assert "characters left out here" in made.texts[1]


def test_threads_and_children_of_a_program(tmp_path: Path) -> None:
    """Threads may call, one at a time; other processes may not; what is left running ends with the program."""
    made = ran(
        tmp_path / "ws",
        "import threading\nfound = []\neach = [threading.Thread(target=lambda: found.append(glob(pattern='*'))) for _ in range(8)]\n"
        "[t.start() for t in each]; [t.join() for t in each]\nlen(found)",
        "import os\nif os.fork() == 0:\n    glob(pattern='*')\nelse:\n    print(os.waitstatus_to_exitcode(os.wait()[1]))",
        "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('left it')",
        "import threading\ndef later():\n    while True:\n        glob(pattern='*')\nthreading.Thread(target=later).start()\nprint('over')",
    )
    assert made.texts[0] == "8"
    assert "not from a process that it started" in made.texts[1]
    assert made.texts[2:] == ["left it", "over"]


def test_a_program_cannot_start_another(tmp_path: Path) -> None:
    """Nor does its section offer it; a forged line is refused."""
    made = programs(tmp_path / "ws", "tools['bash']._channel.ask('run_code', {'code': '1'})", "run_code(code='1')")
    asyncio.run(made.bench.ask("go"))
    assert "a program cannot start another" in made.texts[0]
    assert "NameError: name 'run_code' is not defined" in made.texts[1]
    assert inner(made) == []


@pytest.mark.parametrize("line", ["not json", '{"call": 1}', '{"done": "perhaps"}', '{"out": 1}', "[]", '{"call": "read"}'])
def test_whatever_else_stands_in_its_pipe_ends_it(line: str, tmp_path: Path) -> None:
    """What the process says is not believed."""
    said = "tools['bash']._channel._said"
    made = ran(tmp_path / "ws", f"{said}.write({line!r}.encode() + b'\\n')\n{said}.flush()\nimport time\ntime.sleep(60)")
    assert made.results[0][1] == "PROGRAM_DIED"
    assert "[the program's process ended in the middle: it " in made.texts[0]


def waiting(entered: asyncio.Event) -> Add:
    def add(seams: Seams) -> None:
        async def wait() -> Outcome:
            """Waits for ever, and knows what it had done."""
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise CallInterrupted(Outcome(text_result("waited a while", is_error=True))) from None
            raise AssertionError

        seams.tools.register(tool_from(wait))

    return add


def test_stop_in_a_call_of_a_program_ends_both_truthfully(tmp_path: Path) -> None:
    """The call says what it had done, the program what it had printed; the rest never ran; nothing is left behind."""

    async def body() -> Hands:
        entered = asyncio.Event()
        made = programs(tmp_path / "ws", "print('before', flush=True)\nwait()\nprint('after')", add=waiting(entered))
        turn = asyncio.ensure_future(made.bench.ask("go"))
        await asyncio.wait_for(entered.wait(), 60)
        made.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        return made

    made = asyncio.run(body())
    assert inner(made)[0][1:] == ("wait", True, "waited a while")
    assert made.results == [(f"before\n{tool.STOPPED_LINE}", "PROGRAM_STOPPED")]
    assert made.bench.events("turn/end")[0].data["reason"]["kind"] == "aborted"


def test_stop_while_the_program_itself_runs(tmp_path: Path) -> None:
    """At once, whatever it does."""

    async def body() -> Hands:
        made = programs(tmp_path / "ws", "glob(pattern='*')\nwhile True: pass")
        seen = asyncio.Event()
        made.bench.session.subscribe(lambda batch: seen.set() if any(each.type == "tool/code-dispatch" for each in batch) else None)
        turn = asyncio.ensure_future(made.bench.ask("go"))
        await asyncio.wait_for(seen.wait(), 60)
        made.bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        return made

    assert asyncio.run(body()).results == [(tool.STOPPED_LINE, "PROGRAM_STOPPED")]


def test_a_call_outside_its_program_is_refused(tmp_path: Path) -> None:
    """After the end, and where no turn runs at all; nothing is logged."""
    made = ran(tmp_path / "ws", "1")
    call = made.bench.events("tool/call")[0].data
    late = ToolCall("run_code", call["arguments"], call["callId"], 1, 1, made.bench.agent)
    before = len(made.bench.session)
    for outer in (late, ToolCall("run_code", "{}", "nobody's", 1, 1, None)):
        with pytest.raises(ToolError, match="is over, or runs in no turn"):
            asyncio.run(call_inside(made.bench.seams, outer, 1, "bash", {"command": "true"}))
    assert len(made.bench.session) == before


def test_a_tool_that_is_cancelled_from_inside_is_no_stop(tmp_path: Path) -> None:
    """The program goes on."""

    def add(seams: Seams) -> None:
        async def confused() -> str:
            """Cancels itself."""
            raise asyncio.CancelledError

        seams.tools.register(tool_from(confused))

    made = ran(tmp_path / "ws", "try:\n    confused()\nexcept ToolCallError as error:\n    print(error)", add=add)
    assert made.texts == ["the tool was cancelled from inside; nobody stopped the turn"]


def test_the_program_is_the_environments_python_without_the_persons_settings(tmp_path: Path) -> None:
    """Packages are there; startup files and PYTHON variables are not."""
    assert program.command()[1:4] == ["-I", "-X", "utf8"]
    made = ran(tmp_path / "ws", "import msgspec, sys\nprint(msgspec.__name__, sys.flags.isolated)", environ={"PYTHONSTARTUP": "/nowhere"})
    assert made.texts == ["msgspec 1"]


def test_figures_that_only_the_log_has_are_shown_for_a_programs_call_too(tmp_path: Path) -> None:
    """Under the program's card, from the end of the call that made them."""

    def add(seams: Seams) -> None:
        def draw() -> ToolResult:
            """Draws where nobody sees it."""
            about = {"attachmentId": "sha256:" + "0" * 64, "mediaType": "image/png", "bytes": 1, "width": 1, "height": 1}
            return ToolResult((text_block("drawn"), {"type": "image", "attachment": about}), meta={"figures": "shown"})

        seams.tools.register(tool_from(draw))

    made = ran(tmp_path / "ws", "draw()", add=add)
    shown = [bundle["text/plain"] for bundle in render_turn(made.bench.session.events)]
    (card,) = [place for place, text in enumerate(shown) if text.startswith("run_code (done): draw()")]
    assert shown[card + 1] == "Figure of the scratch process: image/png 1×1"


def test_a_program_that_wants_more_than_half_of_the_memory_gets_a_memory_error(tmp_path: Path) -> None:
    """Not the end of the notebook's kernel."""
    made = ran(tmp_path / "ws", "import os\nbytearray(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') * 6 // 10)")
    assert made.texts[0].endswith("MemoryError")


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("import csv\n\n#  Count the rows. \nlen(x)  # all", "Count the rows."),
        ("import csv\nfrom os import path\nx = 1", "x = 1"),
        ("import csv", "import csv"),
        ("#\n# \n'y' * " + "9" * 99, "'y' * " + "9" * 73 + "…"),
    ],
)
def test_a_program_is_titled_by_what_it_says_that_it_does(code: str, title: str) -> None:
    """Not by what it imports."""
    shown = tool.present_program(json.dumps({"code": code, "timeout": 5}))
    assert shown is not None
    assert (shown.title, shown.body) == (title, code)
    assert tool.present_program('{"code": 1}') is None
