"""The command line: ``plan-mode-nb``, ``python -m plan_mode_nb`` and ``jupyter plan-mode``.

Each command imports what it needs when it runs, so that help is fast. Exit status: 0; 1 refused, failed or different, with one sentence
on stderr; 2 usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from plan_mode_nb.exceptions import PlanModeError

app = typer.Typer(
    name="plan-mode-nb",
    help="Plan mode for agents that live in notebooks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Log = Annotated[Path, typer.Argument(metavar="FILE", help="A notebook, a deepseek-harness log (.jsonl, .jsonl.zstd) or a journal.")]
Notebook = Annotated[Path, typer.Argument(metavar="NOTEBOOK", help="A notebook file.")]
SessionId = Annotated[str | None, typer.Option("--session", metavar="ID", help="Which session of the notebook; default: the main agent's.")]


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where to put the notebook; default: a scratch folder.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
    headless: Annotated[bool, typer.Option("--headless", help="Run the notebook here and print what happened.")] = False,
) -> None:
    """Open the demo notebook in JupyterLab. It plays a recorded session: no key is needed."""
    from plan_mode_nb.hosts.cli.demo import run_headless, serve

    raise typer.Exit(run_headless(folder) if headless else serve(folder, open_browser=not no_browser))


@app.command()
def run(
    notebook: Notebook,
    timeout: Annotated[int | None, typer.Option(metavar="SECONDS", min=1, help="How long one cell may take; default: no limit.")] = None,
    kernel: Annotated[str | None, typer.Option(metavar="NAME", help="Which kernel; default: the notebook's.")] = None,
) -> None:
    """Execute a notebook in place. The log of its agent lands in its metadata."""
    from plan_mode_nb.hosts.cli.run import run_command

    raise typer.Exit(run_command(notebook, timeout=timeout, kernel=kernel))


@app.command()
def fold(
    file: Log,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    at: Annotated[int | None, typer.Option("--at", metavar="SEQ", min=0, help="Up to and including this event.")] = None,
    session: SessionId = None,
) -> None:
    """Print what a log amounts to."""
    from plan_mode_nb.hosts.cli.reading import fold_command

    fold_command(file, as_json=as_json, at=at, session=session)


@app.command()
def log(file: Log, session: SessionId = None) -> None:
    """Print a log as a readable timeline."""
    from plan_mode_nb.hosts.cli.reading import log_command

    log_command(file, session=session)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="SESSION", help="Where the session is: a log, a journal or another notebook.")],
    notebook: Annotated[Path, typer.Argument(metavar="NOTEBOOK", help="The notebook it goes into; made if there is none.")],
    session: SessionId = None,
) -> None:
    """Put a session into a notebook. Its agent then goes on with that session."""
    from plan_mode_nb.hosts.cli.moving import import_command

    import_command(source, notebook, session=session)


@app.command()
def export(
    notebook: Annotated[Path, typer.Argument(metavar="NOTEBOOK", help="A notebook, or anything else that holds a session.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write: .jsonl, or compressed .jsonl.zstd.")],
    session: SessionId = None,
) -> None:
    """Write a session as a deepseek-harness log."""
    from plan_mode_nb.hosts.cli.moving import export_command

    export_command(notebook, file, session=session)


Timeout = Annotated[int | None, typer.Option(metavar="SECONDS", min=1, help="How long one cell may take; default: no limit.")]
Kernel = Annotated[str | None, typer.Option(metavar="NAME", help="Which kernel; default: the notebook's.")]
Tools = Literal["rebuilds", "all"]
Sanitize = Annotated[
    Path | None, typer.Option("--sanitize-with", metavar="FILE", help="nbval's sanitize file; it applies to outputs and tool results.")
]


@app.command()
def replay(
    notebooks: Annotated[list[Path], typer.Argument(metavar="NOTEBOOK…", help="Notebook files that carry sessions.")],
    timeout: Timeout = None,
    kernel: Kernel = None,
    sanitize: Sanitize = None,
    tools: Annotated[
        Tools, typer.Option(help="Which tools run again: those that later cells need, or all, in a copy of the folder.")
    ] = "rebuilds",
) -> None:
    """Run recorded notebooks again without a model. Stops at the first difference."""
    from plan_mode_nb.hosts.cli.replay import replay_command

    raise typer.Exit(replay_command(notebooks, timeout=timeout, kernel=kernel, sanitize=sanitize, all_tools=tools == "all"))


@app.command()
def record(
    notebooks: Annotated[list[Path], typer.Argument(metavar="NOTEBOOK…", help="Notebook files that carry sessions.")],
    headers: Annotated[
        bool, typer.Option("--headers", help="Ask no model: only take in guidance and tool descriptions that an upgrade changed.")
    ] = False,
    timeout: Timeout = None,
    kernel: Kernel = None,
    sanitize: Sanitize = None,
) -> None:
    """Record notebooks again, with the recorded answers in order."""
    from plan_mode_nb.hosts.cli.record import headers_command, record_command

    if headers:
        raise typer.Exit(headers_command(notebooks, timeout=timeout, kernel=kernel, sanitize=sanitize))
    raise typer.Exit(max(record_command(notebook, timeout=timeout, kernel=kernel) for notebook in notebooks))


@app.command()
def merge(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="What both sides grew from; empty where there was nothing.")],
    ours: Annotated[Path, typer.Argument(metavar="OURS", help="One side. The result is written over it.")],
    theirs: Annotated[Path, typer.Argument(metavar="THEIRS", help="The other side.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What to call the notebook in messages.")] = None,
) -> None:
    """Merge two copies of a notebook that grew apart. A git merge driver: plan-mode-nb merge %O %A %B %P."""
    from plan_mode_nb.hosts.cli.merge import merge_command

    raise typer.Exit(merge_command(base, ours, theirs, name=name))


@app.command()
def collect(notebook: Notebook) -> None:
    """Move the sessions that cell outputs and waiting journals carry into the notebook's metadata."""
    from plan_mode_nb.hosts.cli.collect import collect_command

    raise typer.Exit(collect_command(notebook))


@app.command()
def strip(
    notebook: Notebook,
    keep_folded: Annotated[bool, typer.Option("--keep-folded", help="Leave a readable transcript in markdown cells.")] = False,
) -> None:
    """Remove every session from a notebook, before it is published. They do not come back from any other copy."""
    from plan_mode_nb.hosts.cli.strip import strip_command

    strip_command(notebook, keep_folded=keep_folded)


@app.command()
def doctor() -> None:
    """Check this installation. Says what is installed, enabled and reachable, and what to do about the rest."""
    from plan_mode_nb.hosts.cli.doctor import doctor_command

    raise typer.Exit(doctor_command())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command (``sys.argv`` where none is given) and exit."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(None if arguments is None else list(arguments))
    except PlanModeError as error:
        typer.echo(f"plan-mode-nb: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(f"plan-mode-nb: {error.filename or 'the system'} refused ({error.strerror or error}); mend that and try again", err=True)
        sys.exit(1)
