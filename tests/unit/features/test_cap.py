"""Capped results: head and tail, never longer than the limit, and where the whole is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_mode_nb.features.tools.cap import Results, cap_text, spill_into, storable


@given(st.text(max_size=5_000), st.integers(800, 3_000))
def test_a_capped_text_is_no_longer_than_its_limit(text: str, limit: int) -> None:
    """And a text within the limit is untouched."""
    capped = cap_text(text, limit)
    assert len(capped) <= limit
    assert capped == text or len(text) > limit


@given(st.integers(1_000, 50_000), st.integers(800, 3_000), st.integers(1, 90))
def test_what_is_left_out_and_what_is_shown_make_the_whole(size: int, limit: int, width: int) -> None:
    """The head is a beginning, the tail an end, and the number in between is right."""
    text = "".join(f"{place:0{width}d}\n" for place in range(size // (width + 1) + 1))
    capped = cap_text(text, limit)
    if len(text) <= limit:
        return
    before, _, rest = capped.partition("\n[")
    note, _, after = rest.partition(" left out here]\n")
    left_out = int(note.split(" of ")[0].replace(",", ""))
    assert text.startswith(before)
    assert text.endswith(after)
    assert len(before) + left_out + len(after) == len(text)


def test_cuts_fall_on_line_ends_where_one_is_near() -> None:
    """A line is shown whole or not at all."""
    capped = cap_text("".join(f"line {place}\n" for place in range(1_000)), 2_000)
    assert all(line.startswith(("line ", "[")) for line in capped.splitlines())


def test_the_line_names_where_the_whole_is(tmp_path: Path) -> None:
    """The file holds the text exactly, only its owner may read it, and the same text is kept once."""
    text = "grün\n" * 1_000
    spill = spill_into(tmp_path / "long")
    capped = cap_text(text, 1_000, spill)
    assert capped == cap_text(text, 1_000, spill)
    (file,) = (tmp_path / "long").iterdir()
    assert f"the whole text is in {file}]" in capped
    assert file.read_bytes() == text.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_spill_that_fails_costs_nothing_but_the_rest(tmp_path: Path) -> None:
    """A full disk must not fail a call that has run."""
    (tmp_path / "file").write_text("")
    capped = cap_text("x" * 5_000, 1_000, spill_into(tmp_path / "file" / "folder"))
    assert "could not be kept]" in capped


@pytest.mark.parametrize("text", ["a\ud800", "\udfff", "fine", "🙂", ""])
def test_every_text_becomes_storable(text: str) -> None:
    """UTF-8 holds it, and what was fine is unchanged."""
    encoded = storable(text).encode("utf-8")
    assert encoded.decode() == text or "\\ud" in encoded.decode()


def test_secrets_go_before_the_cut() -> None:
    """A secret that the cut would split is still recognised."""
    for start in range(300, 420, 7):
        text = "x" * start + "TOKEN" * 40 + "y" * 3_000
        assert "TOKEN" not in Results(lambda it: it.replace("TOKEN" * 40, "[redacted:T]"), limit=800).text(text)
