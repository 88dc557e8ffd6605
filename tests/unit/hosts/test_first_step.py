"""A session that a kernel reopens is read once: its first step finds what it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made_logs import closed_lines
from benchmarks.steps import a_bench
from plan_mode_nb.hosts.kernel.agents import READ_FIRST
from plan_mode_nb.log.loaded import Loaded
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import say
from plan_mode_nb.testing import logs


def decoded_by_a_turn(folds: Sequence[Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of the loaded rows a turn decodes, in a session that was opened with these folds."""
    session = Session(logs.new_session().header, clock=lambda: 1, lines=closed_lines(600), folds=folds)
    bench = a_bench(session, folder, say("Done."))
    places: list[int] = []
    decode = Loaded._decoded
    with monkeypatch.context() as patch:
        patch.setattr(Loaded, "_decoded", lambda self, rows: places.extend(rows) or decode(self, rows))  # type: ignore[func-returns-value]
        assert asyncio.run(bench.ask("Go on.")).reason == {"kind": "completed"}
    session.sink.close()  # type: ignore[union-attr]  # the journal that a_bench made
    return len(places)


def test_the_first_step_decodes_nothing_that_was_read_when_the_session_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the folds it decodes every message, which shows that this looks at the right place."""
    assert decoded_by_a_turn((), tmp_path / "a", monkeypatch) > 60
    assert decoded_by_a_turn(READ_FIRST, tmp_path / "b", monkeypatch) == 0
