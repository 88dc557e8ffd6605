"""``fold`` and ``log``: what a log amounts to, and how it went. Files are read, never written."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.exceptions import FormatError, LogError
from plan_mode_nb.log.fold import Fold
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.sources import open_any


def open_session(file: Path, session: str | None, folds: Sequence[Fold[Any, Any]] = ()) -> Session:
    """Open a log and check it whole. What a file has beside it that could not be read is said on stderr. ``folds``: as a session has them.

    Raises:
        StoreError, LogError: it cannot be read, holds no such session, or breaks a rule of the log.
    """
    return _opened(file, session, folds)[0]


def _opened(file: Path, session: str | None, folds: Sequence[Fold[Any, Any]] = ()) -> tuple[Session, list[tuple[str, str]]]:
    """The session, and what it is to others of the file: whose child, and which are its children."""
    from plan_mode_nb.render.lineage import child_line, descendants, is_child

    try:
        source = open_any(file, session)
        opened = Session(source.header, clock=_never, lines=source.lines, folds=folds)
    except LogError as error:
        raise error if file.name in str(error) else FormatError(f"{file.name}: {error}") from None
    for problem in source.problems:
        typer.echo(f"note: {problem}", err=True)
    own = StoredSession(opened.header, opened.lines)
    of = [("child of", f"{opened.header.parent_session}  {child_line(own)}")] if is_child(opened.header) else []
    return opened, [*of, *(("child", f"{each.header.id}  {child_line(each)}") for each in descendants(opened.id, source.others))]


def fold_command(file: Path, *, as_json: bool, at: int | None, session: str | None) -> None:
    """Print the fold of a log, or of its events up to and including ``at``.

    Raises:
        StoreError, LogError: as :func:`open_session`; or there is no event ``at``.
    """
    from plan_mode_nb.folds.summary import SUMMARY, fold_summary, session_summary

    opened, related = _opened(file, session, SUMMARY if at is None else ())
    if at is not None and at >= len(opened):
        last = f"it ends at event {len(opened) - 1}; name that or an earlier one" if len(opened) else "it is empty; leave out --at"
        raise FormatError(f"{file.name} has no event {at}: {last}")
    summary = session_summary(opened) if at is None else fold_summary(opened.header, opened.events[: at + 1])
    if as_json:
        # Machines read this, whatever encoding the terminal has.
        utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        typer.echo(json.dumps(summary, ensure_ascii=not utf8, indent=2))
    else:
        typer.echo(readable(summary, related))


def readable(summary: dict[str, Any], related: Sequence[tuple[str, str]] = ()) -> str:
    """A fold's summary (see :func:`~plan_mode_nb.folds.summary.fold_summary`) as a few lines. ``related``: more of them, named."""
    from plan_mode_nb.plan.visible import visible_line

    plan, usage, header = summary["plan"], summary["usage"], summary["header"]
    pending = {None: "", True: ", on from the next step", False: ", off from the next step"}[plan["pending"]]
    config = (header or {}).get("config", {})
    todos = summary["todos"] or []
    done = sum(todo["status"] == "completed" for todo in todos)
    facts = {
        "session": summary["session"],
        "events": summary["events"],
        "turns": _turns(summary["turns"]),
        "messages": len(summary["messages"]),
        "plan mode": f"{'on' if plan['active'] else 'off'}{pending}",
        "model": f"{config.get('provider')}/{config.get('model')}" if header else "none asked yet",
        "todos": f"{done} of {len(todos)} done",
        "approval": summary["approval_policy"] or "default",
        "sandbox": summary["sandbox_mode"] or "default",
        "tokens": f"{usage['uncachedInputTokens']:,} in, {usage['cacheReadTokens']:,} cached, {usage['outputTokens']:,} out",
    }
    lines = [*facts.items(), *(("open review", review["title"]) for review in summary["open_reviews"]), *related]
    return "\n".join(f"{name:<12} {visible_line(str(value))}" for name, value in lines)


def log_command(file: Path, *, session: str | None) -> None:
    """Print the timeline of a log, with local times.

    Raises:
        StoreError, LogError: as :func:`open_session`.
    """
    from plan_mode_nb.render.transcript import timeline

    opened, related = _opened(file, session)
    typer.echo(timeline(opened.events, clock=_local_time) or "nothing has happened yet")
    for name, value in related:
        typer.echo(f"{name} {value}")


def _turns(turns: list[dict[str, Any]]) -> str:
    ends = [turn["end"]["kind"] if turn["end"] else "open" for turn in turns]
    counted = ", ".join(f"{ends.count(kind)} {kind}" for kind in dict.fromkeys(ends))
    return f"{len(turns)}" + (f" ({counted})" if counted else "")


def _local_time(time: int) -> str:
    return datetime.fromtimestamp(time / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _never() -> int:
    raise AssertionError("a command that reads a log appends nothing to it")
