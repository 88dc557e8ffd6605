"""``strip``: a notebook without its conversations, for publication."""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path

import typer

from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.document.strip import strip_notebook
from plan_mode_nb.exceptions import FormatError, LogError
from plan_mode_nb.log.session import Session
from plan_mode_nb.render.lineage import child_line, is_child, own_events
from plan_mode_nb.render.source import inert_markdown
from plan_mode_nb.render.transcript import transcript
from plan_mode_nb.store.notebook import change_notebook, load_document


def strip_command(notebook: Path, *, keep_folded: bool) -> None:
    """Strip in place. ``keep_folded``: markdown cells tell each conversation instead.

    Raises:
        StoreError, FormatError: it cannot be read or written, or a conversation that is to be told cannot be read; it is as it was.
    """
    found = load_document(notebook)
    if keep_folded and found.problems:
        raise FormatError(f"{notebook.name}: {found.problems[0]}; strip without --keep-folded removes it")
    before = found.stripped
    change_notebook(notebook, lambda each: strip_notebook(each, transcript=_told if keep_folded else None))
    gone = sorted(load_document(notebook).stripped - before)
    count = f"{len(gone)} session{'s' * (len(gone) != 1)}"
    kept = ", kept as a transcript in its last cells" if gone and keep_folded else ""
    typer.echo(f"{notebook.name}: {count} removed{kept}." if gone else f"{notebook.name}: there was no session to remove.")


def _told(stored: StoredSession) -> list[str]:
    try:
        session = Session(stored.header, clock=lambda: stored.header.created_at, lines=stored.lines)
    except LogError as error:
        raise FormatError(f"session {stored.header.id} cannot be told ({error}); strip without --keep-folded removes it") from error
    if not is_child(stored.header):
        return transcript(session.events)
    # What a child was forked with is told by the session that it was forked from.
    told = transcript(dropwhile(lambda event: event.type != "turn/start", own_events(stored)))
    return [f"*Child agent {inert_markdown(child_line(stored))}*", *told]
