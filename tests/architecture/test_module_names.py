"""Test modules outside packages share one namespace, so their names are unique."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def doubled(tests: Path) -> list[str]:
    """Names that two test modules outside packages have."""
    modules = [path for path in tests.rglob("*.py") if path.name != "__init__.py" and not (path.parent / "__init__.py").exists()]
    return sorted(name for name, count in Counter(path.name for path in modules if path.name != "conftest.py").items() if count > 1)


def test_no_two_test_modules_have_one_name() -> None:
    """pytest would import the first for both and refuse the second."""
    assert doubled(TESTS) == []


def test_the_guard_can_fail(tmp_path: Path) -> None:
    """Two modules of one name in two folders are found; packages keep their names apart."""
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_same.py").write_text("")
    (tmp_path / "c" / "__init__.py").write_text("")
    assert doubled(tmp_path) == ["test_same.py"]
