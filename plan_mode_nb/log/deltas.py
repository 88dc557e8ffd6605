"""Streamed pieces of answers: most lines of a log that records chunks, and no fold reads them (the message has them whole).

So their events are never made when a log is loaded: their types are their check. What these types accept, the payload rules accept too;
a line that they do not accept is no damage but looked at by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta

from plan_mode_nb.log.codec import SAFE_INTEGER, decode_rows

BEGINNING: Final = '{"type":"assistant/chunk",'
"""How a line begins that :func:`read_deltas` may be asked about. It costs no parsing to see."""

_Integer = Annotated[int, Meta(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]


class _Exact(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Nothing beside what is declared: a value that is skipped would not be checked to be JSON."""


class _Text(_Exact, tag_field="type", tag="text-delta"):
    text: str
    index: Any = UNSET


class _Reasoning(_Text, tag="reasoning-delta"):
    pass


class _Arguments(_Exact, tag_field="type", tag="tool-call-delta"):
    argumentsDelta: str  # the format's name
    id: Any = UNSET
    name: Any = UNSET
    index: Any = UNSET


class _Start(_Exact, tag_field="type", tag="block-start"):
    blockType: Any  # the format's name
    index: Any = UNSET


class _End(_Exact, tag_field="type", tag="block-end"):
    block: Any
    index: Any = UNSET


class _Usage(_Exact, tag_field="type", tag="usage"):
    usage: Any


class _Finish(_Exact, tag_field="type", tag="finish"):
    reason: Any


_REPORTS: Final = frozenset({_Usage, _Finish})


class _Data(_Exact):
    turn: _Integer
    step: _Integer
    chunk: _Text | _Reasoning | _Arguments | _Start | _End | _Usage | _Finish


class _Chunk(_Exact, tag_field="type", tag="assistant/chunk"):
    seq: int
    time: _Integer
    data: _Data


_decode_lines = msgspec.json.Decoder(_Chunk).decode_lines


def read_deltas(text: bytes, seqs: Sequence[int]) -> list[int] | None:
    """Check rows that begin as :data:`BEGINNING` says, each a line. ``seqs``: the seq that each must have.

    Returns the seqs of those that report on the answer instead of being a piece of it, which folds do read; None where a line needs a
    closer look.
    """
    chunks = decode_rows(_decode_lines, text, len(seqs))
    if chunks is None or [chunk.seq for chunk in chunks] != seqs:
        return None
    return [chunk.seq for chunk in chunks if type(chunk.data.chunk) in _REPORTS]
