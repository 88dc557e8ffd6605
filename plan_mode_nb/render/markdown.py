"""Markdown to HTML that is safe to show and shows everything.

CommonMark with GitHub's tables, strikethrough, task lists and bare URLs. Raw HTML is shown as text, no image is loaded, a link goes
to http, https, mailto or a fragment, and nothing is typeset as mathematics.
"""

from __future__ import annotations

import functools
from html import escape
from typing import TYPE_CHECKING, Any

from plan_mode_nb.plan.visible import visible
from plan_mode_nb.render import tokens as passes
from plan_mode_nb.render.emphasis import emphasis
from plan_mode_nb.render.highlight import code_block, languages
from plan_mode_nb.render.html import NO_MATH, element, paragraph, verbatim
from plan_mode_nb.render.whole import show_what_is_lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

CAP = 300_000
_MAX_NESTING = 40
_LINKIFY_CAP = 4_000


def to_html(markdown: str, *, cap: int = CAP) -> str:
    """``markdown`` as one HTML element.

    Beyond ``cap`` characters the rest is left out, and a last paragraph says how much (rendering is linear, but a browser's
    patience is not). A document nested past what the parser follows is shown as its source.
    """
    return _to_html(markdown, cap)


@functools.lru_cache(maxsize=4)  # a plan under review is shown by its call, in its card and in what remains of it
def _to_html(markdown: str, cap: int) -> str:
    source = visible(markdown.removeprefix("\ufeff"))
    kept = _shortened(source, cap)
    try:
        body = str(_parser().render(kept))
    except RecursionError:
        body = verbatim(kept)
    left = len(source) - len(kept)
    if left:
        body += paragraph(f"{left:,} of {len(source):,} characters are not shown here; the plain text holds all of them.", cls="pmnb-cut")
    # Entities can bring hiding characters back after parsing, so the marks are put into the result too.
    return f'<div class="pmnb-markdown {NO_MATH}">{visible(body)}</div>'


def _shortened(source: str, cap: int) -> str:
    if len(source) <= cap:
        return source
    line_end = source.rfind("\n", cap // 2, cap)
    return source[: line_end + 1 if line_end >= 0 else cap]


@functools.cache
def _parser() -> MarkdownIt:
    from linkify_it import LinkifyIt
    from markdown_it import MarkdownIt  # both imported when first used: loading the extension must stay quick

    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "linkify": True, "store_labels": True, "maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough", "linkify"])
    # Without a scheme `etl.py` and `notes.md` would be links: py and md are countries.
    parser.linkify = LinkifyIt({"ftp:": None, "//": None}, {"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    _bound_linkify(parser)
    parser.validateLink = passes.may_be_written  # type: ignore[method-assign]
    parser.inline.ruler.at("emphasis", emphasis)
    parser.inline.ruler.disable("strikethrough")
    parser.core.ruler.after("inline", "task_items", passes.task_items)
    parser.core.ruler.after("task_items", "show_what_is_lost", show_what_is_lost)
    parser.core.ruler.push("links_and_images", passes.links_and_images)
    parser.core.ruler.push("directions", passes.directions)
    for name, rule in (("task", _task), ("source", _source), ("fence", _fence), ("code_block", _code), ("code_inline", _inline_code)):
        parser.add_render_rule(name, rule)
    return parser


def _bound_linkify(parser: MarkdownIt) -> None:
    """Its time grows with the square of one paragraph's length (a minute for 160 kB of ``http://``): long ones go without."""
    from markdown_it.rules_core import linkify as in_text
    from markdown_it.rules_inline import linkify as in_markup

    def core(state: StateCore) -> None:
        every = state.tokens
        state.tokens = [token for token in every if len(token.content) <= _LINKIFY_CAP]
        in_text(state)  # changes the children of tokens, never the list
        state.tokens = every

    parser.core.ruler.at("linkify", core)
    parser.inline.ruler.at("linkify", lambda state, silent: len(state.src) <= _LINKIFY_CAP and in_markup(state, silent))


def _task(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    checked = "" if tokens[at].markup == " " else ' checked=""'
    return f'<input type="checkbox" disabled=""{checked}> '


def _source(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return verbatim(tokens[at].content, cls="pmnb-source") + "\n"


def _fence(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    info = tokens[at].info.strip()
    language = info.split(maxsplit=1)[0] if info else ""
    said = info.lower() in languages() or not info
    caption = "" if said else paragraph(info, cls="pmnb-info")
    return caption + code_block(tokens[at].content, language) + "\n"


def _code(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return code_block(tokens[at].content) + "\n"


def _inline_code(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    return element("code", escape(tokens[at].content), dir="ltr")
