"""What the log costs: appending, folding, importing. ``python benchmarks/bench_log.py [EVENTS]`` prints one line a measurement.

The log is made here: turns of two steps with streamed chunks, a reviewed plan, tool calls and todos, the mix that a recorded session has.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from plan_mode_nb.folds.header import HEADER
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.folds.inbox import INBOX
from plan_mode_nb.folds.plan import APPROVED_PLAN, PLAN, TOLD
from plan_mode_nb.folds.questions import QUESTIONS
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.store.jsonl import load_jsonl
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.packing import packed

FOLDS: tuple[Any, ...] = (PLAN, TOLD, APPROVED_PLAN, HISTORY, HEADER, INBOX, QUESTIONS, TODOS, TURNS, USAGE)


def one_turn(turn: int) -> list[Draft]:
    """About 60 events."""
    text = "The quick brown fox jumps over the lazy dog. " * 4
    drafts = [logs.turn_start(turn), logs.user(text, id=f"u{turn}"), logs.step_start(turn, 1), logs.request_header("change", system=text)]
    for index in range(44):
        chunk = {"type": "text-delta", "index": 0, "text": f" word{index}"}
        drafts.append(draft("assistant/chunk", {"turn": turn, "step": 1, "chunk": chunk}))
    call = f"c{turn}"
    drafts += [
        logs.usage_chunk(turn, 1, 1000, 50),
        logs.assistant(
            turn, 1, text, logs.call_block(call, "tool", {"text": text}), id=f"a{turn}", usage={"inputTokens": 1, "outputTokens": 1}
        ),
        logs.tool_call(turn, 1, call, "tool", {"text": text}),
        logs.tool_result(turn, 1, call, text * 3),
        draft("todo/write", {"todos": [{"content": text, "status": "pending"}]}),
        logs.plan_mode(turn % 2 == 0),
        logs.step_end(turn, 1),
        logs.turn_end(turn),
    ]
    return drafts


def made(events: int) -> Session:
    """A session of at least this many events."""
    session, turn = logs.new_session(), 0
    while len(session) < events:
        turn += 1
        session.append(*one_turn(turn))
    return session


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of a few runs, in processor time: other programs on the machine do not count."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main(events: int) -> None:
    """Measure and print."""
    for size in (10, events):
        session = made(size)
        each = appending(session)
        print(f"append one small event at {len(session)} events: {each * 1e6:.1f} us")
    session = made(events)
    importing("plain", write_jsonl(session.header, session.lines))
    importing("packed, runs of 44", write_jsonl(session.header, packed(session.lines)))
    importing("packed, runs of 4", write_jsonl(session.header, packed(session.lines, longest=4)))
    folding(load(write_jsonl(session.header, session.lines)))


def appending(session: Session) -> float:
    """Seconds for one append."""
    drafts = [logs.plan_selected(bool(index % 2)) for index in range(2000)]
    return seconds(lambda: [session.append(each) for each in drafts]) / len(drafts)


def importing(form: str, file: bytes) -> None:
    """A file's bytes to a checked, open session, beside decoding each of its rows with ``json.loads``, values dropped at once."""
    rows = file.split(b"\n")[1:-1]
    parse = seconds(lambda: [None for row in rows if json.loads(row) is None])
    fast = seconds(lambda: [None for row in rows if msgspec.json.decode(row) is None])
    print(f"{form}: {len(rows)} rows, {len(file) / 1e6:.1f} MB; decoding its JSON: {parse:.2f} s (json), {fast:.2f} s (msgspec)")
    read, opened = seconds(lambda: read_jsonl(file)), seconds(lambda: load(file))
    print(f"  scanned: {read:.2f} s, {read / parse:.2f} x json; scanned and opened: {opened:.2f} s, {opened / parse:.2f} x json")
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as on_disk:
        on_disk.write(file)
        on_disk.flush()
        remembering(Path(on_disk.name), len(file))


def remembering(path: Path, size: int) -> None:
    """What an open session holds in memory, and what opening it takes at most, the file's bytes included (tracemalloc)."""
    gc.collect()
    tracemalloc.start()
    kept = opened_file(path)
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"  memory of the session of {len(kept)} events: {now / size:.2f} x the file, {peak / size:.2f} x while it is opened")


def opened_file(path: Path) -> Session:
    """An open session, from a file."""
    scan = load_jsonl(path)
    return Session(scan.header, clock=lambda: 1, lines=scan.lines)


def load(file: bytes) -> Session:
    """An open session."""
    header, lines = read_jsonl(file)
    return Session(header, clock=lambda: 1, lines=lines)


def folding(session: Session) -> None:
    """Each fold from the first event, and one read again."""
    for fold in FOLDS:
        print(f"cold {type(fold).__name__}: {seconds(partial(fold_value, fold, session.events)) * 1e3:.1f} ms")
    print(f"plan state read again: {seconds(lambda: [session.fold(PLAN) for _ in range(1000)]) * 1e3:.2f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
