"""What changed since the previous submission."""

from __future__ import annotations

import re

from html_audit import audit

from plan_mode_nb.render.diff import plan_diff_html, plan_diff_text

OLD = "# P\n\n" + "\n".join(f"- step {n}" for n in range(20)) + "\n"


def test_changed_lines_carry_signs_and_three_lines_of_context() -> None:
    new = OLD.replace("step 10", "step ten")
    assert plan_diff_text(OLD, new).split("\n") == [
        "… 9 unchanged lines",
        *(f"  - step {n}" for n in (7, 8, 9)),
        "- - step 10",
        "+ - step ten",
        *(f"  - step {n}" for n in (11, 12, 13)),
        "… 6 unchanged lines",
    ]


def test_changes_at_both_ends_and_near_each_other_keep_their_order() -> None:
    assert plan_diff_text("a\nb\nc\nd\n", "A\nb\nc\nD\ne").split("\n") == ["- a", "+ A", "  b", "  c", "- d", "+ D", "+ e"]


def test_only_the_words_that_changed_are_marked_in_lines_that_are_alike() -> None:
    html = plan_diff_html("- keep the old data\n", "- delete the old data\n")
    assert "<del>keep</del> the old data" in html
    assert "<ins>delete</ins> the old data" in html


def test_cjk_is_marked_by_the_character() -> None:
    assert "データを<ins>消</ins>す" in plan_diff_html("データを残す", "データを消す")


def test_lines_with_little_in_common_are_marked_whole() -> None:
    assert "<ins>entirely different</ins>" in plan_diff_html("abc", "entirely different")


def test_a_change_is_said_without_colour_and_each_line_has_its_own_direction() -> None:
    html = plan_diff_html("a\n", "a\n- שלום\n")
    assert '<div class="pmnb-added" dir="auto" style="white-space: pre-wrap">+ <ins>- שלום</ins></div>' in html
    assert audit(html).problems == []


def test_no_difference_is_a_sentence() -> None:
    assert plan_diff_text(OLD, OLD.replace("\n", "\r\n")) == "Nothing changed since the previous plan."
    assert "Nothing changed since the previous plan." in plan_diff_html(OLD, "\ufeff" + OLD)


def test_a_hiding_character_is_a_visible_change() -> None:
    assert "⟦U+202E⟧" in plan_diff_text("delete old", "delete \u202eold")


def test_markup_in_a_plan_is_text() -> None:
    html = plan_diff_html("", "<script>alert(1)</script>")
    assert audit(html).problems == []
    assert re.search("&lt;script&gt;", html)


def test_long_repetitive_plans_are_compared() -> None:
    old = "\n".join(["", "- x"] * 3_000)
    assert plan_diff_text(old, old.replace("- x", "- y", 1)).count("\n") < 20
