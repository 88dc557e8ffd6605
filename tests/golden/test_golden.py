"""Every story replays without a difference, and a copy with one changed word does not: the difference names its place and both texts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel.conftest import OTHERS, _python

from .mutants import mutants
from .warm import WarmReplays

HERE = Path(__file__).resolve().parent
NOTEBOOKS = sorted(HERE.glob("*.ipynb"))
SEEDS = [int(seed) for seed in os.environ.get("PLAN_MODE_NB_MUTATION_SEEDS", "1").split(",")]
"""More seeds change other words; the count of caught mutants is printed with ``-s``."""

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmReplays]:
    with WarmReplays() as replays:
        yield replays


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_story_replays_and_none_of_its_mutants_does(warm: WarmReplays, path: Path, tmp_path: Path) -> None:
    """Green as it is; with one word changed in any of the places that count, the first difference is named."""
    notebook = read(path)
    for file in HERE.glob("*.*"):
        if file.suffix in (".csv", ".png"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    copy = tmp_path / path.name
    copy.write_text(json.dumps(notebook), encoding="utf-8")
    assert warm.replay(copy, notebook) == ""
    caught, missed = 0, []
    for seed in SEEDS:
        for kind, mutant in mutants(notebook, random.Random(f"{seed} {path.stem}")):
            copy.write_text(json.dumps(mutant), encoding="utf-8")
            difference = warm.replay(copy, mutant)
            if difference and ("cell " in difference or "has no" in difference):
                caught += 1
            else:
                missed.append(f"{kind} (seed {seed}): {difference!r}")
    print(f"{path.stem}: {caught} of {caught + len(missed)} mutants caught")
    assert missed == []


@pytest.mark.parametrize("version", list(OTHERS))
def test_stories_replay_on_every_supported_kernel(version: str, tmp_path: Path) -> None:
    """Told on this ipykernel, replayed on an older one: reviews, stops, steers, a restart, other scripts, failures."""
    with WarmReplays(_python(version)) as replays:
        for stem in ("keep-planning-twice", "interrupt-and-go-on", "steer-and-toggle", "restart-in-plan-mode", "languages", "limits"):
            notebook = read(HERE / f"{stem}.ipynb")
            copy = tmp_path / f"{stem}.ipynb"
            copy.write_text(json.dumps(notebook), encoding="utf-8")
            assert replays.replay(copy, notebook) == "", stem


@pytest.mark.parametrize(
    ("stem", "kind", "says"),
    [
        ("keep-planning-twice", "feedback", "their feedback:"),
        ("keep-planning-twice", "tool result", "tool/result"),
        ("dismiss-and-talk", "cell order", "plan-mode-nb record"),
        ("off-during-review", "section", "drift"),
    ],
)
def test_nbval_fails_on_a_mutant_and_says_where(stem: str, kind: str, says: str, tmp_path: Path) -> None:
    """Through pytest and nbval themselves, as anybody runs them."""
    notebook = dict(mutants(read(HERE / f"{stem}.ipynb"), random.Random(1)))[kind]
    (tmp_path / f"{stem}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    ran = nbval(tmp_path / f"{stem}.ipynb")
    assert ran.returncode == 1, ran.stdout
    assert says in ran.stdout, ran.stdout


def nbval(*arguments: Any, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run pytest with nbval in a process of its own, without a key or a model's address."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    command = [python, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "--color=no", "-q", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=170, check=False, cwd=HERE)
