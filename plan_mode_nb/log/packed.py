"""deepseek-harness's packed rows: one storage row for a run of ``assistant/chunk`` events. Only its files hold them.

``text-chunks`` and ``reasoning-chunks`` are ``{type, seq0, time0, data: {turn, step, index, dt, texts}}``; ``tool-call-chunks`` has ``id``,
``name?`` and ``args`` for ``texts``. Member k has seq ``seq0 + k`` and time ``time0 + sum(dt[:k])``. Strings are never joined.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from plan_mode_nb.log.codec import decode, encode, encode_batch, parse_as_javascript
from plan_mode_nb.log.events import SAFE_INTEGER, Event

TAGS: Final = ("text-chunks", "reasoning-chunks", "tool-call-chunks")
_CALL: Final = b'{"type":"tool-call-chunks"'
_DELTAS: Final = {"text-chunks": "text-delta", "reasoning-chunks": "reasoning-delta"}
_Number = int | float


class Malformed(ValueError):
    """A row with a packed tag that is not exactly one. It counts as a line that cannot be parsed."""


class _Texts(msgspec.Struct, forbid_unknown_fields=True):
    turn: _Number
    step: _Number
    index: _Number
    dt: list[int]
    texts: list[str]


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    turn: _Number
    step: _Number
    index: _Number
    id: str
    dt: list[int]
    args: list[str]
    name: str | UnsetType = UNSET


class _TextRow(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text-chunks", "reasoning-chunks"]
    seq0: int
    time0: int
    data: _Texts


class _CallRow(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["tool-call-chunks"]
    seq0: int
    time0: int
    data: _Arguments


_decode_texts = msgspec.json.Decoder(_TextRow).decode
_decode_call = msgspec.json.Decoder(_CallRow).decode
_Row = _TextRow | _CallRow


class Run:
    """The events of one packed row, each made when asked for. ``seq``: the first one's."""

    __slots__ = ("_head", "_is_plain", "_key", "_place", "_texts", "_times", "seq")

    def __init__(self, row: _Row, *, is_plain: bool) -> None:
        """``is_plain``: no text can hold half a surrogate pair.

        Raises:
            Malformed: the numbers of the row do not fit.
        """
        data = row.data
        self.seq, self._is_plain = row.seq0, is_plain
        self._place = {"turn": data.turn, "step": data.step}
        if isinstance(data, _Texts):
            self._head: dict[str, Any] = {"type": _DELTAS[row.type], "index": data.index}
            self._key, self._texts = "text", data.texts
        else:
            named = {} if data.name is UNSET else {"name": data.name}
            self._head = {"type": "tool-call-delta", "index": data.index, "id": data.id, **named}
            self._key, self._texts = "argumentsDelta", data.args
        if not self._texts:
            raise Malformed("it must hold a list of one or more strings")
        if len(data.dt) != len(self._texts) - 1:
            raise Malformed("`dt` must hold one integer fewer than there are members")
        self._times = times = list(accumulate(data.dt, initial=row.time0))
        in_range = min(times) >= -SAFE_INTEGER and max(times) <= SAFE_INTEGER and 0 <= row.seq0 <= SAFE_INTEGER - len(times) + 1
        if not in_range or (data.dt and max(map(abs, data.dt)) > SAFE_INTEGER):
            raise Malformed("the seq, time or gap of a member is not a safe integer")

    def __len__(self) -> int:
        return len(self._texts)

    def event(self, member: int) -> Event:
        """The event at a place of the run, from 0."""
        event = self._as_written(member)
        return event if self._is_plain else decode(encode(event))

    def line(self, member: int) -> str:
        """The line of that event."""
        return encode(self._as_written(member))

    def lines(self, start: int = 0) -> list[str]:
        """The lines of the events from a place on, made at once."""
        written = encode_batch([self._as_written(member) for member in range(start, len(self))])
        return [self.line(member) for member in range(start, len(self))] if written is None else written.decode().split("\n")[:-1]

    def _as_written(self, member: int) -> Event:
        chunk = {**self._head, self._key: self._texts[member]}
        return Event("assistant/chunk", self.seq + member, self._times[member], {**self._place, "chunk": chunk})


def read_run(row: bytes) -> Run:
    """The events of a packed row.

    Raises:
        Malformed: the row is JSON, but not exactly a packed row.
        ValueError, RecursionError: it is not JSON.
    """
    try:
        return Run((_decode_call if row.startswith(_CALL) else _decode_texts)(row), is_plain=True)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass  # what JavaScript reads and the strict parser does not follows, and what is wrong is said there
    value = parse_as_javascript(row.decode(errors="replace"), lone="keep")
    kind: type[_Row] = _CallRow if isinstance(value, dict) and value.get("type") == "tool-call-chunks" else _TextRow
    try:
        return Run(msgspec.convert(value, kind), is_plain=False)
    except msgspec.MsgspecError as fault:
        raise Malformed(str(fault)) from None


def is_packed(value: object) -> bool:
    """Whether a parsed row says that it is packed."""
    return isinstance(value, dict) and value.get("type") in TAGS
