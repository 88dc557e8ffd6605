"""``replay``: recorded notebooks run again without a model, a network or a person; the first difference ends it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.hosts.cli.replaying import replay_notebook


def replay_command(notebooks: Sequence[Path], *, timeout: int | None, kernel: str | None, sanitize: Path | None, all_tools: bool) -> int:
    """Replay each notebook and print one line for it; the exit status is 1 at the first difference."""
    for path in notebooks:
        try:
            replayed = replay_notebook(path, "strict", timeout=timeout, kernel=kernel, sanitize=sanitize, all_tools=all_tools)
        except PlanModeError as error:
            typer.echo(f"plan-mode-nb: {error}", err=True)
            return 1
        for note in replayed.notes:
            typer.echo(f"note: {path.name}: {note}", err=True)
        if replayed.difference:
            typer.echo(f"plan-mode-nb: {path.name}: {replayed.difference}", err=True)
            return 1
        typer.echo(f"{path.name}: {replayed.parts} recorded part{'' if replayed.parts == 1 else 's'} replayed, no difference.")
    return 0
