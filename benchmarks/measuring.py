"""What the measurements share: processor time, medians, and an honest way to say that something was not measured."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Work = Callable[[], object]


class NotMeasured(Exception):
    """Why a measurement has no value here, as one sentence. It is reported, never guessed."""


def processor_seconds(work: Work) -> float:
    """Processor seconds of one run, in all threads of this process: other programs on the machine do not count, and waiting does not."""
    gc.collect()
    start = time.process_time()
    kept = work()
    seconds = time.process_time() - start
    del kept
    return seconds


def interleaved(works: Sequence[Work], rounds: int) -> list[float]:
    """The median processor seconds of each, its rounds taken in turns, so that a slow minute of the machine hits all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, seconds in zip(works, taken, strict=True):
            seconds.append(processor_seconds(work))
    return [statistics.median(seconds) for seconds in taken]


def gaps(moments: Sequence[float]) -> list[float]:
    """The time between each two neighbours."""
    return [after - before for before, after in itertools.pairwise(moments)]


def rounded(value: float) -> float:
    """Three digits that count: more would pretend to know."""
    return float(f"{value:.3g}")


def as_installed(folder: Path) -> dict[str, str]:
    """The environment of a process that finds its byte code compiled, as after an installation, once another one with it has run.

    Byte code and Jupyter's files are in ``folder``, whatever this process is told about writing any.
    """
    folders = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "PYTHONPYCACHEPREFIX")
    return {"PYTHONDONTWRITEBYTECODE": "", **{name: str(folder / name.lower()) for name in folders}}
