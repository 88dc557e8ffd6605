"""``bash``: what the model gets, how a command ends, and what happens when the sandbox refuses something."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hands import beyond_private, hands, needs_a_sandbox, ready, unlimited
from msgspec.structs import replace

from plan_mode_nb.agent.tools import CallInterrupted, Presentation
from plan_mode_nb.features.tools import process
from plan_mode_nb.features.tools.bash import STOPPED_LINE, present_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
FULL = "danger-full-access"


@pytest.fixture
def beyond() -> Iterator[Path]:
    """A folder that is outside the workspace, and not the sandbox's own."""
    folder = beyond_private()
    yield folder
    shutil.rmtree(folder)


def bash(command: str, **more: int) -> tuple[str, dict[str, object]]:
    return "bash", {"command": command, **more}


class TestResults:
    """What is told of a command."""

    @pytest.mark.parametrize(
        ("command", "text", "code"),
        [
            ("echo one; echo two", "one\ntwo", None),
            ("true", "(no output)", None),
            ("echo out; echo err >&2; echo again", "out\nerr\nagain", None),
            ("exit 3", "[exit status 3]", "EXIT_STATUS"),
            ("echo no; false", "no\n[exit status 1]", "EXIT_STATUS"),
            ("kill -9 $$", "[ended by signal 9]", "EXIT_STATUS"),
            ("nonsense-command-here 2>/dev/null", "[exit status 127]", "EXIT_STATUS"),
            ("cat", "(no output)", None),
            ("printf 'caf\\xc3\\xa9'", "café", None),
            ("printf 'caf\\xe9'; exit 0", "caf\ufffd", None),
            ("pwd", "{root}", None),
        ],
    )
    def test_output_comes_in_order_and_an_ending_that_is_no_success_is_said(
        self, command: str, text: str, code: str | None, tmp_path: Path
    ) -> None:
        """Both streams as one; keyboard input is empty; bytes that are no UTF-8 are replaced."""
        assert hands(tmp_path / "w", bash(command), mode=FULL).results == [(text.format(root=tmp_path / "w"), code)]

    def test_binary_output_is_named_and_not_shown(self, tmp_path: Path) -> None:
        """Its bytes are no use to a model, and no log could hold them."""
        (text,) = hands(tmp_path / "w", bash("printf '\\0\\1\\2\\3'"), mode=FULL).texts
        assert text == "[the output is binary data of no kind known here, 4 bytes; write it to a file instead]"

    def test_long_output_keeps_head_and_tail_and_the_whole_is_in_a_file(self, tmp_path: Path) -> None:
        """The model reads where."""
        (text,) = hands(tmp_path / "w", bash("seq 1 20000"), mode=FULL).texts
        assert text.startswith("1\n2\n")
        assert text.endswith("19999\n20000")
        (kept,) = (tmp_path / "results").iterdir()
        assert str(kept) in text
        assert kept.read_text().splitlines() == [str(number) for number in range(1, 20_001)]
        assert kept.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("arguments", [{"command": "  "}, {"command": "a\0b"}, {"command": "ls", "timeout": 0}, {}, {"cmd": "ls"}])
    def test_wrong_arguments_are_corrected(self, arguments: dict[str, object], tmp_path: Path) -> None:
        """Nothing runs."""
        ((text, code),) = hands(tmp_path / "w", ("bash", arguments), mode=FULL).results
        assert text.startswith("Error: ")
        assert code == "BAD_ARGUMENTS"

    def test_secrets_are_taken_out_of_what_it_prints_and_of_what_is_kept(self, tmp_path: Path) -> None:
        """Before the cut, so that no half of one stands at its edge."""
        secret = "correct-horse-battery"
        made = hands(tmp_path / "w", bash(f"seq 1 20000; echo {secret}"), mode=FULL, environ={"MY_TOKEN": secret})
        assert made.texts[0].endswith("[redacted:MY_TOKEN]")
        (kept,) = (tmp_path / "results").iterdir()
        assert secret not in kept.read_text()


class TestEndings:
    """However a command ends, nothing of it is left running."""

    def test_time_that_is_over_ends_it_and_keeps_what_it_printed(self, tmp_path: Path) -> None:
        """The model hears how to get further."""
        ((text, code),) = hands(tmp_path / "w", bash("echo begun; sleep 1000", timeout=1), mode=FULL).results
        assert code == "COMMAND_TIMEOUT"
        assert text == "begun\n[ended after 1 s, before it had finished; send a larger timeout, or do less at once]"

    def test_a_command_that_ignores_the_request_to_end_is_ended(self, tmp_path: Path) -> None:
        """So are its children."""
        began = time.monotonic()
        ((_, code),) = hands(tmp_path / "w", bash("trap '' TERM; sleep 1000 & wait; sleep 1000", timeout=1), mode=FULL).results
        assert code == "COMMAND_TIMEOUT"
        assert time.monotonic() - began < 60

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process be watched that is nobody's child here")
    def test_what_it_left_in_the_background_ends_with_it(self, tmp_path: Path) -> None:
        """The call does not wait for it, though it holds the output open."""
        ran = asyncio.run(process.run(unlimited(["/bin/sh", "-c", "sleep 1000 & echo $!"], tmp_path), seconds=60))
        assert (ran.ending, ran.status) == ("exited", 0)
        assert _has_ended(int(ran.head))

    @pytest.mark.parametrize("mode", [FULL, pytest.param("workspace-write", marks=needs_a_sandbox)])
    def test_stopped_meanwhile_it_says_what_it_had_done(self, mode: str, tmp_path: Path) -> None:
        """The turn ends as stopped; the call's result is true."""

        async def stopped() -> list[tuple[str, str | None]]:
            # Its input ends once it has been started, as far as the tool is concerned.
            made = ready(tmp_path / "w", bash("echo half; cat; touch begun; sleep 1000"), mode=mode)
            turn = asyncio.ensure_future(made.bench.ask("go"))
            while not (tmp_path / "w" / "begun").exists():
                await asyncio.sleep(0.01)
            assert made.bench.agent.cancel({"kind": "user"})
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(turn, 30)
            assert made.bench.events("turn/end")[0].data["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
            return made.results

        assert asyncio.run(stopped()) == [(f"half\n{STOPPED_LINE}", "COMMAND_STOPPED")]

    def test_of_endless_output_both_ends_are_kept_in_bounded_memory(self, tmp_path: Path) -> None:
        """The middle is counted and let go."""
        ran = asyncio.run(process.run(unlimited(["/bin/sh", "-c", "seq 1 1500000; echo last"], tmp_path), seconds=100))
        assert len(ran.head) == process.HEAD_BYTES
        assert len(ran.tail) < process.TAIL_BYTES + 100_000
        assert ran.tail.endswith(b"\nlast\n")
        whole = sum(len(str(number)) + 1 for number in range(1, 1_500_001)) + 5
        assert len(ran.head) + ran.left_out + len(ran.tail) == whole

    def test_a_program_that_is_not_there_is_an_error_and_what_it_had_is_closed(self, tmp_path: Path) -> None:
        """The launch's own cleaning up is done in every case."""
        closed: list[bool] = []
        launch = unlimited([str(tmp_path / "nothing")], tmp_path)
        launch = replace(launch, close=lambda: closed.append(True))
        with pytest.raises(FileNotFoundError):
            asyncio.run(process.run(launch, seconds=1))
        assert closed == [True]


@needs_a_sandbox
class TestRefusals:
    """What the sandbox refuses, and the one way past it."""

    def test_in_the_workspace_it_may_write_and_nobody_is_asked(self, tmp_path: Path) -> None:
        """The default mode."""
        made = hands(tmp_path / "w", bash("echo hello > made.txt && cat made.txt"))
        assert made.results == [("hello", None)]
        assert (tmp_path / "w" / "made.txt").read_text() == "hello\n"
        assert made.decided == []

    def test_read_only_writes_nothing(self, tmp_path: Path) -> None:
        """Not even in the workspace; temporary files are its own."""
        made = hands(tmp_path / "w", bash("echo x > $TMPDIR/mine && cat $TMPDIR/mine"), bash("echo hello > made.txt"), mode="read-only")
        assert made.results[0] == ("x", None)
        assert made.results[1][1] == "EXIT_STATUS"
        assert not (tmp_path / "w" / "made.txt").exists()

    def test_a_refusal_may_ask_once_and_allowed_it_runs_again_without_the_sandbox(self, beyond: Path, tmp_path: Path) -> None:
        """The person sees exactly the command; it is one approval for one run."""
        outside = beyond / "outside.txt"
        command = f"echo out > {outside} && cat {outside}"
        made = hands(tmp_path / "w", bash(command), bash(command), mode="read-only", answers=["allowed-once", "rejected"])
        first, second = made.results
        assert first == ("out\n[the user let this command run again without the sandbox; this is that run]", None)
        assert [request.preview for request in made.approvals.requests] == [command, command]
        assert "the sandbox refused something that this command did" in made.approvals.requests[0].reason
        assert "the sandbox mode is read-only" in made.approvals.requests[0].reason
        assert made.decided == [("allowed-once", "person"), ("rejected", "person")]
        assert "running it without was not allowed" in second[0]
        assert second[1] == "EXIT_STATUS"

    @pytest.mark.parametrize("answer", ["rejected", "cancelled", "unavailable"])
    def test_anything_but_allowed_once_leaves_the_refusal(self, answer: str, tmp_path: Path) -> None:
        """Nothing runs a second time."""
        made = hands(tmp_path / "w", bash("echo ran >> log.txt; exit 1"), bash("touch /usr/here"), answers=[answer])  # type: ignore[list-item]
        assert made.decided == [(answer, "person")]
        assert "running it without was not allowed" in made.texts[1]
        assert not Path("/usr/here").exists()
        assert (tmp_path / "w" / "log.txt").read_text() == "ran\n"

    def test_never_does_not_ask(self, tmp_path: Path) -> None:
        """The policy rejects, and says so in the log."""
        made = hands(tmp_path / "w", bash("touch /usr/here"), policy="never", answers=["allowed-once"])
        assert made.approvals.requests == []
        assert made.decided == [("rejected", "policy")]
        assert made.results[0][1] == "EXIT_STATUS"

    def test_a_failure_of_its_own_asks_nobody(self, tmp_path: Path) -> None:
        """Only what reads like the sandbox's refusal does."""
        made = hands(tmp_path / "w", bash("ls /nowhere-at-all"), bash("false"))
        assert made.decided == []
        assert all("sandbox" not in text for text in made.texts)

    def test_a_command_that_succeeded_all_the_same_is_only_told(self, tmp_path: Path) -> None:
        """It handled the refusal by itself."""
        made = hands(tmp_path / "w", bash("touch /usr/here || echo done without"))
        assert made.decided == []
        ((text, code),) = made.results
        assert code is None
        assert "the sandbox seems to have refused something" in text

    def test_stopped_while_it_is_asked_the_first_run_is_told(self, tmp_path: Path) -> None:
        """It did run, under the sandbox; what would have come is not said to have happened."""

        async def stopped() -> tuple[str, list[tuple[str, str]]]:
            asked = asyncio.Event()

            async def wait() -> None:
                asked.set()
                await asyncio.Event().wait()

            made = ready(tmp_path / "w", bash("echo first; touch /usr/here"), wait=wait)
            turn = asyncio.ensure_future(made.bench.ask("go"))
            await asyncio.wait_for(asked.wait(), 60)
            made.bench.agent.cancel({"kind": "user"})
            with pytest.raises((asyncio.CancelledError, CallInterrupted)):
                await asyncio.wait_for(turn, 30)
            return made.texts[0], made.decided

        text, decided = asyncio.run(stopped())
        assert text.startswith("first\n")
        assert "the sandbox seems to have refused something" in text
        assert decided == [("cancelled", "person")]


def test_a_call_is_shown_as_its_command() -> None:
    """Titled by its first line."""
    assert present_command('{"command": "\\nls -l\\npwd"}') == Presentation("ls -l", "\nls -l\npwd", "code")
    assert present_command('{"command": "' + "x" * 200 + '"}').title == "x" * 79 + "…"  # type: ignore[union-attr]
    for arguments in ('{"command": 3}', '{"command": " "}', "{", "[]", "{}"):
        assert present_command(arguments) is None


def _has_ended(pid: int) -> bool:
    """Wait for a process to end, in bounded time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(handle):
        return bool(select.select([handle], [], [], 30)[0])
