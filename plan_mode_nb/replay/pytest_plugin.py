"""``pytest --nbval``: notebooks that carry sessions are replayed strictly; all others are nbval's alone.

One kernel a notebook, as nbval has it. What this adds is decided before that kernel starts, and reaches it by the environment.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec import Struct, field

from plan_mode_nb.document.outputs import EVENTS_MIME
from plan_mode_nb.replay.environment import MODE, NOTEBOOK, REPORT, SANITIZE

if TYPE_CHECKING:
    from plan_mode_nb.replay.matching import Matching, NotebookCell

_FILES: Final = pytest.StashKey[dict[Path, "ReplayedFile | None"]]()


class ReplayedFile(Struct):
    """One notebook with sessions. ``problem``: why it cannot be replayed; ``told``: whether that was said. ``report``: the kernel's."""

    matching: Matching
    problem: str
    report: Path
    told: bool = False
    read: int = field(default=0)


class ReplayWarning(pytest.PytestWarning):
    """Something was taken from the recording instead of being compared."""


def pytest_configure(config: pytest.Config) -> None:
    """Room for what is known of each notebook."""
    config.stash[_FILES] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ahead of nbval, which starts the kernel at a file's first cell."""
    if not _is_cell(item):
        return
    replayed = _replayed(item)
    for name in (MODE, NOTEBOOK, SANITIZE, REPORT):
        os.environ.pop(name, None)
    if replayed is None:
        return
    if replayed.problem:
        if replayed.told:
            pytest.skip("the notebook and its recording do not fit")
        replayed.told = True
        pytest.fail(replayed.problem, pytrace=False)
    os.environ[MODE], os.environ[NOTEBOOK], os.environ[REPORT] = "strict", str(item.path), str(replayed.report)
    sanitize = item.config.getoption("nbval_sanitize_with", None)
    if sanitize:
        os.environ[SANITIZE] = os.path.abspath(sanitize)
    _adjust(item, replayed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """After a cell: what its replay took from the recording is a warning."""
    try:
        return (yield)
    finally:
        replayed = item.config.stash[_FILES].get(item.path) if _is_cell(item) else None
        if replayed is not None:
            _warn(item, replayed)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The reports are read."""
    for replayed in config.stash.get(_FILES, {}).values():
        if replayed is not None:
            replayed.report.unlink(missing_ok=True)


def _is_cell(item: pytest.Item) -> bool:
    return type(item).__name__ == "IPyNbCell"


def _replayed(item: pytest.Item) -> ReplayedFile | None:
    files = item.config.stash[_FILES]
    if item.path not in files:
        files[item.path] = _read(item.path)
    return files[item.path]


def _read(path: Path) -> ReplayedFile | None:
    from plan_mode_nb.exceptions import PlanModeError
    from plan_mode_nb.replay.matching import match
    from plan_mode_nb.store.notebook import read_notebook

    try:
        notebook = read_notebook(path)
    except PlanModeError:
        return None  # nbval says what is wrong with the file
    matching = match(notebook)
    if not matching.is_recorded and not matching.unread:
        return None
    handle, name = tempfile.mkstemp(prefix="plan-mode-nb-replay-", suffix=".jsonl")
    os.close(handle)
    return ReplayedFile(matching, matching.problem(path.name), Path(name))


def _adjust(item: Any, replayed: ReplayedFile) -> None:
    """What nbval cannot know of a cell: an error that belongs to it, outputs that cannot be equal, a mime that a replay does not send."""
    if EVENTS_MIME not in item.parent.skip_compare:
        item.parent.skip_compare = (*item.parent.skip_compare, EVENTS_MIME)
    cell: NotebookCell = replayed.matching.cells[item.cell_num]
    parts = [place.part for place in replayed.matching.by_cell.get(cell.code, ())]
    if cell.failed and any(not part.ended_well for part in parts):
        item.options["check_exception"] = True
    if cell.shows_session or any(part.is_cut for part in parts):
        item.options["check"] = False


def _warn(item: pytest.Item, replayed: ReplayedFile) -> None:
    from plan_mode_nb.replay.report import Note, read_report

    said = list(read_report(replayed.report, replayed.read))
    replayed.read += len(said)
    for each in said:
        if isinstance(each, Note):
            item.warn(ReplayWarning(f"{item.path.name}: {each.text}"))
