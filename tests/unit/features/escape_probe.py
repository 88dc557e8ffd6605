"""What a confined program could try: each attempt by name, run inside the sandbox. Prints one JSON object, name -> "done" or why not.

A script of its own, standard library only. Attempts that would hurt the machine if the sandbox failed stop at opening the file for writing.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

given: dict[str, Any] = json.loads(sys.argv[1])
workspace, outside, runtime = (Path(given[key]) for key in ("workspace", "outside", "runtime"))
victim: int = given["victim"]
libc = ctypes.CDLL(None, use_errno=True)
tried: dict[str, str] = {}
Attempt = Callable[[], object]


def attempt(function: Attempt) -> Attempt:
    """Try it now."""
    try:
        function()
        tried[function.__name__] = "done"
    except OSError as error:
        tried[function.__name__] = error.strerror or type(error).__name__
    except subprocess.CalledProcessError as error:
        tried[function.__name__] = f"exit status {error.returncode}"
    return function


def attempt_confined(function: Attempt) -> Attempt:
    """Try it in a child, and only inside a sandbox: where it worked, it would change the machine."""

    def in_child() -> None:
        child = os.fork()
        if child == 0:
            try:
                function()
            except OSError as error:
                os._exit(error.errno or 1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            raise OSError(code, os.strerror(code))

    in_child.__name__ = function.__name__
    return attempt(in_child) if given["confined"] else function


def write(path: Path | str, text: str = "escaped") -> None:
    with open(path, "w") as file:
        file.write(text)


def called(result: int) -> None:
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def shell(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def open_for_writing(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def first_that_works(attempts: list[Attempt]) -> None:
    """Done when any is."""
    failure = OSError(2, "nothing to try")
    for each in attempts:
        try:
            each()
            return
        except OSError as error:
            failure = error
    raise failure


def connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(address)


# ---- the workspace


@attempt
def workspace_create() -> None:
    write(workspace / "made.txt")


@attempt
def workspace_rename() -> None:
    os.rename(workspace / "made.txt", workspace / "renamed.txt")


@attempt
def git_hook() -> None:
    write(workspace / ".git" / "hooks")


@attempt
def git_replaced() -> None:
    os.rename(workspace / ".git", workspace / "elsewhere")


@attempt
def git_nested() -> None:
    write(workspace / "inner" / ".git" / "hooks")


@attempt
def environment_changed() -> None:
    write(workspace / "venv" / "sitecustomize.py")


# ---- writing outside


@attempt
def outside_create() -> None:
    write(outside / "made.txt")


@attempt
def outside_overwrite() -> None:
    write(outside / "kept.txt")


@attempt
def outside_truncate() -> None:
    os.truncate(outside / "kept.txt", 0)


@attempt
def outside_unlink() -> None:
    os.unlink(outside / "kept.txt")


@attempt
def outside_rename() -> None:
    os.rename(outside / "kept.txt", outside / "moved.txt")


@attempt
def outside_mkdir() -> None:
    os.mkdir(outside / "folder")


@attempt
def outside_mode() -> None:
    os.chmod(outside / "kept.txt", 0o777)


@attempt
def outside_times() -> None:
    os.utime(outside / "kept.txt", (1, 1))


@attempt
def outside_by_child() -> None:
    shell(f"echo escaped > {outside}/child.txt")


# ---- links


@attempt
def link_symbolic() -> None:
    os.symlink(outside / "through.txt", workspace / "symbolic")
    write(workspace / "symbolic")


@attempt
def link_prepared() -> None:
    write(workspace / "prepared")


@attempt
def link_hard() -> None:
    os.link(outside / "kept.txt", workspace / "hard")
    write(workspace / "hard")


@attempt
def link_of_the_root() -> None:
    write(f"/proc/self/root{outside}/root.txt")


@attempt
def link_of_the_first_process() -> None:
    write(f"/proc/1/root{outside}/first.txt")


@attempt
def link_of_the_kernel() -> None:
    first_that_works([lambda: write(f"/proc/{victim}/root{outside}/v.txt"), lambda: write(f"/proc/{victim}/cwd/v.txt")])


# ---- mounts and namespaces


@attempt_confined
def mount_remounted() -> None:
    called(libc.mount(None, b"/", None, 32 | 4096, None))


@attempt_confined
def mount_of_its_own() -> None:
    called(libc.mount(b"none", bytes(workspace), b"tmpfs", 0, None))


@attempt_confined
def mount_taken_away() -> None:
    called(libc.umount2(bytes(runtime), 2))


@attempt_confined
def namespace_of_its_own() -> None:
    called(libc.unshare(0x10000000))
    called(libc.unshare(0x00020000))
    called(libc.mount(b"none", b"/", None, 32 | 4096, None))


@attempt_confined
def root_changed() -> None:
    os.chroot(workspace)


@attempt_confined
def device_made() -> None:
    os.mknod(workspace / "disk", 0o60600, os.makedev(254, 0))
    os.close(os.open(workspace / "disk", os.O_RDONLY))


@attempt
def device_of_the_disk() -> None:
    disks = [Path("/dev") / each.name for each in Path("/sys/block").iterdir()] if Path("/sys/block").is_dir() else []
    first_that_works([lambda disk=disk: open_for_writing(str(disk)) for disk in disks])


# ---- the kernel's switches


@attempt
def proc_core_pattern() -> None:
    open_for_writing("/proc/sys/kernel/core_pattern")


@attempt
def proc_any_switch() -> None:
    switches = [Path(folder) / name for folder, _, names in os.walk("/proc/sys") for name in names]
    first_that_works([lambda switch=switch: open_for_writing(str(switch)) for switch in switches])


@attempt
def proc_sysrq() -> None:
    open_for_writing("/proc/sysrq-trigger")


@attempt
def sys_any_switch() -> None:
    switches = [Path(folder) / name for folder, _, names in os.walk("/sys/kernel") for name in names]
    first_that_works([lambda switch=switch: open_for_writing(str(switch)) for switch in switches])


@attempt
def cgroup_release_agent() -> None:
    agents = [
        Path(folder) / name for folder, _, names in os.walk("/sys/fs/cgroup") for name in names if name in ("release_agent", "cgroup.procs")
    ]
    first_that_works([lambda agent=agent: open_for_writing(str(agent)) for agent in agents])


# ---- other processes


@attempt
def signal_to_the_kernel() -> None:
    os.kill(victim, 0)


@attempt
def signal_to_its_group() -> None:
    os.killpg(given["group"], signal.SIGCONT)


@attempt
def trace_the_kernel() -> None:
    called(libc.ptrace(16, victim, 0, 0))


@attempt
def memory_of_the_kernel() -> None:
    os.close(os.open(f"/proc/{victim}/mem", os.O_RDWR))


@attempt
def environment_of_the_kernel() -> None:
    Path(f"/proc/{victim}/environ").read_bytes()


@attempt
def files_of_the_kernel() -> None:
    os.listdir(f"/proc/{victim}/fd")


@attempt
def limits_of_the_kernel() -> None:
    called(libc.prlimit(victim, 7, None, ctypes.byref((ctypes.c_ulong * 2)())))


# ---- the network and services


@attempt
def network_tcp() -> None:
    connect(socket.AF_INET, ("127.0.0.1", given["tcp"]))


@attempt
def network_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.connect(("127.0.0.1", given["udp"]))
        client.send(b"out")
        if client.recv(10) != b"heard":
            raise OSError(110, "nothing came back")


@attempt
def service_abstract() -> None:
    connect(socket.AF_UNIX, "\0" + given["abstract"])


@attempt
def service_in_tmp() -> None:
    connect(socket.AF_UNIX, given["socket"])


# ---- secrets


@attempt
def secret_in_the_environment() -> None:
    if given["secret"] not in repr(dict(os.environ)):
        raise OSError(2, "not there")


@attempt
def secret_of_any_process() -> None:
    def look(path: Path) -> None:
        if given["secret"].encode() not in path.read_bytes():
            raise OSError(2, "not there")

    processes = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
    first_that_works([lambda each=each: look(each / "environ") for each in processes])


@attempt
def connection_file() -> None:
    (runtime / "kernel-1.json").read_bytes()


@attempt
def file_handed_down() -> None:
    extra = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    open_ones = [number for number in extra if number > 2 and os.path.exists(f"/proc/self/fd/{number}")]
    if not open_ones:
        raise OSError(2, "none")


@attempt
def capabilities() -> None:
    status = Path("/proc/self/status").read_text()
    if not any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("CapEff", "CapPrm"))):
        raise OSError(1, "none")


@attempt
def new_privileges() -> None:
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
        raise OSError(1, "none")


@attempt
def terminal() -> None:
    os.close(os.open("/dev/tty", os.O_RDWR))


# ---- what must work all the same


@attempt
def works_temporary() -> None:
    import tempfile

    with tempfile.NamedTemporaryFile("w") as file:
        file.write("mine")


@attempt
def works_devices() -> None:
    write("/dev/null")
    with open("/dev/urandom", "rb") as noise:
        noise.read(1)


@attempt
def works_reading() -> None:
    (outside / "kept.txt").read_text()


@attempt
def works_programs() -> None:
    shell("echo one | cat")


print(json.dumps(tried))
