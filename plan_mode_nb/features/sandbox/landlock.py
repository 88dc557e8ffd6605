"""The second backend: landlock, rights that a process gives up by itself. It keeps most of the promises, so it is called partial.

It only ever allows: what lies below an allowed folder cannot be taken out again. So a workspace's ``.git`` is as writable as the rest of
it, and a hidden folder is left out by allowing everything around it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from plan_mode_nb.features.sandbox.profile import Profile

LAUNCHER: Final = Path(__file__).with_name("landlock_launcher.py")
GAPS: Final = (
    "a repository's .git in the workspace can be written, modes and times of the user's own files can be changed, "
    "and of the network only TCP is off"
)
DENIALS: Final = ("Permission denied", "Operation not permitted")
OFFLINE: Final = ("Temporary failure in name resolution", "Could not resolve host")


def wrapped(profile: Profile, scratch: Path, argv: Sequence[str]) -> list[str]:
    """The command that runs ``argv`` confined. ``scratch``: a folder of the program's own, for temporary files."""
    rules = {
        "read": [str(path) for path in _around(Path("/"), profile.hidden)] + [str(path) for path in profile.shown],
        "write": [str(scratch), *([str(profile.root)] if profile.writes else [])],
        "tcp": profile.network,
        "folder": str(profile.root),
    }
    return [sys.executable, "-I", str(LAUNCHER), json.dumps(rules), *argv]


def _around(folder: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """The largest folders and files below ``folder`` that hold nothing hidden."""
    inside = [path for path in hidden if path.is_relative_to(folder)]
    if not inside:
        yield folder
    elif folder not in inside:
        with os.scandir(folder) as found:
            entries = sorted((entry for entry in found if not entry.is_symlink()), key=lambda entry: entry.name)
        for entry in entries:
            yield from _around(Path(entry.path), inside)
