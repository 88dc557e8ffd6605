"""Making copies agree: two copies of a session, or whole documents (log.md, Reconcile). Nothing is dropped, interleaved or renumbered.

One copy is a prefix of the other: the longer. They diverge at line i: both stay; the branch whose line i has the smaller sha256 keeps the
id, the other becomes ``<id>~<i>~<first 12 hex of that hash>``. So the result depends on the copies alone, and a diverged tab that saves
again and again makes one fork.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from plan_mode_nb.document.chunks import chunk_of
from plan_mode_nb.document.document import Document, StoredSession, Unread
from plan_mode_nb.log.events import Header, SessionId


def common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """How many lines two copies have in common, from the first on."""
    shorter = min(len(a), len(b))
    if a[:shorter] == b[:shorter]:
        return shorter
    return next(index for index in range(shorter) if a[index] != b[index])


def line_hash(line: str) -> str:
    """A line's sha256 in hex."""
    return sha256(line.encode("utf-8", "surrogatepass")).hexdigest()


def fork_id(session_id: str, at: int, line: str) -> SessionId:
    """The id of the branch that leaves ``session_id`` with ``line`` as its line ``at``."""
    return SessionId(f"{session_id}~{at}~{line_hash(line)[:12]}")


def reconcile(a: StoredSession, b: StoredSession) -> list[StoredSession]:
    """One session (the longer copy) or two: the one that keeps the id, then the fork. Both copies have the same id."""
    at = common_prefix(a.lines, b.lines)
    if at == min(len(a.lines), len(b.lines)):
        longer = a if len(a.lines) >= len(b.lines) else b
        kept = min((a, b), key=_header_text)
        return [replace(longer, header=kept.header, raw=kept.raw)]
    kept, other = sorted((a, b), key=lambda copy: line_hash(copy.lines[at]))
    return [replace(kept, header=min((a, b), key=_header_text).header, raw=min((a, b), key=_header_text).raw), _forked(other, at)]


def _forked(session: StoredSession, at: int) -> StoredSession:
    parent = session.header
    new_id = fork_id(parent.id, at, session.lines[at] if session.lines else "")
    raw = None
    if session.raw is not None:
        raw = {**session.raw, "id": new_id, "parentSession": parent.id, "seedLength": at}
    return StoredSession(_with(parent, new_id, at), session.lines, raw)


def _with(parent: Header, new_id: SessionId, at: int) -> Header:
    return Header(
        id=new_id,
        created_at=parent.created_at,
        delegation_depth=parent.delegation_depth,
        cwd=parent.cwd,
        parent_session=parent.id,
        seed_length=at,
        origin=parent.origin,
        agent_preset=parent.agent_preset,
    )


def merge_documents(*documents: Document) -> Document:
    """One document that holds everything of all of them. The same for any order of two; merging again changes nothing.

    A document that is locked gives its problems only, and its lock.
    """
    open_ones = [each for each in documents if not each.locked]
    gone = Document(stripped=frozenset().union(*(each.stripped for each in open_ones)))
    unread = Unread(
        headers=_union(each.unread.headers for each in open_ones),
        keys=_union(each.unread.keys for each in open_ones),
        index=_union(each.unread.index for each in open_ones),
    )
    sessions, unread = _beside_unread(_merged_sessions(open_ones, gone), unread)
    problems = tuple(dict.fromkeys(problem for each in documents for problem in each.problems))
    agents, chosen = _merged_agents(open_ones, sessions, gone)
    return Document(
        agents=agents,
        chosen=chosen,
        sessions=sessions,
        attachments=_union(each.attachments for each in open_ones),
        stripped=gone.stripped,
        unread=unread,
        problems=problems,
        locked=next((each.locked for each in documents if each.locked), ""),
    )


def with_agents(document: Document, agents: Mapping[str, str]) -> Document:
    """The document with these names sent to these sessions, in force against every copy of it as it was."""
    moved = {name for name, target in agents.items() if name in document.agents and document.agents[name] != target}
    chosen = {**document.chosen, **{name: document.chosen.get(name, 0) + 1 for name in moved}}
    return replace(document, agents={**document.agents, **agents}, chosen=chosen)


def holds(document: Document, session: StoredSession) -> bool:
    """Whether every line of a session is in the document, under its id or as a fork. Never one that was stripped from it."""
    if document.locked or document.is_stripped(session.header.id):
        return False
    if not session.lines:
        return True
    merged = merge_documents(document, Document(sessions={session.header.id: session}))
    return _lines(merged) == _lines(document)


def _lines(document: Document) -> dict[str, list[str]]:
    return {session_id: list(session.lines) for session_id, session in document.sessions.items()}


def _merged_sessions(documents: Sequence[Document], gone: Document) -> dict[str, StoredSession]:
    return _reconciled([copy for each in documents for copy in each.sessions.values() if not gone.is_stripped(copy.header.id)])


def _reconciled(copies: Iterable[StoredSession]) -> dict[str, StoredSession]:
    merged: dict[str, StoredSession] = {}
    waiting = deque(copies)
    while waiting:
        copy = waiting.popleft()
        there = merged.get(copy.header.id)
        if there is None:
            merged[copy.header.id] = copy
            continue
        kept, *fork = reconcile(there, copy)
        merged[copy.header.id] = kept
        waiting.extend(fork)
    return dict(sorted(merged.items()))


def _beside_unread(sessions: dict[str, StoredSession], unread: Unread) -> tuple[dict[str, StoredSession], Unread]:
    """A session whose id also has a copy that cannot be read: the readable one takes its place only if it holds all of that copy's lines.

    Otherwise it becomes a fork at 0, because the unreadable copy must not be written over.
    """
    headers, keys = dict(unread.headers), dict(unread.keys)
    result: list[StoredSession] = []
    for session_id, session in sessions.items():
        chunks = {key: value for key, value in keys.items() if (chunk_of(key) or ("",))[0] == session_id}
        if session_id not in headers and not chunks:
            result.append(session)
        elif all(_holds(session, key, value) for key, value in chunks.items()):
            headers.pop(session_id, None)
            keys = {key: value for key, value in keys.items() if key not in chunks}
            result.append(session)
        else:
            result.append(_forked(session, 0))
    return _reconciled(result), Unread(headers, keys, unread.index)


def _holds(session: StoredSession, key: str, value: Any) -> bool:
    _, start = chunk_of(key) or ("", 0)
    return isinstance(value, list) and list(session.lines[start : start + len(value)]) == value


def _merged_agents(
    documents: Sequence[Document], sessions: Mapping[str, StoredSession], gone: Document
) -> tuple[dict[str, str], dict[str, int]]:
    """A name goes to the session that it was sent to after more choices, then to the one with the later ``createdAt``, then to the smaller
    id; and how many choices that were."""
    best: dict[str, tuple[int, int, str]] = {}
    for each in documents:
        for name, target in each.agents.items():
            if not gone.is_stripped(target):
                rank = (-each.chosen.get(name, 0), -_created(sessions, target), target)
                best[name] = min(best.get(name, rank), rank)
    ranked = sorted(best.items())
    return {name: target for name, (_, _, target) in ranked}, {name: -count for name, (count, _, _) in ranked if count}


def _created(sessions: Mapping[str, StoredSession], session_id: str) -> int:
    return sessions[session_id].header.created_at if session_id in sessions else -1


def _union(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All entries; of two values for one key, the one whose JSON is smaller, so that order does not matter."""
    union: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            union[key] = min(union.get(key, value), value, key=_text)
    return dict(sorted(union.items()))


def _header_text(session: StoredSession) -> str:
    return _text(session.header_json())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
