"""Notebook metadata to sessions and back (log.md, In the notebook).

::

    metadata["plan_mode_nb"]                      = {"format": 1, "agents": {name: id}, "sessions": {id: header},
                                                     "chosen"?: {name: count}, "stripped"?: [id]}
    metadata["plan_mode_nb/<id>/<start>"]         = [line, ...]      start: seq of the first line, 7 digits
    metadata["plan_mode_nb/attachments/<sha256>"] = base64

Lines stay strings: one compact event each makes an append an append in git, and no writer between can change a number in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from plan_mode_nb.document.document import Document, StoredSession, Unread
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.headers import read_header

KEY: Final = "plan_mode_nb"
FORMAT: Final = 1
CHUNK_CODE_POINTS: Final = 16_384
_CHUNK_KEY: Final = re.compile(rf"{KEY}/(?P<id>.+)/(?P<start>\d{{7,}})", re.DOTALL)
_ATTACHMENT_KEY: Final = re.compile(rf"{KEY}/attachments/(?P<sha>[0-9a-f]{{64}})")


def is_ours(key: str) -> bool:
    """Whether a metadata key belongs to this package."""
    return key == KEY or key.startswith(f"{KEY}/")


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value says how often a name was sent to another session."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53


def chunk_key(session_id: str, start: int) -> str:
    """The metadata key of the chunk whose first line is line ``start``."""
    return f"{KEY}/{session_id}/{start:07d}"


def chunk_of(key: str) -> tuple[str, int] | None:
    """The session id and first seq that a metadata key names; None when it is no chunk's."""
    found = _CHUNK_KEY.fullmatch(key)
    if found is None or chunk_key(found["id"], int(found["start"])) != key:
        return None
    return found["id"], int(found["start"])


def chunked(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """``(start, lines)`` of each chunk. A chunk takes no more once it holds 16,384 code points; a function of the lines alone."""
    start, size = 0, 0
    for end, line in enumerate(lines, start=1):
        size += len(line)
        if size >= CHUNK_CODE_POINTS:
            yield start, list(lines[start:end])
            start, size = end, 0
    if start < len(lines):
        yield start, list(lines[start:])


def read_metadata(metadata: object) -> Document:
    """What a notebook's metadata holds of ours. Never raises: what is not understood becomes a problem and is kept as it is."""
    if not isinstance(metadata, Mapping):
        return Document(locked="this notebook's metadata is not an object", problems=("this notebook's metadata is not an object",))
    ours = {key: value for key, value in metadata.items() if isinstance(key, str) and is_ours(key)}
    if not ours:
        return Document()
    locked = _locked(ours)
    if locked:
        return Document(unread=Unread(keys=ours), problems=(locked,), locked=locked)
    return _Reader(ours).document()


def _locked(ours: Mapping[str, Any]) -> str:
    index = ours.get(KEY, {"format": FORMAT})
    if not isinstance(index, Mapping):
        return f"the notebook's metadata entry {KEY!r} is damaged, so nothing is read from it or written to it; repair or remove it"
    version = index.get("format")
    if version != FORMAT or isinstance(version, bool):
        if isinstance(version, int) and version > FORMAT:
            return f"a newer version wrote this notebook's sessions (format {version}); upgrade plan_mode_nb to read and write them"
        return f"the notebook's metadata entry {KEY!r} names no format that is known, so it is left alone; repair or remove it"
    for name, kind in (("agents", Mapping), ("sessions", Mapping), ("chosen", Mapping), ("stripped", list)):
        if not isinstance(index.get(name, kind() if kind is list else {}), kind):
            return f"{name!r} in the notebook's metadata entry {KEY!r} is damaged, so it is left alone; repair or remove it"
    return ""


class _Reader:
    """One pass over keys that are ours, in an index of this format."""

    def __init__(self, ours: Mapping[str, Any]) -> None:
        self.index: Mapping[str, Any] = ours.get(KEY, {})
        self.stripped = frozenset(each for each in self.index.get("stripped", []) if isinstance(each, str))
        self.attachments: dict[str, str] = {}
        self.chunks: dict[str, dict[int, Any]] = {}
        self.sessions: dict[str, StoredSession] = {}
        self.unread_headers: dict[str, Any] = {}
        self.unread_keys: dict[str, Any] = {}
        self.problems: list[str] = []
        for key in sorted(ours.keys() - {KEY}):
            self._sort(key, ours[key])

    def document(self) -> Document:
        """What was read, with the problems found on the way."""
        gone = Document(stripped=self.stripped)
        headers = {each: value for each, value in self.index.get("sessions", {}).items() if not gone.is_stripped(each)}
        for session_id in [*headers, *(each for each in self.chunks if each not in headers and not gone.is_stripped(each))]:
            self._read(session_id, headers)
        known = {"format", "agents", "sessions", "chosen", "stripped"}
        named = self.index.get("agents", {})
        agents = {name: target for name, target in named.items() if isinstance(target, str) and not gone.is_stripped(target)}
        return Document(
            agents=agents,
            chosen={name: count for name, count in self.index.get("chosen", {}).items() if name in agents and is_count(count)},
            sessions=self.sessions,
            attachments=self.attachments,
            stripped=self.stripped,
            unread=Unread(self.unread_headers, self.unread_keys, {k: v for k, v in self.index.items() if k not in known}),
            problems=tuple(self.problems),
        )

    def _sort(self, key: str, value: Any) -> None:
        attachment, chunk = _ATTACHMENT_KEY.fullmatch(key), chunk_of(key)
        if attachment and isinstance(value, str):
            self.attachments[attachment["sha"]] = value
        elif chunk:
            self.chunks.setdefault(chunk[0], {})[chunk[1]] = value
        else:
            self.unread_keys[key] = value
            self.problems.append(f"the notebook's metadata entry {key!r} is not understood; it was left as it is")

    def _read(self, session_id: str, headers: Mapping[str, Any]) -> None:
        chunks = self.chunks.get(session_id, {})
        try:
            if session_id not in headers:
                raise FormatError("its header is missing")
            header = read_header(headers[session_id])
            if header.id != session_id:
                raise FormatError(f"its header says that it is session {header.id!r}")
            self.sessions[session_id] = StoredSession(header, _joined(chunks), dict(headers[session_id]))
        except FormatError as error:
            self.problems.append(f"session {session_id!r} in this notebook cannot be read ({error}); it was left as it is")
            self.unread_keys.update({chunk_key(session_id, start): value for start, value in chunks.items()})
            if session_id in headers:
                self.unread_headers[session_id] = headers[session_id]


def _joined(chunks: Mapping[int, Any]) -> list[str]:
    lines: list[str] = []
    for start in sorted(chunks):
        if start != len(lines):
            raise FormatError(f"its events {min(start, len(lines))} to {max(start, len(lines)) - 1} are missing or doubled")
        value = chunks[start]
        if not isinstance(value, list) or not set(map(type, value)) <= {str}:
            raise FormatError(f"its events from {start} on are not a list of lines")
        lines.extend(value)
    return lines


def write_metadata(document: Document, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with our keys replaced by this document; other keys, and what was not understood, stay as they are.

    Meant for a document that takes in what ``metadata`` holds (:func:`~plan_mode_nb.document.reconcile.merge_documents`). A notebook that
    is ``locked`` comes back unchanged.
    """
    there = read_metadata(metadata)
    if there.locked or document.locked:
        return dict(metadata)
    headers = {**document.unread.headers, **there.unread.headers}
    written = {key: value for key, value in metadata.items() if not is_ours(key)}
    index = {**document.unread.index, **there.unread.index}
    sessions = {each: session for each, session in document.sessions.items() if each not in headers and not document.is_stripped(each)}
    keys = {**document.unread.keys, **there.unread.keys}
    if sessions or headers or keys or index or document.agents or document.stripped or document.attachments:
        written[KEY] = {
            "format": FORMAT,
            "agents": dict(sorted(document.agents.items())),
            "sessions": {**{each: session.header_json() for each, session in sorted(sessions.items())}, **headers},
            **({"chosen": dict(sorted(document.chosen.items()))} if document.chosen else {}),
            **({"stripped": sorted(document.stripped)} if document.stripped else {}),
            **index,
        }
    for session_id, session in sorted(sessions.items()):
        written.update({chunk_key(session_id, start): lines for start, lines in chunked(session.lines)})
    written.update({f"{KEY}/attachments/{sha}": text for sha, text in sorted(document.attachments.items())})
    return {**written, **keys}
