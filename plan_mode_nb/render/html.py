"""The few pieces of HTML that every card is made of.

What is emitted must survive JupyterLab's sanitizer for untrusted notebooks (it keeps classes, ``dir`` and plain ``style`` values, drops
``<style>``, scripts, ``aria-*`` and CSS variables) and read well without any style sheet, in light and in dark; so structure comes from
elements (``details``, ``strong``, ``pre``) and no colour is set.
"""

from __future__ import annotations

from html import escape

from plan_mode_nb.plan.visible import visible

NO_MATH = "mathjax_ignore tex2jax_ignore"
"""JupyterLab typesets HTML outputs too; MathJax 3 leaves the first class alone, MathJax 2 (nbconvert) the second."""

Bundle = dict[str, str]
"""A display: mime type -> text. Always ``text/plain``; deterministic, no clock, uuid, price or running number."""


def text(value: str) -> str:
    """``value`` as HTML text or attribute value, hiding characters made visible, line ends ``\\n``."""
    return escape(unix_lines(value))


def unix_lines(value: str) -> str:
    """``value`` made visible, CRLF pairs (the one carriage return that hides nothing) as ``\\n``: what HTML and markdown hold."""
    return visible(value).replace("\r\n", "\n")


def element(tag: str, body: str, *, cls: str = "", **attributes: str) -> str:
    """``<tag class=… …>body</tag>``. ``body`` is HTML; attribute values are text; a trailing ``_`` in a name is dropped."""
    named = {"class": cls, **{name.rstrip("_"): value for name, value in attributes.items()}}
    written = "".join(f' {name}="{text(value)}"' for name, value in named.items() if value)
    return f"<{tag}{written}>{body}</{tag}>"


def card(kind: str, body: str) -> str:
    """The outermost element of a bundle's HTML. Its classes are not those of a live card, whose style sheet must not reach it."""
    return element("div", body, cls=f"pmnb-static pmnb-static-{kind} {NO_MATH}")


def paragraph(value: str, *, cls: str = "") -> str:
    """One line of plain text in its own direction."""
    return element("p", text(value), cls=cls, dir="auto")


def indented(body: str) -> str:
    """HTML that belongs to the line above it."""
    return element("div", body, style="margin: 0.3em 0 0 1.2em")


def label(value: str) -> str:
    """A line that names what stands below it."""
    return element("p", element("strong", text(value)), dir="auto")


LINES = "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; margin: 0 0 1em"
"""How a ``pre`` breaks its lines: between words where there are any. JupyterLab breaks them anywhere, and leaves no room below."""


def verbatim(value: str, *, cls: str = "") -> str:
    """Text a person or a tool wrote, every line and space kept, long lines wrapped."""
    return element("pre", text(value), cls=cls, dir="auto", style=LINES)
