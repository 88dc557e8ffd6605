"""What changed between two submissions of a plan, for the *Changes* view and for a terminal.

Lines are compared, then the words of lines that replace each other. A change is said by ``+`` and ``-`` and by ``ins`` and ``del``,
never by colour alone; every line takes its own direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from plan_mode_nb.plan.visible import visible
from plan_mode_nb.render.html import NO_MATH, element, paragraph, text

CONTEXT = 3
"""Unchanged lines kept around a change."""

_SAME = "Nothing changed since the previous plan."
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]")
_WORD_LIMIT = 2_000

Kind = Literal["same", "removed", "added", "skipped"]
Piece = tuple[bool, str]


class Line(NamedTuple):
    """One line of a difference: pieces of text, each changed (True) or not, in order. A skipped one holds a sentence."""

    kind: Kind
    pieces: list[Piece]

    @property
    def text(self) -> str:
        return "".join(piece for _, piece in self.pieces)


_MARKS: dict[Kind, str] = {"same": "  ", "removed": "- ", "added": "+ ", "skipped": ""}
_CHANGED = {"removed": "del", "added": "ins"}


def plan_diff_text(old: str, new: str) -> str:
    """The difference as lines that start with ``-``, ``+`` or a space; one sentence when there is none."""
    lines = list(_difference(old, new))
    return "\n".join(_MARKS[line.kind] + line.text for line in lines) if lines else _SAME


def plan_diff_html(old: str, new: str) -> str:
    """The difference as one HTML element."""
    body = "\n".join(_html(line) for line in _difference(old, new)) or paragraph(_SAME)
    return f'<div class="pmnb-diff {NO_MATH}">{body}</div>'


def _html(line: Line) -> str:
    tag = _CHANGED.get(line.kind)
    written = "".join(f"<{tag}>{text(piece)}</{tag}>" if changed and tag else text(piece) for changed, piece in line.pieces)
    return element("div", _MARKS[line.kind] + written, cls=f"pmnb-{line.kind}", dir="auto", style="white-space: pre-wrap")


def _difference(old: str, new: str) -> Iterator[Line]:
    """Changed lines with their context, in order; empty when nothing changed."""
    before, after = _lines(old), _lines(new)
    matcher = SequenceMatcher(None, before, after)
    end_shown = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        yield from _skipped(group[0][1] - end_shown)
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (Line("same", [(False, line)]) for line in before[start:end])
            else:
                yield from _replaced(before[start:end], after[new_start:new_end])
            end_shown = end
    if end_shown:
        yield from _skipped(len(before) - end_shown)


def _skipped(count: int) -> Iterator[Line]:
    if count > 0:
        yield Line("skipped", [(False, f"… {count} unchanged line{'s' if count > 1 else ''}")])


def _replaced(before: list[str], after: list[str]) -> Iterator[Line]:
    pairs = [_words(old, new) for old, new in zip(before, after, strict=False)]
    removed = [old for old, _ in pairs] + [[(True, line)] for line in before[len(pairs) :]]
    added = [new for _, new in pairs] + [[(True, line)] for line in after[len(pairs) :]]
    yield from (Line("removed", pieces) for pieces in removed)
    yield from (Line("added", pieces) for pieces in added)


def _words(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Both lines in pieces; wholly changed when too little is shared for marks to help, or when a line is very long."""
    whole: tuple[list[Piece], list[Piece]] = ([(True, old)], [(True, new)])
    if max(len(old), len(new)) > _WORD_LIMIT:
        return whole
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.4:
        return whole
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        left.append((tag != "equal", "".join(before[start:end])))
        right.append((tag != "equal", "".join(after[new_start:new_end])))
    return [piece for piece in left if piece[1]], [piece for piece in right if piece[1]]


def _lines(plan: str) -> list[str]:
    return visible(plan.removeprefix("\ufeff")).replace("\r\n", "\n").rstrip("\n").split("\n")
