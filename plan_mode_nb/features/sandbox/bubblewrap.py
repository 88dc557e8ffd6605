"""The first backend: bubblewrap, namespaces around one program. What it is told here was measured, as root and as an ordinary user.

Without ``--cap-drop ALL`` root mounts ``/`` writable again; without ``--disable-userns`` a program gets capabilities back in a namespace
of its own; without ``--remount-ro /proc`` root can write ``/proc/sys``, the core pattern of the whole machine among it.

``--new-session`` is left out: whoever starts a launch makes it the first of a session, so no program has the person's terminal. One more
would put what is inside out of reach of a signal to the group before ``--die-with-parent`` holds there, and it would outlive its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from plan_mode_nb.features.sandbox.profile import Profile

MINIMUM: Final = "0.8"
"""The first version that can take user namespaces away."""
PRIVATE: Final = tuple(Path(each) for each in ("/run", "/tmp", "/var/tmp"))
"""Shown empty and the program's own: sockets of services and files of other programs lie there."""
TEMPORARY: Final = "/tmp"
_ALONE: Final = (
    "--unshare-user --disable-userns --cap-drop ALL --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent"
).split()
_RESOLVER: Final = Path("/etc/resolv.conf")
DENIALS: Final = ("Read-only file system", "Operation not permitted")
OFFLINE: Final = (
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
)


def wrapped(program: str, profile: Profile, argv: Sequence[str]) -> list[str]:
    """The command that runs ``argv`` confined. ``program``: bubblewrap's own path."""
    return [program, *_mounts(profile), *_ALONE, *([] if profile.network else ["--unshare-net"]), "--chdir", str(profile.root), "--", *argv]


def _mounts(profile: Profile) -> Iterator[str]:
    """Later ones lie over earlier ones: everything read-only, then what is private, the workspace, and what it must not hold open."""
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    private = [path for path in PRIVATE if path.is_dir() and not path.is_symlink()]
    for path in private:
        yield from ("--tmpfs", str(path))
    for path in _lost(profile.shown, private):
        yield from ("--ro-bind", str(path), str(path))
    if profile.network and _RESOLVER.exists() and _lost([real := Path(os.path.realpath(_RESOLVER))], private):
        yield from ("--ro-bind", str(real), str(real))
    yield from ("--bind" if profile.writes else "--ro-bind", str(profile.root), str(profile.root))
    for path in profile.guarded:
        yield from ("--ro-bind", str(path), str(path))
    for path in profile.hidden:
        if not _lost([path], private) or path.is_relative_to(profile.root):
            yield from ("--tmpfs", str(path))
    for path in _lost(profile.shown, profile.hidden):
        yield from ("--ro-bind", str(path), str(path))


def _lost(paths: Sequence[Path], covered: Sequence[Path]) -> list[Path]:
    """Those of the paths that lie in a folder that is shown empty."""
    return [path for path in paths if any(path.is_relative_to(each) for each in covered)]
