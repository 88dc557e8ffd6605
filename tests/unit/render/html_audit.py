"""What HTML may come out of rendering, checked by parsing it as a browser would tokenise it: tags, attributes, schemes, balance."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_GLOBAL = {"class": r"[\w .+#/-]*", "dir": "auto|ltr|rtl"}
_STYLES = (
    r"text-align:(left|right|center)|white-space: pre-wrap(; word-break: normal; overflow-wrap: anywhere; margin: 0 0 1em)?"
    r"|list-style-type: none|margin: 0\.3em 0 0 1\.2em"
)
_ALLOWED: dict[str, dict[str, str]] = {
    **{tag: {} for tag in "div span p h1 h2 h3 h4 h5 h6 blockquote em strong s b i bdi del ins code li table".split()},
    **{tag: {} for tag in "thead tbody tr details summary hr br ul".split()},
    "ul": {"style": _STYLES},
    "ol": {"start": r"\d+"},
    "div": {"style": _STYLES},
    "pre": {"style": _STYLES},
    "th": {"style": _STYLES},
    "td": {"style": _STYLES},
    "a": {"href": r"(?i:https?://[^/]|mailto:[^?]|#)[^\s<>]*", "rel": "noopener noreferrer", "target": "_blank"},
    "input": {"type": "checkbox", "disabled": "", "checked": ""},
}
_VOID = {"input", "hr", "br"}
_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ud800-\udfff]")


@dataclass
class Audit:
    """``problems``: one line each, empty when all is well. ``links``: hrefs in order. ``text``: all character data."""

    problems: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    text: str = ""
    tags: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.audit = Audit()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.audit.tags.append(tag)
        allowed = _ALLOWED.get(tag)
        if allowed is None:
            self.audit.problems.append(f"<{tag}> is not allowed")
            return
        for name, value in attrs:
            rule = {**_GLOBAL, **allowed}.get(name)
            if rule is None or re.fullmatch(rule, value or "") is None:
                self.audit.problems.append(f"<{tag} {name}={value!r}> is not allowed")
            if name == "href":
                self.audit.links.append(value or "")
        if tag == "a" and "a" in self._open:
            self.audit.problems.append("a link inside a link")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.audit.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.audit.text += data

    def handle_comment(self, data: str) -> None:
        self.audit.problems.append(f"a comment: {data!r}")

    def handle_decl(self, decl: str) -> None:
        self.audit.problems.append(f"a declaration: {decl!r}")

    def handle_pi(self, data: str) -> None:
        self.audit.problems.append(f"a processing instruction: {data!r}")

    def unknown_decl(self, data: str) -> None:
        self.audit.problems.append(f"a CDATA section: {data!r}")

    def finish(self) -> Audit:
        self.close()
        if self._open:
            self.audit.problems.append(f"left open: {self._open}")
        return self.audit


def audit(html: str) -> Audit:
    """Parse and check."""
    reader = _Reader()
    reader.feed(html)
    found = reader.finish()
    hiding = _HIDING.search(html)
    if hiding is not None:
        found.problems.append(f"a hiding character: {hiding.group()!r}")
    return found


def ink(text: str) -> str:
    """The characters of a text that markdown never takes as syntax: letters, and anything beyond ASCII that is not a space."""
    return "".join(char for char in text.casefold() if char.isalpha() or (char > "\x7f" and not char.isspace()))
