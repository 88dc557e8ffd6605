"""Static cards: whole, verbatim, deterministic, readable without style."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from html_audit import audit

from plan_mode_nb.render.cards import (
    ApprovalState,
    QuestionState,
    ReviewState,
    approval_card,
    assistant_text,
    end_phrase,
    error_line,
    notice,
    plan_card,
    question_card,
    todo_list,
    turn_summary,
)
from plan_mode_nb.render.html import Bundle
from plan_mode_nb.render.tool_card import SHOWN, SHOWN_LINES, read_arguments, shortened, tool_card

PLAN = "# Load the data\n\n1. read `sales.csv`\n2. **keep** the old file\n"
QUESTION = {
    "id": "q1",
    "question": "Which file?",
    "options": [{"label": "a.csv", "description": "the new one"}, {"label": "b.csv"}],
}


def text_result(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize("state", get_args(ReviewState))
def test_a_plan_card_holds_the_whole_plan_in_every_form_and_says_its_state(state: ReviewState) -> None:
    bundle = plan_card(PLAN, state)
    assert PLAN in bundle["text/plain"]
    assert PLAN in bundle["text/markdown"]
    assert "<strong>keep</strong> the old file" in bundle["text/html"]
    first_lines = {form: bundle[form].split("\n")[0] for form in ("text/plain", "text/markdown")}
    assert first_lines["text/plain"] in audit(bundle["text/html"]).text
    assert first_lines["text/markdown"] == f"**{first_lines['text/plain']}**"


def test_only_an_approved_plan_says_so() -> None:
    for state in get_args(ReviewState):
        said = plan_card(PLAN, state)["text/plain"].split("\n")[0]
        assert (said == "Plan review: approved") == (state == "approved")
        assert ("not approved" in said) == (state not in ("approved", "waiting"))


def test_feedback_stands_verbatim_under_the_plan() -> None:
    words = "no!\n  * keep <old> files\n```\n$x$"
    bundle = plan_card(PLAN, "keep planning", words)
    assert bundle["text/plain"].endswith("Feedback:\n\n" + words)
    assert f"````\n{words}\n````" in bundle["text/markdown"]
    assert words in audit(bundle["text/html"]).text
    assert plan_card(PLAN, "keep planning", " \n") == plan_card(PLAN, "keep planning", None)


def test_a_hostile_plan_is_inert_in_every_form() -> None:
    hostile = "# P\n\n<script>x</script> ![p](https://evil.example/p.png) \x1b[8mhidden\u202e\rover"
    bundle = plan_card(hostile, "waiting")
    assert audit(bundle["text/html"]).problems == []
    assert "<script>" in bundle["text/plain"]
    assert "&lt;script>" in bundle["text/markdown"]
    for form in bundle.values():
        assert not re.search("[\x1b\r\u202e]", form)


def test_python_is_shown_as_highlighted_code_not_as_json() -> None:
    bundle = tool_card("python", json.dumps({"code": "def f():\n    return 1\n"}), text_result("1"), "done")
    assert '<b class="k">def</b>' in bundle["text/html"]
    assert "\\n" not in bundle["text/html"]
    assert "```python\ndef f():\n    return 1\n```" in bundle["text/markdown"]


def test_a_tool_card_is_collapsed_and_its_line_says_name_state_and_what() -> None:
    bundle = tool_card("read", json.dumps({"path": "a/b.txt"}), text_result("x"), "failed")
    html = bundle["text/html"]
    assert "<details><summary>" in html
    assert audit(html[: html.index("</summary>")] + "</summary></details></div>").text == "read a/b.txt failed"
    assert bundle["text/plain"].startswith("read (failed): a/b.txt\n")


def test_a_given_title_stands_in_place_of_the_arguments_first_words() -> None:
    assert tool_card("read", '{"path": "a"}', None, "running", "Reading a")["text/plain"].startswith("read (running): Reading a")
    assert tool_card("read", '{"path": "a"}', None, "running", "")["text/plain"].startswith("read (running)\n")


@pytest.mark.parametrize("raw", ['{"a": 1', "[]", "3", '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', "\x00", '"text"'])
def test_arguments_that_are_not_one_plain_object_are_shown_as_they_are(raw: str) -> None:
    bundle = tool_card("t", raw, None, "running")
    assert raw.replace("\x00", "␀") in bundle["text/plain"]


def test_arguments_keep_the_models_order_and_every_value() -> None:
    arguments = read_arguments('{"z": 1, "a": "x", "code": "y", "list": [1, {"k": null}]}')
    assert [(argument.name, argument.value) for argument in arguments] == [
        ("z", "1"),
        ("a", "x"),
        ("code", "y"),
        ("list", '[1, {"k": null}]'),
    ]


def test_a_long_result_shows_head_and_tail_and_the_plain_text_has_all_of_it() -> None:
    lines = [f"line {n}" for n in range(5_000)]
    bundle = tool_card("t", "{}", text_result("\n".join(lines)), "done")
    assert "\n".join(lines) in bundle["text/plain"]
    html = audit(bundle["text/html"]).text
    assert "line 0\n" in html
    assert "line 4999" in html
    assert "characters left out here; the plain text holds all of them" in html
    assert len(html) < SHOWN + 200
    assert html.count("\n") <= SHOWN_LINES + 2


def test_the_sentence_in_a_shortened_text_counts_what_is_missing() -> None:
    text = "x" * 10_000
    short = shortened(text, 900)
    left = re.search("… ([0-9,]+) characters left out", short)
    assert left is not None
    assert int(left.group(1).replace(",", "")) == 10_000 - short.count(
        "x"
    ) + "characters left out here; the plain text holds all of them".count("x")


def test_a_text_within_the_bounds_is_not_shortened() -> None:
    for text in ("", "x" * SHOWN, "\n".join("x" * SHOWN_LINES)):
        assert shortened(text) == text


def test_colours_of_a_terminal_go_and_everything_else_of_it_is_visible() -> None:
    bundle = tool_card("t", "{}", text_result("\x1b[31;1mred\x1b[0m \x1b[2J \x00\ud800"), "done")
    assert "red ␛[2J ␀⟦U+D800⟧" in bundle["text/plain"]
    assert audit(bundle["text/html"]).problems == []
    assert bundle["text/html"].encode()


def test_an_image_is_said_never_embedded() -> None:
    image = {"type": "image", "attachment": {"attachmentId": "ab", "mediaType": "image/png", "width": 6, "height": 4, "name": "c.png"}}
    assert "[image c.png image/png 6×4]" in tool_card("t", "{}", [image], "done")["text/plain"]
    assert "[image]" in tool_card("t", "{}", [{"type": "image"}], "done")["text/plain"]


@pytest.mark.parametrize("state", get_args(QuestionState))
def test_a_question_card_marks_the_picks_and_holds_the_words(state: QuestionState) -> None:
    bundle = question_card([QUESTION], [{"id": "q1", "selected": ["b.csv"], "custom": "and\nmore"}], state)
    for form in (bundle["text/plain"], bundle["text/markdown"], audit(bundle["text/html"]).text):
        assert "Which file?" in form
        assert "☐ a.csv: the new one" in form
        assert "☑ b.csv" in form
        assert "and\nmore" in form


def test_answers_are_matched_by_id_not_by_position() -> None:
    second = {**QUESTION, "id": "q2", "question": "And then?"}
    plain = question_card([QUESTION, second], [{"id": "q2", "selected": ["a.csv"]}], "answered")["text/plain"]
    assert plain.index("☐ a.csv") < plain.index("And then?") < plain.index("☑ a.csv")


@pytest.mark.parametrize("state", get_args(ApprovalState))
def test_an_approval_card_says_the_tool_why_it_asked_and_its_state(state: ApprovalState) -> None:
    """The reason is prose, which breaks between words."""
    bundle = approval_card("bash", "the sandbox refused something", state)
    assert bundle["text/plain"].startswith("Approval of bash: ")
    for form in bundle.values():
        assert "the sandbox refused something" in form
    assert "<pre" not in bundle["text/html"]
    assert "```" not in bundle["text/markdown"]


def test_what_a_card_unfolds_stands_apart_from_its_head_and_breaks_between_words() -> None:
    """A front end's own style for pre breaks anywhere, and leaves no room below."""
    html = tool_card("write", '{"path": "a.txt", "content": "one\\ntwo"}', [{"type": "text", "text": "wrote a.txt"}], "done")["text/html"]
    head, _, body = html.partition("</summary>")
    assert "<pre" not in head
    assert body.startswith('<div style="margin: 0.3em 0 0 1.2em">')
    assert body.count("word-break: normal; overflow-wrap: anywhere; margin: 0 0 1em") == body.count("<pre") == 2


def test_a_todo_list_says_each_items_state_by_a_sign() -> None:
    bundle = todo_list(
        [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}, {"content": "c", "status": "pending"}]
    )
    assert bundle["text/plain"] == "☑ a\n▶ b\n☐ c"
    assert audit(bundle["text/html"]).text == "☑ a▶ b☐ c"
    assert todo_list([])["text/plain"] == "No todos."


def test_the_summary_is_one_line_and_a_completed_turn_needs_no_word() -> None:
    assert turn_summary(2, 10_218, 346, 5_248, {"kind": "completed"})["text/plain"] == "2 steps · 10,218 tokens in (5,248 cached) · 346 out"
    assert turn_summary(1, 0, 0, 0, None)["text/plain"] == "1 step · running"
    assert turn_summary(1, 5, 1, 0, {"kind": "completed"}, 1)["text/plain"] == "1 step · 5 tokens in · 1 out · 1 retry"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ({"kind": "aborted", "reason": {"kind": "user"}}, "stopped by you"),
        ({"kind": "aborted"}, "stopped"),
        ({"kind": "aborted", "reason": {"kind": "disposed"}}, "stopped"),
        ({"kind": "interrupted"}, "interrupted"),
        ({"kind": "error", "error": {"message": "m"}}, "failed"),
        ({"kind": "max-tokens"}, "cut at the model's token limit"),
        ({"kind": "blocked"}, "blocked by a hook"),
        ({"kind": "of-a-newer-build"}, "of-a-newer-build"),
        (None, "running"),
    ],
)
def test_every_end_has_words(reason: dict[str, object] | None, words: str) -> None:
    assert end_phrase(reason) == words


def test_a_notice_and_an_error_are_one_line() -> None:
    assert notice("a\nb\r\nc")["text/plain"] == "a b c"
    assert error_line("no key:\nset one")["text/plain"] == "Error: no key: set one"


def test_the_models_text_is_given_as_markdown_too() -> None:
    bundle = assistant_text("**a** <b>")
    assert bundle["text/plain"] == "**a** <b>"
    assert bundle["text/markdown"] == "**a** &lt;b>"
    assert "<strong>a</strong> &lt;b&gt;" in bundle["text/html"]


def every_bundle() -> list[Bundle]:
    return [
        plan_card(PLAN, "approved", "x"),
        tool_card("python", json.dumps({"code": "x", "n": 1, "plan": PLAN}), text_result("y"), "done"),
        question_card([QUESTION], None, "waiting"),
        approval_card("bash", "x", "allowed"),
        todo_list([{"content": "x", "status": "pending"}]),
        turn_summary(1, 1, 1, 1, None),
        notice("x"),
        assistant_text("x"),
        error_line("x"),
    ]


def test_no_card_wears_a_live_cards_classes_and_no_typesetter_looks_into_one() -> None:
    for bundle in every_bundle():
        assert audit(bundle["text/html"]).problems == []
        assert not re.search(r'class="[^"]*\bpmnb-(card|state|preview|plan|body|head)\b(?!-)', bundle["text/html"])
        assert "mathjax_ignore" in bundle["text/html"].split(">")[0]


def test_no_card_sets_a_colour() -> None:
    assert not [bundle for bundle in every_bundle() if "color" in bundle["text/html"]]
