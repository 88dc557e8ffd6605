"""Completion of what may follow a magic's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.hosts.kernel.session_magic import SUBCOMMANDS

WORDS: dict[str, tuple[str, ...]] = {
    "plan": ("on", "off"),
    "agent": (),
    "session": SUBCOMMANDS,
    "sandbox": ("read-only", "workspace-write", "danger-full-access"),
    "approval": ("ask", "never"),
}
CELL_OPTIONS = ("--image", "--as")


def install(shell: Any, host: Any, names: list[str]) -> Undo:
    """Complete the first word after each magic; returns the undo."""
    hook = shell.strdispatchers.get("complete_command")
    if hook is None:
        return lambda: None
    return undo_all([_install_one(shell, name) for name in names])


def _install_one(shell: Any, name: str) -> Undo:
    keys = [f"%{name}", f"%%{name}"]

    def complete(_shell: Any, event: Any) -> list[str]:
        typed = event.line.split()
        if len(typed) > 2 or (len(typed) == 2 and event.line.endswith(" ")):
            return []
        words = CELL_OPTIONS if event.line.lstrip().startswith("%%") else WORDS.get(name, ())
        return [word for word in words if word.startswith(event.symbol)]

    for key in keys:
        shell.set_hook("complete_command", complete, str_key=key)
    return lambda: _remove(shell, keys, complete)


def _remove(shell: Any, keys: list[str], complete: Callable[..., Any]) -> None:
    """IPython has no call for taking a completer out again; it keeps each as a method of the shell."""
    dispatcher = shell.strdispatchers["complete_command"]
    for key in keys:
        chain = dispatcher.strs.get(key)
        if chain is None:
            continue
        chain.chain[:] = [entry for entry in chain.chain if getattr(entry[1], "__func__", None) is not complete]
        if not chain.chain:
            del dispatcher.strs[key]
