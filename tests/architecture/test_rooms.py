"""Who may know whom, and what: the page of the architecture, enforced. Each guard is shown to fail on a made-up tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from guards import (
    FUNCTION_CEILING,
    MODULE_CEILING,
    imported_from,
    impure_imports,
    long_functions,
    long_modules,
    misplaced_packages,
    spelled,
    undocumented,
)

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "plan_mode_nb"
ROOMS = "agent document features folds hosts log loop models plan render replay store testing".split()
HOSTS = "cli kernel lab server terminal".split()


def tree(root: Path, files: dict[str, str]) -> Path:
    """A package with every room of the real one, empty but for these files."""
    package = root / "plan_mode_nb"
    folders = [package, *(package / room for room in ROOMS), *(package / "hosts" / host for host in HOSTS)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
    (package / "__init__.py").write_text('"""IPython loads it."""\n\n\ndef load():\n    import plan_mode_nb.hosts.loading\n')
    for name in (
        "compose",
        "exceptions",
        *(f"plan/{each}" for each in "command config controller exit_tool install review visible".split()),
        *(f"hosts/{each}" for each in "arrivals front_end loading wake".split()),
    ):
        (package / f"{name}.py").write_text("")
    for name, text in files.items():
        (package / name).write_text(text)
    return package


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the project's own contracts on the package in ``folder``."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    config = str(REPOSITORY / "pyproject.toml")
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", config],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_imports_of_the_package_keep_every_contract() -> None:
    """Layers, independent siblings, independent hosts, a server host that runs nothing."""
    result = lint(REPOSITORY)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 kept, 0 broken" in result.stdout


def test_a_made_up_package_of_the_same_rooms_keeps_every_contract(tmp_path: Path) -> None:
    """So what the next test finds is what it put there. Rendering may use what makes a text visible: both show a plan alike."""
    tree(tmp_path, {"render/x.py": "from plan_mode_nb.plan.visible import y"})
    assert lint(tmp_path).returncode == 0


BREACHES = {
    "a row knows one below it": ("log/x.py", "from plan_mode_nb.folds import y", "plan_mode_nb.log.x -> plan_mode_nb.folds.y"),
    "a seam knows the loop, and lazily": (
        "agent/x.py",
        "def f():\n    import plan_mode_nb.loop",
        "plan_mode_nb.agent.x -> plan_mode_nb.loop",
    ),
    "the store knows a seam": ("store/x.py", "import plan_mode_nb.agent", "plan_mode_nb.store.x -> plan_mode_nb.agent"),
    "plan mode knows the loop": ("plan/x.py", "import plan_mode_nb.loop", "plan_mode_nb.plan.x -> plan_mode_nb.loop"),
    "a feature knows plan mode": ("features/x.py", "import plan_mode_nb.plan", "plan_mode_nb.features.x -> plan_mode_nb.plan"),
    "the loop knows a model": ("loop/x.py", "import plan_mode_nb.models", "plan_mode_nb.loop.x -> plan_mode_nb.models"),
    "a model knows the composition": ("models/x.py", "import plan_mode_nb.compose", "plan_mode_nb.models.x -> plan_mode_nb.compose"),
    "a replay knows the fakes": ("replay/x.py", "import plan_mode_nb.testing", "plan_mode_nb.replay.x -> plan_mode_nb.testing"),
    "a new room that nobody placed": ("news.py", "", "- plan_mode_nb.news"),
    "rendering knows the controller": ("render/x.py", "import plan_mode_nb.plan.controller", "render.x -> plan_mode_nb.plan.controller"),
    "a host knows another": ("hosts/cli/x.py", "import plan_mode_nb.hosts.kernel", "plan_mode_nb.hosts.cli.x -> plan_mode_nb.hosts.kernel"),
    "the terminal knows what joins it": (
        "hosts/terminal/x.py",
        "import plan_mode_nb.hosts.loading",
        "plan_mode_nb.hosts.terminal.x -> plan_mode_nb.hosts.loading",
    ),
    "what hosts meet in knows one of them": (
        "hosts/wake.py",
        "import plan_mode_nb.hosts.kernel",
        "plan_mode_nb.hosts.wake -> plan_mode_nb.hosts.kernel",
    ),
    "the server runs something": ("hosts/server/x.py", "import plan_mode_nb.loop", "plan_mode_nb.hosts.server.x -> plan_mode_nb.loop"),
}


@pytest.fixture(scope="module")
def breached(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What import-linter says of a tree with all the breaches in it."""
    folder = tmp_path_factory.mktemp("breached")
    tree(folder, {"folds/y.py": "", **{name: text for name, text, _ in BREACHES.values()}})
    return lint(folder)


@pytest.mark.parametrize("breach", BREACHES)
def test_the_contracts_notice_a_breach(breach: str, breached: subprocess.CompletedProcess[str]) -> None:
    """Each forbidden import of a made-up tree is named by the contract that forbids it."""
    assert breached.returncode == 1
    assert BREACHES[breach][2] in breached.stdout, breached.stdout


def test_packages_stay_in_the_rooms_that_may_know_them() -> None:
    """Jupyter and IPython under hosts and replay, nbformat also in the store, pydantic_ai in models."""
    assert misplaced_packages(PACKAGE) == []


def test_the_pure_rooms_reach_for_no_file_clock_thread_or_chance() -> None:
    """Time, ids and randomness are arguments."""
    assert impure_imports(PACKAGE) == []


def test_plan_mode_never_spells_an_axis_and_no_feature_reads_plan_mode() -> None:
    """Plan mode neither reads nor writes the two axes, and they never read it."""
    assert spelled(PACKAGE / "plan") == []
    assert imported_from(PACKAGE / "features", "plan_mode_nb.folds.plan") == []


def test_modules_and_functions_stay_readable() -> None:
    """300 lines a module, Python or JavaScript; a function fits on a screen."""
    assert long_modules(PACKAGE) == []
    assert long_functions(PACKAGE) == []


def test_every_module_says_what_it_is() -> None:
    """The first thing a reader meets."""
    assert undocumented(PACKAGE) == []


def test_importing_the_package_and_its_rooms_loads_neither_jupyter_nor_a_model_library() -> None:
    """What is heavy is imported when first used: loading the extension must stay quick."""
    program = (
        "import sys, plan_mode_nb, plan_mode_nb.compose, plan_mode_nb.models, plan_mode_nb.loop.agent, plan_mode_nb.store.journal\n"
        "heavy = {'IPython', 'ipykernel', 'ipywidgets', 'jupyter_core', 'nbformat', 'pydantic_ai', 'pydantic', 'httpx', 'openai',"
        " 'anthropic', 'markdown_it', 'pygments', 'pandas', 'matplotlib', 'zstandard', 'typer'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == "[]"


# ---- the guards can fail


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("loop/x.py", "import IPython", "loop/x.py:1: IPython may be imported in hosts, replay only"),
        ("agent/x.py", "def f():\n    from ipykernel.connect import y", "agent/x.py:2: ipykernel may be imported in hosts, replay only"),
        ("models/x.py", "from traitlets import Int", "models/x.py:1: traitlets may be imported in hosts, replay only"),
        ("document/x.py", "import nbformat as n", "document/x.py:1: nbformat may be imported in hosts, replay, store only"),
        ("store/x.py", "import jupyter_core.paths", "store/x.py:1: jupyter_core may be imported in hosts, replay only"),
        ("hosts/kernel/x.py", "import pydantic_ai", "hosts/kernel/x.py:1: pydantic_ai may be imported in models only"),
        ("compose.py", "if True:\n    import os, comm", "compose.py:2: comm may be imported in hosts, replay only"),
    ],
)
def test_a_misplaced_package_is_noticed(name: str, text: str, found: str, tmp_path: Path) -> None:
    """Lazily or not, aliased or not; the rooms that may import it still may."""
    allowed = {"hosts/kernel/ok.py": "import IPython", "replay/ok.py": "import nbval", "store/ok.py": "import nbformat"}
    package = tree(tmp_path, allowed)
    assert misplaced_packages(package) == []
    (package / name).write_text(text)
    assert misplaced_packages(package) == [found]


@pytest.mark.parametrize(
    "text", ["import time", "from datetime import datetime", "import os.path", "from pathlib import Path", "import random"]
)
def test_an_impure_import_is_noticed(text: str, tmp_path: Path) -> None:
    """In a pure room; elsewhere it is none of this guard's business."""
    package = tree(tmp_path, {"hosts/cli/x.py": text, "log/ok.py": "from pathlib import PurePosixPath"})
    assert impure_imports(package) == []
    (package / "folds/x.py").write_text(text)
    assert len(impure_imports(package)) == 1


@pytest.mark.parametrize("line", ["# like the Sandbox", "APPROVAL = 1", "x = 'an approval'", "sandbox_mode()"])
def test_a_spelled_axis_is_noticed(line: str, tmp_path: Path) -> None:
    """In code, text and comment, in any case; ``approved`` is another word."""
    package = tree(tmp_path, {"plan/x.py": "approved = True\n"})
    assert spelled(package / "plan") == []
    (package / "plan/x.py").write_text(f"\n{line}\n")
    assert [each.rpartition(":")[0] for each in spelled(package / "plan")] == ["x.py:2"]


def test_a_feature_that_reads_plan_mode_is_noticed(tmp_path: Path) -> None:
    """Whichever way it imports the fold."""
    for text in ("from plan_mode_nb.folds.plan import PLAN", "import plan_mode_nb.folds.plan", "from plan_mode_nb.folds import plan"):
        package = tree(tmp_path, {"features/x.py": text})
        assert len(imported_from(package / "features", "plan_mode_nb.folds.plan")) == 1
    package = tree(tmp_path, {"features/x.py": "from plan_mode_nb.folds.plans import X"})
    assert imported_from(package / "features", "plan_mode_nb.folds.plan") == []


def test_a_long_module_and_a_long_function_are_noticed(tmp_path: Path) -> None:
    """At the ceiling they pass; one line more and they do not."""
    body = "    x = 1\n"
    fits = "@d\ndef f():\n" + body * (FUNCTION_CEILING - 2)
    package = tree(tmp_path, {"loop/x.py": fits, "loop/y.py": "\n" * MODULE_CEILING, "hosts/lab/z.js": "\n" * MODULE_CEILING})
    assert long_functions(package) == long_modules(package) == []
    tree(tmp_path, {"loop/x.py": fits + body, "loop/y.py": "\n" * (MODULE_CEILING + 1), "hosts/lab/z.js": "\n" * (MODULE_CEILING + 1)})
    assert long_functions(package) == ["loop/x.py:1: f has 61 lines"]
    assert long_modules(package) == ["hosts/lab/z.js: 301 lines", "loop/y.py: 301 lines"]


def test_a_module_without_a_docstring_is_noticed(tmp_path: Path) -> None:
    """An empty one has nothing to say."""
    package = tree(tmp_path, {"loop/x.py": "# a comment\nx = 1\n", "loop/y.py": '"""Says it."""\nx = 1\n'})
    assert undocumented(package) == ["loop/x.py"]
