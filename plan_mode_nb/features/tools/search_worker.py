"""The process that ``grep`` searches in: a hostile pattern cannot be interrupted inside this interpreter, but a process can be ended.

One JSON request on standard input, JSON lines out: ``{"file", "groups": [[[number, is_hit, line], …], …]}`` for each file with hits, in
the order of the walk, then ``{"end": {…}}`` with what was left out; or ``{"bad": sentence}`` for a pattern that is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, TypedDict

from plan_mode_nb.features.tools.closed import Closed
from plan_mode_nb.features.tools.contents import HEAD, NOTEBOOK_SUFFIX, Binary, kind_of, split_lines
from plan_mode_nb.features.tools.notebook_text import notebook_text
from plan_mode_nb.features.tools.walk import GlobPattern, Parts, Walk

MAX_BYTES: Final = 50_000_000
MAX_LINE: Final = 8_000
"""Characters of one line that are handed over."""
MEMORY: Final = 2 << 30
Group = list[list[Any]]


class Request(TypedDict):
    """``start``: absolute path of a folder or file; ``glob``: null or a pattern of paths below it; ``hits``: where to stop.

    ``closed``, ``opened``: as in :class:`Closed`.
    """

    pattern: str
    ignore_case: bool
    context: int
    start: str
    glob: str | None
    hits: int
    seconds: float
    closed: list[str]
    opened: list[str]


class End(TypedDict):
    """What was not searched, and why the search ended. ``full``: it had enough hits; ``late``: its time was over."""

    binary: int
    large: int
    unreadable: int
    full: bool
    late: bool


class Search:
    """One request being answered."""

    def __init__(self, request: Request, pattern: re.Pattern[str], emit: Callable[[dict[str, Any]], None]) -> None:
        self._request = request
        self._pattern = pattern
        self._emit = emit
        self._deadline = time.monotonic() + request["seconds"]
        self._left = request["hits"]
        self._closed = Closed(tuple(request["closed"]), tuple(request["opened"]))
        self.end = End(binary=0, large=0, unreadable=0, full=False, late=False)

    def run(self) -> None:
        """Search everything, or as much as time and hits allow."""
        start = self._request["start"]
        if os.path.isfile(start):
            self._file((), start)
            return
        start = os.path.realpath(start)
        glob = GlobPattern(self._request["glob"]) if self._request["glob"] else None
        descend = glob.may_hold if glob else lambda parts: True
        walk = Walk(start, spent=self._spent, descend=descend, enter=lambda folder: not self._closed.keeps_folder(folder))
        for entry in walk:
            if entry.is_file and (glob is None or glob.matches(entry.parts)):
                self._file(entry.parts, entry.path)
            if self.end["full"] or self.end["late"]:
                break
        self.end["late"] |= not walk.complete
        self.end["unreadable"] += walk.unreadable

    def _spent(self) -> bool:
        return time.monotonic() > self._deadline

    def _file(self, parts: Parts, path: str) -> None:
        lines = self._lines_of(path)
        hits = list(self._hits(lines)) if lines is not None else []
        if lines is not None and hits:
            groups = _groups(lines, hits, self._request["context"])
            self._emit({"file": "/".join(parts), "groups": groups})

    def _lines_of(self, path: str) -> list[str] | None:
        try:
            if os.path.getsize(path) > MAX_BYTES:
                self.end["large"] += 1
                return None
            with open(path, "rb") as file:
                if self._closed.keeps_open_file(file.fileno(), path):
                    return None
                data = file.read(MAX_BYTES)
        except OSError:
            self.end["unreadable"] += 1
            return None
        kind = kind_of(data[:HEAD], whole=len(data) <= HEAD)
        if isinstance(kind, Binary):
            self.end["binary"] += 1
            return None
        cells = notebook_text(data) if path.lower().endswith(NOTEBOOK_SUFFIX) else None
        return split_lines(data.decode(kind.encoding, "replace") if cells is None else cells)

    def _hits(self, lines: list[str]) -> Iterator[int]:
        search = self._pattern.search
        for place, line in enumerate(lines):
            if place % 256 == 0 and self._spent():
                self.end["late"] = True
                return
            if search(line):
                if self._left == 0:
                    self.end["full"] = True
                    return
                self._left -= 1
                yield place


def _groups(lines: list[str], hits: list[int], context: int) -> list[Group]:
    """Hits with the lines around them; neighbours that touch are one group. Numbers count from 1."""
    found = set(hits)
    groups: list[Group] = []
    done = -1
    for hit in hits:
        begin, end = max(hit - context, done + 1), min(hit + context, len(lines) - 1)
        if not groups or begin > done + 1:
            groups.append([])
        groups[-1] += [[place + 1, place in found, lines[place][:MAX_LINE]] for place in range(begin, end + 1)]
        done = max(done, end)
    return groups


def _bound_process(seconds: float) -> None:
    """The system ends this process should a match outlast everything else, or its parent die meanwhile."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if sys.platform != "win32":
        import signal

        signal.alarm(int(seconds) + 5)


def main() -> None:
    """Answer the one request."""
    request: Request = json.load(sys.stdin)
    _bound_process(request["seconds"])
    warnings.simplefilter("ignore")  # of the re module, about syntax that will change

    def emit(row: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()

    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        emit({"bad": str(error)})
        return
    search = Search(request, pattern, emit)
    search.run()
    emit({"end": search.end})


if __name__ == "__main__":
    main()
