"""What nbdime shows of a log that grew, and of one that grew apart: one compact event a line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import stored

from plan_mode_nb.store.notebook import write_notebook

pytest.importorskip("nbdime", reason="nbdime is optional (the extra `merge`) and not installed here")
EVENT = re.compile(r'^([+-])  item\[\d+\]: (\{"type":"[^"]+","seq":(\d+),.*\})$')


def shown(tmp_path: Path, before: list[str], after: list[str]) -> list[tuple[str, str]]:
    """The lines of ``nbdiff`` that begin with a sign, as (sign, the rest); each has to be one whole event."""
    for name, lines in (("before", before), ("after", after)):
        write_notebook(tmp_path / f"{name}.ipynb", stored.notebook(stored.metadata({"s": lines}), "1"))
    command = [sys.executable, "-m", "nbdime.nbdiffapp", "--no-color", "before.ipynb", "after.ipynb"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    changed = [line for line in text.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
    found = [EVENT.match(line) for line in changed]
    assert None not in found, text
    return [(match[1], match[2]) for match in found if match is not None]


def test_a_log_that_grew_is_its_new_events(tmp_path: Path) -> None:
    long = stored.lines(60)
    assert sum(map(len, long)) > 2 * 16_384, "over several chunks"
    assert shown(tmp_path, long[:200], long) == [("+", line) for line in long[200:]]


def test_logs_that_grew_apart_are_what_each_has_alone(tmp_path: Path) -> None:
    ours, theirs = stored.lines(3, "plan it"), stored.lines(3, "delete it")
    alone = [line for line in ours if line not in theirs]
    assert sorted(shown(tmp_path, ours, theirs)) == sorted(
        [*(("-", line) for line in alone), *(("+", line) for line in theirs if line not in ours)]
    )
    assert len(alone) == 1
