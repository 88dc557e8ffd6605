"""``doctor``: what is installed, enabled and reachable, and what to do about the rest, a line each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import typer

from plan_mode_nb.hosts.cli import installed, kept, running
from plan_mode_nb.hosts.cli.findings import Finding, line
from plan_mode_nb.store.journal import journal_folder


def doctor_command() -> int:
    """Print each finding as it comes; 1 where anything is to be done. No key's value is printed, and none is sent anywhere."""
    is_fine = True
    for finding in _findings():
        typer.echo(line(finding))
        is_fine = is_fine and finding.mark == "ok"
    return 0 if is_fine else 1


def _findings() -> Iterator[Finding]:
    from jupyter_core.paths import jupyter_config_path, jupyter_path

    folders, shipped = ([Path(each) for each in paths] for paths in (jupyter_config_path(), jupyter_path(installed.SHIPPED)))
    yield from installed.packages()
    yield from installed.front_ends()
    yield from installed.config_files(folders)
    yield installed.guidance([*folders, *shipped])
    yield from installed.mcp_servers(folders)
    yield running.sandbox()
    finding, models = running.kernel()
    yield finding
    if models is not None:
        yield from running.models(models, os.environ)
    yield from kept.waiting(journal_folder(create=False))
