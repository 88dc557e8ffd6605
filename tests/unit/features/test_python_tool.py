"""``python``: what the model gets of a piece of code, and what becomes of it when the turn is stopped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from small_images import png

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.features import sandbox
from plan_mode_nb.features.tools import kernel
from plan_mode_nb.features.tools.cap import Spill
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing.shells import PlainShell
from plan_mode_nb.testing.workbench import Workbench


def bench_of(shell: PlainShell, *codes: str, spill: Spill | None = None, redact: Any = None) -> Workbench:
    """An agent that may run anything, and asks for these pieces of code in one answer."""

    def redactions(seams: Seams) -> Any:
        return (lambda: None) if redact is None else seams.redactions.register("test", redact)

    bench = Workbench(
        [call("python", {"code": code}) for code in codes],
        say("done"),
        install=[redactions, sandbox.install, lambda seams: kernel.install(seams, shell, spill)],
    )
    bench.session.append(draft("sandbox/mode", {"mode": "danger-full-access"}))
    return bench


def results(bench: Workbench) -> list[dict[str, Any]]:
    return [event.data["message"]["content"][0] for event in bench.events("tool/result")]


def run(code: str, **more: Any) -> tuple[dict[str, Any], Workbench]:
    """One piece of code: its result block, and the bench."""
    bench = bench_of(PlainShell(), code, **more)
    asyncio.run(bench.ask("go"))
    (result,) = results(bench)
    return result, bench


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def test_the_model_gets_what_was_printed_and_the_last_value() -> None:
    """In order, nothing added."""
    result, _ = run("print('a')\n1 + 1")
    assert (text(result), result["isError"]) == ("a\n2\n", False)


def test_code_without_output_says_so() -> None:
    """A result is never empty: providers refuse that."""
    assert text(run("x = 1")[0]) == "(no output)"


def test_an_error_keeps_the_output_before_it_and_the_traceback() -> None:
    """The call failed, and the turn goes on."""
    result, bench = run("print('before')\n1 / 0")
    assert result["isError"]
    assert text(result).startswith("before\n")
    assert "ZeroDivisionError" in text(result)
    assert bench.events("tool/result")[0].data["error"] == {"name": "PythonError", "code": "PYTHON_ERROR"}
    assert bench.events("turn/end")[0].data["reason"] == {"kind": "completed"}


def test_variables_stay_for_the_next_call() -> None:
    """One namespace, in the order the model asked."""
    bench = bench_of(PlainShell(), "a = 20", "a + 1")
    asyncio.run(bench.ask("go"))
    assert [text(each) for each in results(bench)] == ["(no output)", "21\n"]


def test_the_tool_is_declared_to_rebuild_and_the_others_are_not() -> None:
    """A replay runs it again, because later cells need what it made."""
    tools = bench_of(PlainShell()).seams.tools
    python, variables = tools.get("python"), tools.get("variables")
    assert python is not None
    assert variables is not None
    assert python.replayed('{"code": "1"}') == "rebuilds"
    assert variables.replayed("{}") == "played"


@pytest.mark.parametrize(
    "arguments", ['{"code": " \\n"}', '{"code": 3}', "{}", '{"code": "1", "timeout": 5}', "not json", '{"code": "\\ud800"}']
)
def test_wrong_arguments_run_nothing_and_say_what_to_send(arguments: str) -> None:
    """One sentence, code BAD_ARGUMENTS."""
    shell = PlainShell()
    bench = Workbench(call("python", arguments), say("done"), install=[sandbox.install, lambda seams: kernel.install(seams, shell)])
    asyncio.run(bench.ask("go"))
    assert shell.ran == []
    assert bench.events("tool/result")[0].data["error"]["code"] == "BAD_ARGUMENTS"


def test_figures_become_images_of_the_result_and_attachments() -> None:
    """The bytes are kept once, the block names them."""
    result, bench = run(f"print('drawn')\nshow({png()!r})\nshow({png()!r})")
    assert text(result) == "drawn\n"
    images = result["content"][1:]
    assert [image["attachment"]["name"] for image in images] == ["figure 1", "figure 2"]
    (digest,) = bench.seams.attachments
    assert {image["attachment"]["attachmentId"] for image in images} == {f"sha256:{digest}"}
    assert bench.model.requests[-1].images == {digest: png()}


@pytest.mark.parametrize("data", [b"<svg/>", b"", png()[:-9], png(9_000, 1)])
def test_a_figure_that_no_model_can_see_is_a_line_of_text(data: bytes) -> None:
    """Drawing, damaged, too large: the call succeeds, nothing is attached, the model knows."""
    result, bench = run(f"print('drawn')\nshow({data!r}, 'image/x')")
    assert not result["isError"]
    assert "[figure 1 (image/x), shown to the user only: " in text(result)
    assert len(result["content"]) == 1
    assert bench.seams.attachments == {}


def test_more_figures_than_a_result_carries_are_counted() -> None:
    """The first ten, and a line."""
    result, _ = run("\n".join(f"show({png(width)!r})" for width in range(1, 14)))
    assert len(result["content"]) == 1 + kernel.MAX_IMAGES
    assert "[3 more figures, shown to the user only" in text(result)


def test_a_long_result_is_capped_and_the_rest_is_kept_where_it_says() -> None:
    """Head, tail, path; the traceback at the end survives."""
    kept: list[str] = []

    def spill(whole: str) -> str:
        kept.append(whole)
        return "/somewhere/long.txt"

    result, _ = run("print('x' * 100_000)\n1 / 0", spill=spill)
    assert len(text(result)) <= 30_000
    assert "/somewhere/long.txt" in text(result)
    assert "ZeroDivisionError" in text(result)
    assert kept[0].startswith("x" * 100_000)


def test_a_secret_across_the_cut_is_taken_out_before_the_cut() -> None:
    """Neither result nor spill holds any half of it."""
    kept: list[str] = []

    def spill(whole: str) -> str:
        kept.append(whole)
        return "spill"

    secret = "S3CRET" * 200
    for start in (19_000, 19_600, 20_200):
        result, _ = run(
            f"print('x' * {start} + 'S3CRET' * 200 + 'y' * 40_000)", spill=spill, redact=lambda it: it.replace(secret, "[redacted:K]")
        )
        assert "S3CRET" not in text(result)
    assert not any("S3CRET" in whole for whole in kept)


def test_output_that_utf8_cannot_hold_is_written_out() -> None:
    """A lone surrogate must not cost the whole result."""
    result, _ = run("print('a\\udc80b')")
    assert text(result) == "a\\udc80b\n"


def test_a_stopped_turn_keeps_what_the_code_had_done() -> None:
    """The shell returns the partial record, the call's result holds it, and the turn ends as stopped."""

    async def main() -> Workbench:
        reached = asyncio.Event()

        async def forever() -> None:
            reached.set()
            await asyncio.Event().wait()

        bench = bench_of(PlainShell(wait=forever), "print('half')", "print('never')")
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(reached.wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        return bench

    bench = asyncio.run(main())
    first, second = results(bench)
    assert text(first) == f"half\n{kernel.INTERRUPTED_LINE}"
    assert first["isError"]
    assert "before dispatch" in text(second)
    codes = [event.data["error"]["code"] for event in bench.events("tool/result")]
    assert codes == ["PYTHON_INTERRUPTED", "TOOL_ABORTED_BEFORE_DISPATCH"]
    assert bench.events("turn/end")[0].data["reason"]["kind"] == "aborted"


def test_a_stop_that_came_when_the_code_had_ended_still_stops_the_turn() -> None:
    """A shell that swallows the cancellation and returns a whole result does not swallow the stop."""

    class Swallows(PlainShell):
        async def run(self, code: str, *, call_id: str) -> Any:
            ran = await super().run(code, call_id=call_id)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                return ran

    async def main() -> Workbench:
        bench = bench_of(Swallows(), "print('whole')")
        with pytest.raises(asyncio.CancelledError):
            await bench.ask("go")
        return bench

    bench = asyncio.run(main())
    (result,) = results(bench)
    assert (text(result), result["isError"]) == ("whole\n", False)
    assert bench.events("turn/end")[0].data["reason"]["kind"] == "aborted"


def test_an_interrupt_of_the_code_alone_is_a_failed_call_and_the_turn_goes_on() -> None:
    """Code may raise KeyboardInterrupt itself."""

    class Interrupted(PlainShell):
        async def run(self, code: str, *, call_id: str) -> Any:
            ran = await super().run(code, call_id=call_id)
            return type(ran)("interrupted", ran.text)

    bench = bench_of(Interrupted(), "print('half')")
    asyncio.run(bench.ask("go"))
    (result,) = results(bench)
    assert result["isError"]
    assert text(result).endswith(kernel.INTERRUPTED_LINE)
    assert bench.events("turn/end")[0].data["reason"] == {"kind": "completed"}


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("# Load the data\nimport pandas", "Load the data"),
        ("\n\n  x = 1  \ny = 2", "x = 1"),
        ("#\n##  \nx", "x"),
        ("#!shebang", "!shebang"),
        ("y" * 200, "y" * 79 + "…"),
    ],
)
def test_a_call_presents_itself_as_its_code_titled_by_its_first_line(code: str, title: str) -> None:
    """The body is the exact code."""
    shown = kernel.present_code(json.dumps({"code": code}))
    assert shown is not None
    assert (shown.title, shown.body, shown.kind) == (title, code, "code")


@pytest.mark.parametrize("arguments", ["", "{", "[]", "{}", '{"code": 1}', '{"code": "  "}', '{"code": "# \\n"}', "null"])
def test_arguments_without_code_present_nothing(arguments: str) -> None:
    """And raise nothing."""
    assert kernel.present_code(arguments) is None


def test_installing_over_a_taken_name_leaves_nothing() -> None:
    """All or none."""
    seams = Seams.create()
    undo = kernel.install(seams, PlainShell())
    undo()
    taken = seams.tools.register(kernel.variables_tool(PlainShell(), kernel.Results(str)))
    with pytest.raises(ValueError, match="already registered"):
        kernel.install(seams, PlainShell())
    assert [tool["name"] for tool in seams.tools.schemas()] == ["variables"]
    taken()
