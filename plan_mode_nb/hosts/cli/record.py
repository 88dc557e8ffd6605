"""``record``: a notebook is recorded again on purpose, with the answers of its last recording; or takes in what an upgrade changed."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import typer
from msgspec import UNSET
from msgspec.structs import replace

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.exceptions import ReplayError
from plan_mode_nb.hosts.cli.execute import execute
from plan_mode_nb.hosts.cli.replaying import Replayed, replay_notebook
from plan_mode_nb.hosts.cli.run import events_of
from plan_mode_nb.log.codec import decode, encode
from plan_mode_nb.replay.environment import MODE
from plan_mode_nb.replay.report import Drift
from plan_mode_nb.replay.unrepeated import unrepeated
from plan_mode_nb.store.files import read_bytes
from plan_mode_nb.store.files import replace as replace_file
from plan_mode_nb.store.notebook import load_document, save_document

LISTED: Final = 8
"""How much of what recording again leaves out is listed."""


def headers_command(notebooks: Sequence[Path], *, timeout: int | None, kernel: str | None, sanitize: Path | None) -> int:
    """Take the guidance and tool descriptions of now into the recordings, where everything else is as recorded. No model is asked."""
    for path in notebooks:
        replayed = replay_notebook(path, "headers", timeout=timeout, kernel=kernel, sanitize=sanitize)
        if replayed.difference:
            raise ReplayError(f"{path.name} was left as it is, because more than its headers differs: {replayed.difference}")
        if not replayed.drifts:
            typer.echo(f"{path.name}: no drift.")
            continue
        save_document(path, _with_headers(load_document(path), replayed))
        count = len(replayed.drifts)
        typer.echo(f"{path.name}: {count} header{'' if count == 1 else 's'} brought up to date; everything else is as recorded.")
    return 0


def _with_headers(document: Document, replayed: Replayed) -> Document:
    sessions = dict(document.sessions)
    for drift in replayed.drifts:
        stored = sessions[drift.session]
        sessions[drift.session] = replace(stored, lines=_lines(stored, drift))
    return replace(document, sessions=sessions)


def _lines(stored: StoredSession, drift: Drift) -> list[str]:
    lines = list(stored.lines)
    event = decode(lines[drift.seq])
    lines[drift.seq] = encode(msgspec.structs.replace(event, data={**event.data, "header": drift.header}))
    return lines


def record_command(path: Path, *, timeout: int | None, kernel: str | None) -> int:
    """Run the notebook with its model; reviews, questions and approvals get the answers of the last recording, in order.

    What a person did beside the cells (steers, the chip, Stop) has no place in another conversation: it is left out, and listed. The new
    sessions take the place of the old ones, whose ids do not come back. Where a cell fails, the notebook is as it was.

    Raises:
        StoreError, FormatError, ReplayError: it cannot be read or written, or a cell failed.
    """
    before, bytes_before = load_document(path), read_bytes(path)
    executed = execute(path, timeout=timeout, kernel=kernel, environment={**os.environ, MODE: "record"})
    if executed.failure:
        replace_file(path, bytes_before)
        raise ReplayError(f"{path.name} is as it was: {executed.failure}")
    after = load_document(path)
    kept = {id: session for id, session in after.sessions.items() if id in executed.sessions}
    agents = {name: id for name, id in after.agents.items() if id in kept}
    gone = after.stripped | {id for id in before.sessions if id not in kept}
    save_document(path, replace(after, sessions=kept, agents=agents, stripped=gone))
    for line in _difference(before, replace(after, sessions=kept)):
        typer.echo(line)
    left_out = [phrase for id in before.sessions for phrase in _unrepeated(before, id)]
    if left_out:
        more = f"; and {len(left_out) - LISTED} more" if len(left_out) > LISTED else ""
        typer.echo(f"note: {path.name}: not repeated, because only a person can say when: {'; '.join(left_out[:LISTED])}{more}.", err=True)
    typer.echo(f"{path.name}: recorded again, {len(kept)} session{'' if len(kept) == 1 else 's'}.")
    return 0


def _unrepeated(document: Document, id: str) -> Iterator[str]:
    header = document.sessions[id].header
    return unrepeated(events_of(document, id), 0 if header.seed_length is UNSET else header.seed_length)


def _difference(before: Document, after: Document) -> list[str]:
    """The logs' timelines as a diff."""
    lines = list(difflib.unified_diff(_timeline(before), _timeline(after), "recorded before", "recorded now", lineterm="", n=1))
    return lines or ["The log is the same, but for ids and times."]


def _timeline(document: Document) -> list[str]:
    from plan_mode_nb.render.transcript import timeline

    ordered: list[Any] = sorted(document.sessions, key=lambda id: document.sessions[id].header.created_at)
    return [line for id in ordered for line in timeline(events_of(document, id)).splitlines()]
