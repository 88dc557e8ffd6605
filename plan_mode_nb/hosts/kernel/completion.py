"""Completion of what may follow a magic's name."""

from __future__ import annotations

import re
from typing import Any

from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.hosts.kernel.session_magic import SUBCOMMANDS

WORDS: dict[str, tuple[str, ...]] = {
    "plan": ("on", "off"),
    "session": SUBCOMMANDS,
    "sandbox": ("read-only", "workspace-write", "danger-full-access"),
    "approval": ("ask", "never"),
}
"""The first word after a line magic."""
OPTIONS: dict[str, tuple[str, ...]] = {"plan": ("--image",), "agent": ("--image", "--as")}
"""Any word on the first line of a cell magic."""
_TYPED = re.compile(r"\s*(?P<sign>%%?)(?P<name>\w+)\s+(?:(?P<before>.*)\s)?(?P<word>\S*)")


def words_for(line: str, *, is_first: bool) -> list[str]:
    """What may stand where ``line``, up to the cursor, ends. ``is_first``: whether it is the first line of its cell."""
    typed = _TYPED.fullmatch(line)
    if typed is None:
        return []
    if typed["sign"] == "%%":
        words = OPTIONS.get(typed["name"], ()) if is_first else ()
    else:
        words = WORDS.get(typed["name"], ()) if not typed["before"] else ()
    return [word for word in words if word.startswith(typed["word"])]


def install(shell: Any, names: list[str]) -> Undo:
    """Complete after these magics, and offer nothing else there; returns the undo."""
    from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

    @context_matcher(identifier="plan_mode_nb")  # type: ignore[untyped-decorator]
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        line = context.line_with_cursor[: context.cursor_position]
        typed = _TYPED.fullmatch(line)
        known = typed is not None and typed["name"] in names
        words = words_for(line, is_first=context.cursor_line == 0) if known else []
        return SimpleMatcherResult(
            completions=[SimpleCompletion(word, type="keyword") for word in words], suppress=bool(words), ordered=True
        )

    matchers: list[Any] = shell.Completer.custom_matchers
    matchers.append(matcher)

    def undo() -> None:
        if matcher in matchers:
            matchers.remove(matcher)

    return undo
