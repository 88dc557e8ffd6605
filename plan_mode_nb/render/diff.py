"""What changed between two submissions of a plan, for the *Changes* view and for a terminal.

Lines are compared, then the words of lines that replace each other. A change is said by ``+`` and ``-`` and by ``ins`` and ``del``,
never by colour alone; every line takes its own direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from plan_mode_nb.render.html import NO_MATH, element, paragraph, text, unix_lines

CONTEXT = 3
"""Unchanged lines kept around a change."""

_SAME = "Nothing changed since the previous plan."
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]")
_WORD_LIMIT = 2_000
_EXACT_LINES = 1_000

Kind = Literal["same", "removed", "added", "skipped"]
Piece = tuple[bool, str]


class Line(NamedTuple):
    """One line of a difference: pieces of text, each changed (True) or not, in order. A skipped one holds a sentence."""

    kind: Kind
    pieces: list[Piece]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece for _, piece in self.pieces)


class Block(NamedTuple):
    """A run of lines in both texts, as half-open ranges."""

    same: bool
    start: int
    end: int
    new_start: int
    new_end: int


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
    if before == after:
        return
    blocks = _blocks(before, after)
    for at, (same, start, end, new_start, new_end) in enumerate(blocks):
        if same:
            yield from _context(before[start:end], CONTEXT if at else 0, CONTEXT if at < len(blocks) - 1 else 0)
        else:
            yield from _replaced(before[start:end], after[new_start:new_end])


def _blocks(before: list[str], after: list[str]) -> list[Block]:
    """Both texts cut into equal and different blocks.

    What they share at both ends is taken off first: it is most of a revised plan, and difflib's search takes very common lines,
    such as blank ones, for noise in a long text.
    """
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    tail = next((at for at in range(shortest - head) if before[-1 - at] != after[-1 - at]), shortest - head)
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) > _EXACT_LINES)
    blocks = [Block(True, 0, head, 0, head)] if head else []
    blocks += [Block(tag == "equal", head + a, head + b, head + c, head + d) for tag, a, b, c, d in matcher.get_opcodes()]
    if tail:
        blocks.append(Block(True, len(before) - tail, len(before), len(after) - tail, len(after)))
    return blocks


def _context(lines: list[str], first: int, last: int) -> Iterator[Line]:
    """Unchanged lines: the first and last few, and how many are left out between them."""
    left_out = len(lines) - first - last
    kept = lines if left_out <= 0 else lines[:first]
    yield from (Line("same", [(False, line)]) for line in kept)
    if left_out > 0:
        yield from _skipped(left_out)
        yield from (Line("same", [(False, line)]) for line in lines[len(lines) - last :])


def _skipped(count: int) -> Iterator[Line]:
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
    return unix_lines(plan.removeprefix("\ufeff")).rstrip("\n").split("\n")
