"""Streamed pieces of answers: most lines of a log that records chunks, and no fold reads them (the message has them whole).

So their events are never made when a log is loaded: their types are their check. What these types accept, the payload rules accept too;
a line that they do not accept is no damage but looked at by itself.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from plan_mode_nb.log.codec import FAULTS
from plan_mode_nb.log.events import Integer

BEGINNING: Final = '{"type":"assistant/chunk",'
"""How a line begins that :func:`is_delta` may be asked about. It costs no parsing to see."""


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
"""What reports on the answer instead of being a piece of it: folds read it."""


class _Data(_Exact):
    turn: Integer
    step: Integer
    chunk: _Text | _Reasoning | _Arguments | _Start | _End | _Usage | _Finish


class _Chunk(_Exact, tag_field="type", tag="assistant/chunk"):
    seq: int
    time: Integer
    data: _Data


_decode = msgspec.json.Decoder(_Chunk).decode


def is_delta(line: str, seq: int) -> bool:
    """Whether a line that begins as :data:`BEGINNING` says is a piece of an answer, and the event ``seq``. If not, it needs a look."""
    try:
        chunk = _decode(line)
    except FAULTS:
        return False
    return chunk.seq == seq and type(chunk.data.chunk) not in _REPORTS and "\n" not in line
