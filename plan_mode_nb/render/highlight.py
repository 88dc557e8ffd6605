"""Code as HTML, coloured by class.

JupyterLab, Notebook and nbconvert style Pygments' short classes (``k``, ``s1``, …) under ``highlight`` in their themes' own colours,
light and dark, so none is written here. Elsewhere keywords are still ``<b>`` and comments ``<i>``: that much needs no style sheet.
"""

from __future__ import annotations

import functools
from html import escape
from itertools import groupby
from typing import Any

from plan_mode_nb.render.html import LINES

LIMIT = 20_000
"""Characters a block may have to be highlighted; a longer one is shown plain (a lexer's time is not bounded by its author)."""


def highlighted(code: str, language: str) -> str:
    """``code`` as escaped HTML, with spans when ``language`` is a name Pygments knows. Concatenated text is ``code`` itself."""
    if len(code) > LIMIT or language.lower() not in languages():
        return escape(code)
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    pieces = [(_class(kind), value) for _, kind, value in lexer.get_tokens_unprocessed(code)]
    if "".join(value for _, value in pieces) != code:
        return escape(code)
    return "".join(_span(cls, "".join(value for _, value in group)) for cls, group in groupby(pieces, key=lambda piece: piece[0]))


def code_block(code: str, language: str = "") -> str:
    """A whole ``<pre>``; always left to right, as code is."""
    known = language.lower() if language.lower() in languages() else ""
    named = f' class="language-{escape(known)}"' if known else ""
    return f'<pre class="pmnb-code highlight" dir="ltr" style="{LINES}"><code{named}>{highlighted(code, known)}</code></pre>'


@functools.cache
def languages() -> frozenset[str]:
    """Every language name that Pygments ships (third parties' lexers are not run on a model's text)."""
    from pygments.lexers import get_all_lexers

    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


@functools.cache
def _class(kind: Any) -> str:
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES:
        kind = kind.parent
    return str(STANDARD_TYPES[kind])


def _span(cls: str, value: str) -> str:
    if not cls or cls == "w" or not value.strip():
        return escape(value)
    tag = "b" if cls[0] == "k" else "i" if cls[0] == "c" else "span"
    return f'<{tag} class="{cls}">{escape(value)}</{tag}>'
