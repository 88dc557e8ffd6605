"""The pictures of the pages: they exist, are small, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_BYTES, MOST_TOGETHER = 60_000, 600_000


def pictures(page: Path) -> list[Path]:
    return [(page.parent / name).resolve() for name in re.findall(r"!\[[^\]]*\]\(([^)\s]+\.png)\)", page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_is_there_and_says_what_it_shows(page: Path) -> None:
    """A reader without the picture has its words."""
    assert [path for path in pictures(page) if not path.is_file()] == []
    assert "![](" not in page.read_text(encoding="utf-8")


def test_pictures_of_cards_are_small_and_each_is_on_a_page() -> None:
    """A clone should not be mostly pictures."""
    cards = sorted((ROOT / "docs" / "images").glob("card-*.png"))
    assert {path.name: path.stat().st_size for path in cards if path.stat().st_size > MOST_BYTES} == {}
    assert sum(path.stat().st_size for path in cards) <= MOST_TOGETHER
    named = {path for page in PAGES for path in pictures(page)}
    assert [path.name for path in cards if path not in named] == []
