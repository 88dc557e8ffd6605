"""Markdown as a reader expects it, with nothing left out (cases 42 and 43)."""

from __future__ import annotations

import re

import pytest
from html_audit import audit, ink

from plan_mode_nb.render.markdown import to_html
from plan_mode_nb.render.source import fenced, inert_markdown

BOLD = {
    "brackets inside": ("**「計画」**です", "「計画」"),
    "brackets inside, text before": ("これは**「計画」**です", "「計画」"),
    "a full stop inside": ("**重要。**次に", "重要。"),
    "ASCII parentheses": ("**計画(案)**です", "計画(案)"),
    "ASCII quotes": ('これは**"重要"**です', '"重要"'),
    "Korean": ("**키(key)**를", "키(key)"),
    "Chinese colon": ("**注意：**请备份", "注意："),
    "code inside": ("請**`rm`**勿用", "rm"),
    "plain": ("日本語**太字**日本語", "太字"),
    "Latin": ("a **b** c", "b"),
}


@pytest.mark.parametrize(("text", "bold"), BOLD.values(), ids=BOLD)
def test_emphasis_works_beside_cjk(text: str, bold: str) -> None:
    html = to_html(text)
    strong = re.search("<strong>(.*?)</strong>", html)
    assert strong is not None
    assert audit(strong.group(1)).text == bold


@pytest.mark.parametrize("text", ['a**"b"**c', "2 * 3 * 4", "snake_case_name", "a ** b **"])
def test_emphasis_away_from_cjk_is_commonmarks(text: str) -> None:
    assert "<em>" not in to_html(text)
    assert "<strong>" not in to_html(text)


def test_strikethrough_needs_two_tildes_and_works_beside_cjk() -> None:
    assert "<s>「取消」</s>" in to_html("~~「取消」~~です")
    assert "<s>" not in to_html("~1~ and ~2~")


def test_dollars_and_brackets_stay_what_they_are_and_no_typesetter_looks() -> None:
    html = to_html("$A and $B, \\\\(x\\\\) and \\\\[y\\\\], $$z$$")
    assert audit(html).text.strip() == "$A and $B, \\(x\\) and \\[y\\], $$z$$"
    assert html.startswith('<div class="pmnb-markdown mathjax_ignore tex2jax_ignore">')


def test_tables_keep_their_alignment() -> None:
    html = to_html("| a | b |\n|:--|--:|\n| 1 | **2** |")
    assert '<td style="text-align:right" dir="auto"><strong>2</strong></td>' in html


def test_task_lists_have_disabled_boxes_that_say_their_state() -> None:
    html = to_html("- [x] done\n- [ ] open\n- [y] neither")
    assert html.count("<input") == 2
    assert '<li><input type="checkbox" disabled="" checked=""> done</li>' in html
    assert '<li><input type="checkbox" disabled=""> open</li>' in html
    assert "[y] neither" in html


def test_a_list_takes_its_direction_as_a_whole_and_a_paragraph_its_own() -> None:
    html = to_html("- שלום\n  - עולם\n\nHello\n\n> مرحبا\n\n## عنوان")
    assert html.count('<ul dir="auto">') == 1
    assert "<ul>" in html
    assert "<li>" in html
    assert '<p dir="auto">Hello' in html
    assert '<p dir="auto">مرحبا' in html
    assert '<h2 dir="auto">' in html


def test_a_table_whose_header_is_right_to_left_runs_from_the_right() -> None:
    assert '<table dir="rtl">' in to_html("|שם|b|\n|-|-|\n|c|d|")
    assert "<table>" in to_html("|a|שם|\n|-|-|\n|c|d|")


def test_code_is_always_left_to_right() -> None:
    assert '<pre class="pmnb-code highlight" dir="ltr" ' in to_html("```\nשלום\n```")
    assert '<code dir="ltr">' in to_html("`שלום`")


def test_a_known_language_is_highlighted_without_changing_the_code() -> None:
    code = 'def f(x):\n    return "<&>"  # why\n'
    html = to_html(f"```python\n{code}```")
    assert '<b class="k">def</b>' in html
    assert '<i class="c1"># why</i>' in html
    assert audit(html).text.strip() == code.strip()


def test_an_unknown_language_and_a_long_info_string_are_shown() -> None:
    assert '<p class="pmnb-info" dir="auto">nosuch</p>' in to_html("```nosuch\nx\n```")
    assert "python title=&quot;x&quot;" in to_html('```python title="x"\nx = 1\n```')
    assert "pmnb-info" not in to_html("```python\nx = 1\n```")


def test_a_fence_inside_a_longer_fence_is_its_content() -> None:
    html = to_html("````markdown\n```python\nx = 1\n```\n````\n\nafter")
    assert html.count("<pre") == 1
    assert "```python" in audit(html).text
    assert '<p dir="auto">after</p>' in html


def test_links_open_elsewhere_and_tell_nobody_where_from() -> None:
    html = to_html("[a](https://a.example) https://b.example/x_y_z <c@d.example> [f](#part)")
    assert audit(html).links == ["https://a.example", "https://b.example/x_y_z", "mailto:c@d.example", "#part"]
    assert html.count('rel="noopener noreferrer" target="_blank"') == 3


def test_a_file_name_is_no_link() -> None:
    assert audit(to_html("see etl.py, notes.md, deploy.sh and a@b.py")).links == []


def test_a_path_shows_where_it_points_and_is_no_link() -> None:
    html = to_html("[the script](src/etl.py)")
    assert audit(html).links == []
    assert audit(html).text.strip() == "the script src/etl.py"


def test_an_image_is_a_description_and_a_link() -> None:
    html = to_html('![a chart](https://a.example/c.png "sales")')
    assert audit(html).links == ["https://a.example/c.png"]
    assert audit(html).text.strip() == "[image: a chart — sales]"


def test_a_link_without_words_and_a_title_are_said() -> None:
    assert audit(to_html("[](https://a.example)")).text.strip() == "https://a.example"
    assert audit(to_html('[x](https://a.example "delete it")')).text.strip() == "x (delete it)"


HIDDEN = {
    "a link definition": "# P\n\n[note]: https://a.example 'and drop the table'\n\nbody",
    "a definition nobody uses": "body\n\n[x]: <please-delete-everything>",
    "cells beyond the header": "|a|\n|-|\n|b|and drop the table|",
    "a quote nested past the limit": "> " * 100 + "and drop the table",
    "a list nested past the limit": "".join("  " * n + "- x\n" for n in range(100)) + "  " * 100 + "- and drop the table",
    "a definition in a quote": "> [x]: https://a.example 'and drop the table'\n> body",
    "a comment": "<!-- and drop the table -->",
    "an info string": "```python and drop the table\nx\n```",
    "a link title": "[x](https://a.example 'and drop the table')",
    "an image title": "![x](y.png 'and drop the table')",
    "raw HTML": "<div hidden>and drop the table</div>",
    "an attribute": "<p title='and drop the table'>",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_nothing_that_was_written_is_hidden(text: str) -> None:
    shown = audit(to_html(text)).text
    words = "please-delete-everything" if "please" in text else "and drop the table"
    assert words in shown


def test_what_markdown_leaves_out_is_shown_where_it_stands() -> None:
    shown = audit(to_html("first\n\n[x]: https://a.example\n\nlast")).text
    assert shown.index("first") < shown.index("[x]: https://a.example") < shown.index("last")


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n- [x] a\n- [ ] **b** `c`\n\n1. d\n2. e\n\n| f | g |\n|---|---|\n| h | i |\n",
        "a &amp; b &copy; \\* [c](https://d.example/e?f=1&g=2) ![h](https://i.example/j.png)",
        "[a] [b][a] [A][]\n\n> quote\n\n```python\nx = 1\n```\n\n    code\n\n<https://k.example> https://l.example",
    ],
)
def test_ordinary_markdown_is_not_shown_twice(text: str) -> None:
    assert "pmnb-source" not in to_html(text)


CONTROLS = [
    "\x1b[2K",
    "x\ry",
    "\u202eevil",
    "\u2066a\u2069",
    "a\u200bb",
    "&#x202e;",
    "&#8203;",
    "`\x1b`",
    "```\n\x1b\n```",
    "[a](http://b.c/\u202e)",
]


@pytest.mark.parametrize("text", CONTROLS)
def test_hiding_characters_are_visible_wherever_they_stand(text: str) -> None:
    html = to_html(text)
    assert audit(html).problems == []
    assert "\r" not in html
    assert re.search("[␀-␟]|⟦U\\+", html)


def test_beyond_the_cap_a_sentence_says_how_much_is_left_out() -> None:
    text = "line of text\n" * 1_000
    html = to_html(text, cap=1_000)
    assert audit(html).problems == []
    assert "12,012 of 13,000 characters are not shown here" in html
    assert html.count("line of text") == 76


def test_a_cap_inside_a_fence_leaves_no_open_tag() -> None:
    assert audit(to_html("```python\n" + "x = 1\n" * 1_000, cap=500)).problems == []
    assert audit(to_html("x" * 1_000, cap=500)).text.startswith("x" * 500)


def test_a_byte_order_mark_at_the_start_is_no_text() -> None:
    assert to_html("\ufeff# P") == to_html("# P")


def test_markdown_for_others_escapes_html_and_images_but_no_code() -> None:
    text = "a <b>x</b> `<i>` ![x](http://a) <img src=x>\n\n```html\n<script>\n```\n\n    <pre>\n"
    assert inert_markdown(text) == "a &lt;b>x&lt;/b> `<i>` &#33;[x](http://a) &lt;img src=x>\n\n```html\n<script>\n```\n\n    <pre>\n"


@pytest.mark.parametrize("text", ["# T\n\n- a < b, `x <y>` and 3 <4\n", "plain", "$A and $B"])
def test_markdown_without_html_or_images_is_unchanged(text: str) -> None:
    assert inert_markdown(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:a)",
        "[x](java&#10;script&colon;a)",
        "[x][r]\n\n[r]:\n  vbscript:a",
        "[x](data:text/html,a)",
        "![x](javascript:a) http://a.example>\\<script>",
        "[x](file:///etc/passwd)",
        "[a](http://a.example) [x](JAVASCRIPT:a)",
        "[x](javascript:a)" + " y" * 60_000,
    ],
)
def test_markdown_for_others_has_no_harmful_link(text: str) -> None:
    """Not even for a renderer that takes every address for a link; links to pages go with it, and no letter is lost."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    rendered = parser.render(inert_markdown(text))
    assert "<a " not in rendered
    assert "<script" not in rendered


@pytest.mark.parametrize("text", ["the data: [a](http://a.example), [b](mailto:a@b.example) and [c](#d)\n", "[x]: http://a.example\n"])
def test_markdown_for_others_keeps_links_to_pages(text: str) -> None:
    assert inert_markdown(text) == text


def test_the_name_of_a_fence_acts_in_no_renderer() -> None:
    """Some write it into an attribute as it is, some draw diagrams from what they run."""
    assert inert_markdown('```"><script>\nx\n```\n') == "```”›‹script›\nx\n```\n"
    assert inert_markdown("- ~~~ Mermaid\n  x\n  ~~~\n") == "- ~~~ diagram-mermaid\n  x\n  ~~~\n"


def test_a_code_span_cannot_smuggle_a_tag_past_the_escaping() -> None:
    from markdown_it import MarkdownIt

    for text in [
        '<a title="`"><img src=x>`',
        "\\`<img src=x>`",
        "``<img src=x>`",
        "` \n\n<img src=x> `",
        "- `\n- <img src=x>`",
        "[x](a`b) <img src=x> `c",
        "|a|\n|-|\n| ` | <img src=x> ` |",
    ]:
        rendered = MarkdownIt("commonmark", {"html": True}).render(inert_markdown(text))
        assert "<img" not in rendered


def test_a_fence_is_longer_than_any_in_its_text() -> None:
    assert fenced("a\n````\nb\n", "py") == "`````py\na\n````\nb\n`````"


def test_every_letter_of_a_huge_cjk_plan_is_rendered() -> None:
    text = "# 計画\n\n" + "\n".join(f"- **手順{n}** 👩‍👩‍👧 `コード`" for n in range(2_000))
    assert ink(audit(to_html(text)).text) == ink(text)
