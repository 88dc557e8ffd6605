"""``glob`` and ``grep``: finding files by name, and lines by a regular expression."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct, field

from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Tool, ToolError
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.features.tools.paths import Workspace, refused, unreadable
from plan_mode_nb.features.tools.search_worker import MAX_BYTES, Request
from plan_mode_nb.features.tools.walk import GlobError, GlobPattern, Walk
from plan_mode_nb.features.tools.work import Budget, in_thread

GLOB: Final = "glob"
GREP: Final = "grep"
MAX_PATHS: Final = 1_000
MAX_HITS: Final = 500
LINE_LIMIT: Final = 500
SEARCH_SECONDS: Final = 10.0
_GRACE: Final = 2.0
_WORKER: Final = "plan_mode_nb.features.tools.search_worker"
Folder = Annotated[str, msgspec.Meta(description="Where to search, relative to the workspace or absolute; left out: the workspace.")]


def glob_tool(workspace: Workspace, results: Results) -> Tool:
    """The tool for a registry."""

    async def glob(
        pattern: Annotated[str, msgspec.Meta(description="Such as **/*.py, data/*.{csv,parquet} or */ (folders).")],
        path: Folder = ".",
    ) -> str:
        """Find files and folders by name, sorted by path; folders end in a slash.

        ``**`` stands for any number of folders. Version control, caches, node_modules and virtual environments are left out.
        """
        start, wanted, closed = workspace.find(path), _pattern(pattern), workspace.closed
        shown = workspace.show(start)

        def work(budget: Budget) -> tuple[list[str], bool, int]:
            _check_folder(workspace, start, shown)
            walk = Walk(
                str(start), spent=lambda: budget.spent, descend=wanted.may_hold, enter=lambda folder: not closed.keeps_folder(folder)
            )
            found = [
                workspace.show(Path(entry.path)) + "/" * entry.is_folder
                for entry in walk
                if wanted.matches(entry.parts) and (entry.is_folder or not wanted.folders_only)
            ]
            return found, walk.complete, walk.unreadable

        found, complete, unread = await in_thread(work, SEARCH_SECONDS)
        notes = _limits(complete, unread)
        if not found:
            return "\n".join([f"nothing below {shown} matches {pattern}", *notes])
        if len(found) > MAX_PATHS:
            notes.append(f"[{len(found) - MAX_PATHS:,} more paths match; use a narrower pattern]")
        return results.text("\n".join([*found[:MAX_PATHS], *notes]))

    return tool_from(glob, name=GLOB)


def grep_tool(workspace: Workspace, results: Results) -> Tool:
    """The tool for a registry."""

    async def grep(
        pattern: Annotated[str, msgspec.Meta(description="A regular expression of Python's `re`, searched in each line.")],
        path: Folder = ".",
        glob: Annotated[str | None, msgspec.Meta(description="Only files like this: *.py (a name), or src/**/*.ts (a path).")] = None,
        ignore_case: bool = False,
        context: Annotated[int, msgspec.Meta(ge=0, le=20, description="Lines to show before and after each hit.")] = 0,
    ) -> str:
        """Search the lines of text files: ``path:number:line`` for a hit, ``path-number-line`` for a line around it.

        Notebooks are searched as `read` shows them. Binary files, links, version control, caches, node_modules and virtual
        environments are left out.
        """
        start = workspace.find(path)
        shown = workspace.show(start)
        below = _below(glob)
        request = Request(
            pattern=pattern,
            ignore_case=ignore_case,
            context=context,
            start=str(start),
            glob=below,
            hits=MAX_HITS,
            seconds=SEARCH_SECONDS,
            closed=list(workspace.closed.folders),
            opened=list(workspace.closed.opened),
        )
        await in_thread(lambda budget: _check_readable(workspace, start, shown))
        return _report(await _search(request), workspace, start, request, results)

    return tool_from(grep, name=GREP)


def _pattern(text: str) -> GlobPattern:
    try:
        return GlobPattern(text)
    except GlobError as error:
        raise ToolError(str(error), code="BAD_ARGUMENTS") from None


def _below(glob: str | None) -> str | None:
    """A pattern of one name is meant at any depth."""
    if glob is None or not glob.strip():
        return None
    anywhere = glob if "/" in glob.strip().strip("/") else f"**/{glob.strip()}"
    _pattern(anywhere)
    return anywhere


def _check_folder(workspace: Workspace, start: Path, shown: str) -> None:
    if not stat.S_ISDIR(_mode(workspace, start, shown)):
        raise ToolError(f"{shown} is no folder; send the folder as path, or read the file", code="NOT_A_FOLDER")


def _check_readable(workspace: Workspace, start: Path, shown: str) -> None:
    """A folder or a regular file; opening a pipe would wait for ever."""
    mode = _mode(workspace, start, shown)
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise ToolError(f"{shown} is a pipe, device or socket; search a folder or a regular file", code="NOT_A_FILE")


def _mode(workspace: Workspace, start: Path, shown: str) -> int:
    if workspace.closed.keeps(str(start)):
        raise refused(shown)
    try:
        return os.stat(start).st_mode
    except OSError as error:
        raise unreadable(shown, start, error) from None


def _limits(complete: bool, unread: int) -> list[str]:
    notes = [] if complete else ["[this is not all: the search was stopped, use a narrower path or pattern]"]
    return [*notes, f"[{unread} could not be read]"] if unread else notes


class _Process(Struct):
    """The worker, which may be ended before it began."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: subprocess.Popen[bytes] | None = None
    _ended: bool = False

    def run(self, request: Request) -> tuple[bytes, str]:
        """What it wrote, and why it failed (empty: it did not, or its time was over). Call in a thread."""
        with self._lock:
            if self._ended:
                return b"", ""
            self._running = _spawn()
        try:
            written, complaint = self._running.communicate(json.dumps(request).encode(), timeout=request["seconds"] + _GRACE)
        except subprocess.TimeoutExpired:
            self._running.kill()
            return self._running.communicate()[0], ""
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        return written, (last or f"status {self._running.returncode}") if self._running.returncode > 0 else ""

    def end(self) -> None:
        """End it now; harmless when it is gone."""
        with self._lock:
            self._ended = True
            if self._running is not None:
                self._running.kill()


def _spawn() -> subprocess.Popen[bytes]:
    package_home = str(Path(__file__).parents[3])
    search_path = os.pathsep.join(filter(None, [package_home, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-P", "-X", "utf8", "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search_path},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


async def _search(request: Request) -> list[dict[str, Any]]:
    """The worker's rows; cut short where its time was over. Cancelled: the worker is ended at once."""
    process = _Process()
    try:
        written, failure = await asyncio.to_thread(process.run, request)
    except OSError as error:
        raise ToolError(f"the search could not be started ({error}); search with `python` instead", code="SEARCH_FAILED") from None
    finally:
        process.end()
    if failure:
        raise ToolError(f"the search failed ({failure}); use a narrower path or a simpler pattern", code="SEARCH_FAILED")
    return [json.loads(line) for line in written.split(b"\n")[:-1]]


def _report(rows: list[dict[str, Any]], workspace: Workspace, start: Path, request: Request, results: Results) -> str:
    if rows and "bad" in rows[0]:
        raise ToolError(
            f"the pattern is no regular expression: {rows[0]['bad']}; escape characters that are meant literally with a backslash",
            code="BAD_PATTERN",
        )
    end = rows[-1].get("end") if rows else None
    groups = [group for row in rows if "file" in row for group in _groups(row, workspace, start, results)]
    lines = ("\n--\n" if request["context"] else "\n").join(groups)
    notes = _limits(end is not None and not end["late"], end["unreadable"] if end else 0)
    if end and end["full"]:
        notes.append(f"[there are more than {MAX_HITS} hits; use a narrower path, glob or pattern]")
    if end and end["large"]:
        notes.append(f"[{end['large']} larger than {MAX_BYTES // 1_000_000} MB left out]")
    if end and end["binary"] and os.path.isfile(start):
        notes.append("[the file is no text]")
    if not lines:
        return "\n".join([f"no line in {workspace.show(start)} matches {request['pattern']}", *notes])
    return results.text("\n".join([lines, *notes]))


def _groups(row: dict[str, Any], workspace: Workspace, start: Path, results: Results) -> Iterator[str]:
    """Each group of one file as its lines."""
    shown = workspace.show(start / row["file"] if row["file"] else start)
    for group in row["groups"]:
        lines = []
        for number, hit, line in group:
            mark, clean = ":" if hit else "-", results.clean(line)
            lines.append(f"{shown}{mark}{number}{mark}{clean if len(clean) <= LINE_LIMIT else clean[:LINE_LIMIT] + '…'}")
        yield "\n".join(lines)
