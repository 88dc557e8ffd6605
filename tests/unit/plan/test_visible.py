"""Characters that could hide or reorder what a person reads."""

from __future__ import annotations

import pytest

from plan_mode_nb.plan.visible import has_ink, visible, visible_line

HIDING = {
    "ANSI escape": ("a\x1b[8mb", "a␛[8mb"),
    "bare carriage return": ("delete\rkeep", "delete␍keep"),
    "backspace": ("no\x08\x08yes", "no␈␈yes"),
    "NUL": ("\x00", "␀"),
    "DEL": ("\x7f", "␡"),
    "C1 control": ("\x9b31m", "⟦U+009B⟧31m"),
    "right-to-left override": ("a\u202eb", "a⟦U+202E⟧b"),
    "isolate": ("\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧"),
    "zero width space": ("a\u200bb", "a⟦U+200B⟧b"),
    "word joiner": ("a\u2060b", "a⟦U+2060⟧b"),
    "soft hyphen": ("a\u00adb", "a⟦U+00AD⟧b"),
    "joiner between Latin letters": ("a\u200db", "a⟦U+200D⟧b"),
    "direction mark in a Latin line": ("a\u200fb", "a⟦U+200F⟧b"),
    "variation selector on a letter": ("a\ufe0f", "a⟦U+FE0F⟧"),
    "tag characters": ("\U000e0041", "⟦U+E0041⟧"),
    "line separator": ("a\u2028b", "a⟦U+2028⟧b"),
    "byte order mark inside": ("a\ufeffb", "a⟦U+FEFF⟧b"),
    "Hangul filler": ("\u3164", "⟦U+3164⟧"),
    "lone surrogate": ("\ud800", "⟦U+D800⟧"),
}

SPELLING = {
    "family": "👩‍👩‍👧",
    "rainbow flag": "🏳️‍🌈",
    "flag of England": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "keycap and heart": "1️⃣ ❤️",
    "skin tone": "👍🏽",
    "Persian with a non-joiner": "می‌خواهم",
    "Devanagari with a joiner": "क्‍ष",
    "direction mark in a Hebrew line": "שלום\u200f!",
    "ideographic variant": "葛\U000e0100",
    "Mongolian selector": "ᠠ\u180b",
    "tabs and line ends": "a\tb\r\nc\n",
    "CJK and full-width space": "計画\u3000案",
}


@pytest.mark.parametrize(("text", "shown"), HIDING.values(), ids=HIDING)
def test_a_character_that_could_hide_text_becomes_a_mark_where_it_stood(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", SPELLING.values(), ids=SPELLING)
def test_characters_that_a_script_or_an_emoji_needs_stay(text: str) -> None:
    assert visible(text) == text


def test_a_direction_mark_is_judged_by_its_own_line() -> None:
    assert visible("שלום\u200f\nab\u200f\nשלום\u200f") == "שלום\u200f\nab⟦U+200F⟧\nשלום\u200f"


def test_one_line_has_no_line_end_and_no_run_of_spaces() -> None:
    assert visible_line("  a\r\nb\n\n c\td\re ") == "a b c d␍e"


@pytest.mark.parametrize("text", ["", " \t\r\n", "\u200b\u2060\ufeff", "\u3164\u115f\uffa0", "\u2800", "\u00a0\u3000", "\x1b", "\u0301"])
def test_invisible_characters_are_no_ink(text: str) -> None:
    assert not has_ink(text)


@pytest.mark.parametrize("text", ["a", "計", "👍", "-", "\u200bx"])
def test_anything_with_a_shape_is_ink(text: str) -> None:
    assert has_ink(text)
