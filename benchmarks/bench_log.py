"""What the log costs: appending, folding, importing. ``python benchmarks/bench_log.py [EVENTS]`` prints one line a measurement.

The log is made here: turns of two steps with streamed chunks, a reviewed plan, tool calls and todos, the mix that a recorded session has.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
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
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing import logs

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
    """The shortest of a few runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main(events: int) -> None:
    """Measure and print."""
    session = made(events)
    drafts = [logs.plan_selected(bool(index % 2)) for index in range(2000)]
    append = seconds(lambda: [session.append(each) for each in drafts]) / len(drafts)
    print(f"append one small event at {len(session)} events: {append * 1e6:.1f} us")
    early = made(10)
    print(
        f"append one small event at {len(early)} events: {seconds(lambda: [early.append(each) for each in drafts]) / len(drafts) * 1e6:.1f} us"
    )

    session = made(events)
    file = write_jsonl(session.header, session.lines)
    rows = file.split(b"\n")[1:-1]
    parse = seconds(lambda: [json.loads(row) for row in rows])
    parse_fast = seconds(lambda: [msgspec.json.decode(row) for row in rows])
    print(f"{len(rows)} events, {len(file) / 1e6:.1f} MB; decoding its JSON: {parse:.2f} s (json), {parse_fast:.2f} s (msgspec)")

    def load() -> Session:
        header, lines = read_jsonl(file)
        return Session(header, clock=lambda: 1, lines=lines)

    read, opened = seconds(lambda: read_jsonl(file)), seconds(load)
    print(
        f"import to lines: {read:.2f} s ({read / parse:.2f} x json); import and open a session: {opened:.2f} s ({opened / parse:.2f} x json)"
    )
    loaded = load()
    print(f"open from lines: {seconds(lambda: Session(loaded.header, clock=lambda: 1, lines=loaded.lines)):.2f} s")
    for fold in FOLDS:

        def cold(fold: Any = fold) -> object:
            loaded._folds.clear()
            return loaded.fold(fold)

        print(f"cold fold {type(fold).__name__}: {seconds(cold) * 1e3:.1f} ms")
    print(f"warm fold of plan state: {seconds(lambda: [loaded.fold(PLAN) for _ in range(1000)]) * 1e3:.2f} us")
    del session, loaded, rows
    tracemalloc.start()
    kept = load()
    print(
        f"memory of the open session: {tracemalloc.get_traced_memory()[0] / len(file):.2f} x the file, peak {tracemalloc.get_traced_memory()[1] / len(file):.2f} x"
    )
    assert len(kept) >= events


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
