"""The escape matrix: every way out that was thought of, tried for real, under both backends and modes, as root and as an ordinary user."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from hands import beyond_private

from plan_mode_nb.features import sandbox
from plan_mode_nb.features.sandbox import backends, landlock
from plan_mode_nb.features.sandbox.backends import Backend, Bubblewrap, Landlock
from plan_mode_nb.features.sandbox.confiner import SandboxConfiner
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.workbench import Workbench

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs can be confined on Linux only")
User = Literal["root", "ordinary"]
Kind = Literal["bubblewrap", "bubblewrap of pip", "landlock"]
SECRET = "s3cret-value-of-the-kernel"
NOBODY = 65534
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
DROP = """
import ctypes, json, os, signal, sys, pathlib, py_landlock
os.setgroups([]); os.setgid({user}); os.setuid({user})
exec(compile({source!r}, "launcher", "exec"), {{"__name__": "__main__"}})
"""
PROBE = Path(__file__).with_name("escape_probe.py")
ALLOWED = {"workspace_create", "workspace_rename"}
"""What writing in the workspace is for."""
WORKS = {"works_temporary", "works_devices", "works_reading", "works_programs"}
GAPS: dict[Kind, set[str]] = {
    "bubblewrap": set(),
    "bubblewrap of pip": set(),
    "landlock": {
        "git_hook", "git_replaced", "git_nested", "environment_changed", "outside_mode", "outside_times", "network_udp", "service_in_tmp",
        "files_of_the_kernel", "limits_of_the_kernel",
    },
}  # fmt: skip
"""What a backend is known not to stop; it says so by calling itself partial."""


def backend_of(kind: Kind) -> Backend:
    """The real one; skipped with its reason where this machine has none."""
    if kind != "landlock":
        found = backends.find("" if kind == "bubblewrap of pip" else os.environ.get("PATH", os.defpath))
        if not isinstance(found, Bubblewrap):
            pytest.skip(f"{kind} is not installed here, or does not work on this machine")
        return found
    abi = backends._landlock()
    if abi is None:
        pytest.skip("landlock does not work on this machine, or py-landlock is not installed")
    return Landlock(abi)


def _runs(argv: list[str]) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


@dataclass
class World:
    """Everything that a confined program must not reach, alive while it tries."""

    folder: Path
    user: User
    given: dict[str, Any]

    @property
    def workspace(self) -> Path:
        return Path(self.given["workspace"])

    @property
    def outside(self) -> Path:
        return Path(self.given["outside"])

    @property
    def changes_user(self) -> bool:
        return self.user == "ordinary" and os.geteuid() == 0

    def as_user(self, argv: list[str] | tuple[str, ...]) -> list[str]:
        """The command, as this world's user. A launcher in Python loads what it needs first: its Python may be root's alone."""
        if not self.changes_user:
            return list(argv)
        if str(landlock.LAUNCHER) in argv:
            at = argv.index(str(landlock.LAUNCHER))
            return [*argv[:at], "-c", DROP.format(user=NOBODY, source=landlock.LAUNCHER.read_text()), *argv[at + 1 :]]
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv]

    def probe(self, *, confined: bool) -> tuple[str, ...]:
        """The command of the probe, in a Python and from a file that this user can read."""
        python = next((each for each in (*PYTHONS, sys.executable) if not self.changes_user or _runs(self.as_user([each, "-c", ""]))), "")
        script = self.folder / "home" / "probe.py"
        script.write_bytes(PROBE.read_bytes())
        return (python, "-I", "-S", str(script), json.dumps({**self.given, "confined": confined}))

    def launch(self, kind: Kind, mode: str, *, network: bool = False) -> dict[str, str]:
        """The probe's answers under a mode."""
        bench = Workbench()
        bench.session.append(draft("sandbox/mode", {"mode": mode}))
        found = backend_of(kind)
        grounds = sandbox.Grounds(
            self.workspace, home=self.folder / "home", network=network, hidden=(Path(self.given["runtime"]),),
            shown=(Path(sys.prefix), Path(sys.base_prefix)), trusted=(self.workspace / "venv",),
        )  # fmt: skip
        environ = {**os.environ, "KERNEL_API_TOKEN": SECRET, "JPY_PARENT_PID": "1", "HOME": str(self.folder / "home")}
        confiner = SandboxConfiner(grounds, environ=environ, detect=lambda: found)
        launch = asyncio.run(confiner.confined(bench.agent, self.probe(confined=True)))
        if launch.environ["TMPDIR"] != "/tmp" and self.user == "ordinary":
            os.chmod(launch.environ["TMPDIR"], 0o777)
        try:
            ran = subprocess.run(
                self.as_user(launch.argv),
                env=dict(launch.environ),
                cwd=launch.folder,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                start_new_session=True,
            )
        finally:
            launch.close()
        assert ran.returncode == 0, ran.stderr
        answers: dict[str, str] = json.loads(ran.stdout)
        return answers


@contextlib.contextmanager
def listening() -> Iterator[dict[str, Any]]:
    """Servers of the machine outside."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        name = f"plan-mode-nb-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
        os.chmod(folder, 0o777)
        path = f"{folder}/service"
        service = stack.enter_context(socket.socket(socket.AF_UNIX))
        service.bind(path)
        os.chmod(path, 0o777)
        service.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    _, sender = udp.recvfrom(10)
                    udp.sendto(b"heard", sender)

        threading.Thread(target=answer, daemon=True).start()
        yield {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "abstract": name, "socket": path}


@contextlib.contextmanager
def a_world(user: User) -> Iterator[World]:
    """Folders, servers and a kernel of that user."""
    if user == "root" and os.geteuid() != 0:
        pytest.skip("these tests do not run as root")
    if (
        user == "ordinary"
        and os.geteuid() == 0
        and not _runs(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "ls", sys.prefix])
    ):
        pytest.skip(f"an ordinary user cannot reach {sys.prefix}, the environment of these tests")
    folder = beyond_private()
    try:
        for name in ("workspace/.git", "workspace/inner/.git", "workspace/venv", "outside", "runtime", "home"):
            (folder / name).mkdir(parents=True)
        (folder / "outside" / "kept.txt").write_text("kept")
        (folder / "runtime" / "kernel-1.json").write_text("{}")
        (folder / "workspace" / "prepared").symlink_to(folder / "outside" / "prepared.txt")
        for path in [folder, *folder.rglob("*")]:
            if not path.is_symlink():
                os.chmod(path, 0o777 if path.is_dir() else 0o666)
                if user == "ordinary" and os.geteuid() == 0:
                    os.chown(path, NOBODY, NOBODY)
        world = World(folder, user, {})
        kernel = subprocess.Popen(
            world.as_user(["sleep", "600"]), env={**os.environ, "KERNEL_API_TOKEN": SECRET}, cwd=folder / "outside", start_new_session=True
        )
        try:
            with listening() as servers:
                named = {each: str(folder / each) for each in ("workspace", "outside", "runtime")}
                world.given = {**named, "victim": kernel.pid, "group": kernel.pid, "secret": SECRET, **servers}
                yield world
            assert kernel.poll() is None
        finally:
            kernel.kill()
            kernel.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["root", "ordinary"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with a_world(request.param) as made:
        yield made


def seen(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is in a folder: mode, time and bytes of everything."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_nothing_gets_out_but_what_the_backend_says_it_cannot_hold(kind: Kind, mode: str, world: World) -> None:
    """Every attempt fails, every place outside is as it was, and ordinary work goes on."""
    before = seen(world.outside)
    answers = world.launch(kind, mode)
    allowed = ALLOWED if mode == "workspace-write" else set()
    done = {name for name, answer in answers.items() if answer == "done"}
    assert done - WORKS - GAPS[kind] == allowed
    assert done >= WORKS
    if not GAPS[kind]:
        assert seen(world.outside) == before
        assert not any(
            (world.workspace / name).exists() for name in (".git/hooks", "inner/.git/hooks", "venv/sitecustomize.py", "elsewhere")
        )
    else:
        assert {name: content for name, (_, _, content) in seen(world.outside).items()} == {name: c for name, (_, _, c) in before.items()}
    assert (world.workspace / "renamed.txt").exists() is (mode == "workspace-write")


def test_the_attempts_are_real(world: World) -> None:
    """Unconfined, what the sandbox stops is possible: each way out that this user has at all."""
    ran = subprocess.run(
        world.as_user(world.probe(confined=False)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "KERNEL_API_TOKEN": SECRET},
    )
    done = {name for name, answer in json.loads(ran.stdout).items() if answer == "done"}
    ordinary = {
        "workspace_create", "git_hook", "git_nested", "environment_changed", "outside_create", "outside_overwrite", "outside_truncate",
        "outside_mkdir", "outside_by_child", "link_symbolic", "link_prepared", "link_of_the_root", "link_of_the_kernel",
        "signal_to_the_kernel", "signal_to_its_group", "environment_of_the_kernel", "files_of_the_kernel", "network_tcp", "network_udp",
        "service_abstract", "service_in_tmp", "secret_in_the_environment", "secret_of_any_process", "connection_file", "new_privileges",
    }  # fmt: skip
    assert ordinary - done == set()
    if world.user == "root":
        assert {"capabilities", "proc_core_pattern", "proc_any_switch", "trace_the_kernel"} <= done


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_with_the_network_allowed_only_the_network_opens(kind: Kind, world: World) -> None:
    """The setting opens nothing else, but for services that listen on it by a name of the network's own."""
    answers = world.launch(kind, "read-only", network=True)
    done = {name for name, answer in answers.items() if answer == "done"}
    opened = {"network_tcp", "network_udp", *(["service_abstract"] if kind == "bubblewrap" else [])}
    assert done - WORKS - GAPS[kind] - opened == set()
    assert {"network_tcp", "network_udp"} <= done


def test_where_the_repository_is_a_link_what_it_leads_to_is_kept() -> None:
    """A `.git` that is a link into the workspace is followed; landlock cannot keep a part of a writable folder, and says so."""
    with a_world("ordinary") as world:
        (world.workspace / ".git").rename(world.workspace / "store")
        (world.workspace / ".git").symlink_to("store")
        answers = world.launch("bubblewrap", "workspace-write")
        assert answers["git_hook"] == "Read-only file system"
