"""Gives up rights, then becomes the program: ``landlock_launcher.py RULES PROGRAM [ARGUMENT]…``, a script of its own.

RULES is one JSON object: ``read`` and ``write`` (paths), ``tcp`` (whether it may be used), ``folder`` (where to start). Whatever fails
before the program starts ends with status 125 and one line: the program never runs with more rights than these.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

FAILED: Final = 125
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION: Final = 0x20080522
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


def confine(rules: dict[str, Any]) -> None:
    """Give up everything but what the rules allow; it cannot be had back.

    Raises:
        OSError, ImportError: it could not be given up. Start nothing then.
    """
    from py_landlock import AccessFs, Landlock

    look = AccessFs.READ_FILE | AccessFs.READ_DIR | AccessFs.EXECUTE
    change = AccessFs.WRITE_FILE | AccessFs.TRUNCATE | AccessFs.REMOVE_DIR | AccessFs.REMOVE_FILE | AccessFs.REFER
    make = AccessFs.MAKE_DIR | AccessFs.MAKE_REG | AccessFs.MAKE_SYM | AccessFs.MAKE_FIFO | AccessFs.MAKE_SOCK
    landlock = Landlock(strict=False)
    # Listing is not reading: names in a folder around a hidden one stay visible.
    landlock.add_path_rule("/", access=AccessFs.READ_DIR)
    for path in rules["read"]:
        _allow(landlock, path, look, AccessFs.READ_FILE | AccessFs.EXECUTE)
    for name in _DEVICES:
        _allow(
            landlock, f"/dev/{name}", AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.READ_DIR, AccessFs.READ_FILE | AccessFs.WRITE_FILE
        )
    for path in rules["write"]:
        _allow(landlock, path, look | change | make, look)
    if rules["tcp"]:
        landlock.allow_all_network()
    _drop_capabilities()
    landlock.apply()


def _allow(landlock: Any, path: str, folder_access: Any, file_access: Any) -> None:
    """A path that has gone meanwhile, or cannot be looked at, is simply not allowed."""
    if os.access(path, os.F_OK):
        landlock.add_path_rule(path, access=folder_access if Path(path).is_dir() else file_access)


def _drop_capabilities() -> None:
    """Root without capabilities cannot load modules, mount, or trace; the bounding set goes first, or a new program would regain them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.geteuid() == 0:
        for capability in range(_LAST_CAPABILITY + 1):
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities could not be given up")


def main(arguments: list[str]) -> None:
    """Confine this process and become the program."""
    try:
        rules = json.loads(arguments[0])
        os.chdir(rules["folder"])
        confine(rules)
        os.execvp(arguments[1], arguments[1:])
    except Exception as error:  # noqa: BLE001 -- whatever it is, nothing may run with the rights that are still there
        sys.stderr.write(f"landlock: the program was not started: {error}\n")
        os._exit(FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
