"""What counts as a plan (cases 23 to 26)."""

from __future__ import annotations

import pytest

from plan_mode_nb.plan.plan_text import TITLE_LENGTH, PlanTextError, parse_plan

ACCEPTED = {
    "plain": ("# P\n\nbody", "P"),
    "blank lines first": ("\n\n \n# P\nbody", "P"),
    "byte order mark first": ("\ufeff# P\nbody", "P"),
    "byte order mark and blank lines": ("\ufeff\r\n# P\r\nbody", "P"),
    "a tab after the hash": ("#\tP\nbody", "P"),
    "CRLF": ("# P\r\n\r\nbody\r\n", "P"),
    "one space": (" # P\nbody", "P"),
    "three spaces": ("   # P\nbody", "P"),
    "two spaces, then a fence with a comment": ("  # Real\n```\n# pip install x\n```", "Real"),
    "closing hashes": ("# Plan ##\nbody", "Plan"),
    "a hash that belongs to the title": ("# C#\nbody", "C#"),
    "inline markup": ("# **Add** `--flag` to [the CLI](http://a.b) ![now](c.png)\nbody", "Add --flag to the CLI now"),
    "entities and escapes": ("# A &amp; B \\* C\nbody", "A & B * C"),
    "raw HTML is text": ("# <b>x</b>\nbody", "<b>x</b>"),
    "a reference resolved below": ("# [Title]\n\nbody\n\n[Title]: http://a.b", "Title"),
    "CJK": ("# 計画：テスト\n本文", "計画：テスト"),
    "an emoji sequence": ("# 👩‍👩‍👧 plan\nbody", "👩‍👩‍👧 plan"),
    "a hiding character in the title": ("# a\u202eb\nbody", "a⟦U+202E⟧b"),
    "a hiding character by entity": ("# a&#x202e;b\nbody", "a⟦U+202E⟧b"),
    "a thematic break as body": ("# P\n\n---\n", "P"),
    "a table as body": ("# P\n|a|\n|-|\n", "P"),
}

REFUSED = {
    "empty": ("", "empty"),
    "blank": (" \n\t ", "empty"),
    "invisible": ("\u200b\u2060", "empty"),
    "null": (None, "null"),
    "a number": (42, "a number"),
    "a boolean": (True, "a boolean"),
    "a list": (["# P"], "a list"),
    "an object": ({"plan": "# P"}, "an object"),
    "no space after the hash": ("#P\nbody", "needs a space"),
    "level 2": ("## P\nbody", "level 2"),
    "setext": ("P\n===\nbody", "underlined"),
    "setext level 2": ("P\n---\nbody", "underlined"),
    "inside a fence": ("```\n# P\n```\nbody", "code block"),
    "front matter first": ("---\na: b\n---\n# P\nbody", "front matter"),
    "an empty heading": ("# \nbody", "no visible title"),
    "a bare hash": ("#\n\ntext", "no visible title"),
    "closing hashes alone": ("# #\nbody", "no visible title"),
    "an invisible title": ("# \u200b\u2060\nbody", "no visible title"),
    "a title of spaces by entity": ("# &nbsp;\nbody", "no visible title"),
    "an image without words as title": ("# ![](a.png)\nbody", "no visible title"),
    "four spaces": ("    # P\nbody", "four spaces"),
    "a tab before the hash": ("\t# P\nbody", "four spaces"),
    "no body": ("# P", "only a title"),
    "a blank body": ("# P\n\n \t\n", "only a title"),
    "an invisible body": ("# P\n\n\u200b\n", "only a title"),
    "text first": ("Here is the plan:\n\n# P\nbody", "does not start with a heading"),
    "inside a quote": ("> # P\n> body", "does not start with a heading"),
    "inside a list": ("- # P\n- body", "does not start with a heading"),
    "a link definition first": ("[a]: http://b.c\n# P\nbody", "something stands before"),
    "only a link definition": ("[a]: http://b.c", "shows nothing"),
    "a bare carriage return as line end": ("# P\rbody", "only a title"),
    "a bare carriage return first": ("\r# P\nbody", "does not start with a heading"),
    "raw HTML first": ("<div>\n\n# P\nbody", "does not start with a heading"),
    "seven hashes": ("####### P\nbody", "needs a space"),
}


@pytest.mark.parametrize(("text", "title"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_plan_opens_with_a_level_1_heading_as_commonmark_sees_it(text: str, title: str) -> None:
    assert parse_plan(text) == (title, text)


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_what_to_send_instead(text: object, why: str) -> None:
    with pytest.raises(PlanTextError) as refused:
        parse_plan(text)
    assert why in str(refused.value)
    assert "`# Title`" in str(refused.value)


def test_a_long_title_is_bounded_and_ends_in_an_ellipsis() -> None:
    title = parse_plan("# " + "word " * 100 + "\nbody").title
    assert len(title) <= TITLE_LENGTH
    assert title.endswith("word…")
    assert parse_plan("# " + "x" * TITLE_LENGTH + "\nbody").title == "x" * TITLE_LENGTH


def test_a_huge_plan_is_returned_byte_for_byte() -> None:
    text = "# 計画\n\n" + "\n".join(f"- **手順** {n} 👩‍👩‍👧 | a | b |" for n in range(5_000)) + "\r\n\n"
    plan = parse_plan(text)
    assert plan.text == text
    assert plan.title == "計画"
