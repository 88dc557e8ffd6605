"""The chained hash of a session's lines: two copies with the same hash at k agree on their first k lines (definitions.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256


def start(session_id: str) -> str:
    """h(0), in hex: the hash of the session's id."""
    return _sha256(session_id)


def step(before: str, line: str) -> str:
    """h(k+1) from h(k) and line k: both as text, concatenated."""
    return _sha256(before + line)


def chained(session_id: str, lines: Iterable[str]) -> str:
    """h(k) of k lines. O(their length)."""
    value = start(session_id)
    for line in lines:
        value = step(value, line)
    return value


class Chain:
    """Every h(k) of a growing list of lines, computed once each."""

    def __init__(self, session_id: str, lines: Sequence[str] = ()) -> None:
        """``lines``: a list that its owner only appends to, such as ``Session.lines``; it is read again as it grows."""
        self._lines = lines
        self._hashes = [start(session_id)]

    def at(self, length: int) -> str:
        """h(length).

        Raises:
            IndexError: there are fewer lines.
        """
        if not 0 <= length <= len(self._lines):
            raise IndexError(f"no chained hash at {length}: there are {len(self._lines)} lines")
        while len(self._hashes) <= length:
            self._hashes.append(step(self._hashes[-1], self._lines[len(self._hashes) - 1]))
        return self._hashes[length]


def _sha256(text: str) -> str:
    # A hand-edited notebook can hold half a surrogate pair, which UTF-8 cannot; such a line still needs a hash to be kept under.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
