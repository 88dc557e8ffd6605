"""A log of 100,000 events in a notebook: open, fold, append with a journal, save; and what an append costs the lab extension.

    python -m benchmarks.bench_store [EVENTS]

Prints one line a figure. Needs Node for the last part.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from plan_mode_nb.document.chunks import read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.hosts.server.saved import reconciled
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.journal import Journal
from plan_mode_nb.store.notebook import load_document, write_notebook
from plan_mode_nb.testing import logs

APPENDS = 200


def made(events: int) -> Session:
    """Turns of six events, about 300 bytes each."""
    session = logs.new_session()
    turn = 0
    while len(session) < events:
        turn += 1
        session.append(logs.turn_start(turn), logs.step_start(turn, 1), logs.user("y" * (turn * 37 % 1_100), id=f"u{turn}"))
        session.append(logs.assistant(turn, 1, "z" * (turn * 53 % 900), id=f"a{turn}"), logs.step_end(turn, 1), logs.turn_end(turn))
    return session


def timed(what: str, work: Callable[[], object]) -> None:
    """Print how long it takes, in milliseconds."""
    started = perf_counter()
    work()
    print(f"{what:<44}{(perf_counter() - started) * 1000:>10.1f} ms")


def main(events: int) -> None:
    """Measure and print."""
    import nbformat.validator  # noqa: F401 - its own import takes seconds and is no part of any figure

    session = made(events)
    stored = StoredSession(session.header, list(session.lines))
    metadata = write_metadata(Document({"main": "s"}, {"s": stored}), {})
    size = sum(map(len, stored.lines))
    print(f"{len(stored.lines)} events, {size / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.ipynb"
        notebook = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        timed("write the notebook", lambda: write_notebook(path, notebook))
        timed("read it", lambda: load_document(path))
        opened = Session(stored.header, clock=lambda: 2**41, lines=stored.lines)
        timed("open the session, checking every event", lambda: Session(stored.header, clock=lambda: 1, lines=stored.lines))
        timed("fold everything", lambda: fold_summary(opened.header, opened.events))
        timed("save hook: reconcile with the file", lambda: reconciled(metadata, metadata))
        timed("metadata to sessions", lambda: read_metadata(metadata))
        opened.sink = Journal(Path(folder) / "journals", opened.header, opened.lines, kernel="k", notebook=None, pid=1)
        turn = len(opened) // 6 + 1
        timed("the first append, which writes the journal", lambda: opened.append(logs.turn_start(turn)))
        times = []
        for number in range(APPENDS):
            before = perf_counter()
            opened.append(logs.user("word", id=f"more{number}"))
            times.append(perf_counter() - before)
        print(f"{'each append with its journal, median':<44}{median(times) * 1000:>10.3f} ms")
    node = shutil.which("node")
    if node is None:
        print("no Node here: the lab extension was not measured")
        return
    script = Path(__file__).with_name("lab_append.mjs")
    for each in json.loads(subprocess.run([node, str(script)], check=True, capture_output=True, text=True).stdout):
        what = f"lab extension, one append at {each['megabytes']:g} MB"
        print(f"{what:<44}{each['median_ms']:>10.3f} ms (95 %: {each['p95_ms']:.3f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
