"""The output carrier: a turn's cell output holds its events, for front ends that carry the log nowhere else (log.md, Who writes it).

One output holds ``{format, agent?, chosen?, session: header, start, events: [line, ...], attachments?, children?}``; ``start`` is the seq
of its first event, ``children`` the same of the sessions of child agents. A session's pieces lie in several cells, in any order, doubled
where a cell was copied; together they give it back as far as they reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from plan_mode_nb.document.chunks import FORMAT, is_count
from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.log.events import Header
from plan_mode_nb.log.headers import read_header

EVENTS_MIME: Final = "application/vnd.plan-mode-nb.events+json"


def events_bundle(
    header: Header,
    start: int,
    lines: Sequence[str],
    *,
    agent: str | None = None,
    chosen: int = 0,
    attachments: Mapping[str, str] | None = None,
    children: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What a cell's output carries: the lines from ``start`` on, and the attachments (sha256 -> base64) that they name.

    ``children``: the bundles of its children's sessions.
    """
    bundle: dict[str, Any] = {"format": FORMAT, "session": header.to_json(), "start": start, "events": list(lines)}
    if agent is not None:
        bundle["agent"] = agent
    if chosen:
        bundle["chosen"] = chosen
    if children:
        bundle["children"] = [dict(child) for child in children]
    return {**bundle, "attachments": dict(attachments)} if attachments else bundle


def read_outputs(cells: Iterable[Mapping[str, Any]]) -> Document:
    """The document that the cells' outputs hold. Never raises: what is not understood becomes a problem."""
    documents: list[Document] = []
    pieces: dict[str, list[tuple[Header, int, list[str]]]] = {}
    for bundle in _bundles(cells):
        try:
            header, start, lines = _piece(bundle)
        except FormatError as error:
            documents.append(Document(problems=(f"a cell's output carries events that cannot be read: {error}",)))
            continue
        pieces.setdefault(header.id, []).append((header, start, lines))
        agent, attachments = bundle.get("agent"), bundle.get("attachments", {})
        agents = {agent: header.id} if isinstance(agent, str) else {}
        chosen = {name: bundle["chosen"] for name in agents if is_count(bundle.get("chosen"))}
        documents.append(Document(agents=agents, chosen=chosen, attachments=attachments))
    for each in pieces.values():
        documents.extend(_joined(each))
    return merge_documents(*documents)


def without_events(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The cell with what its outputs carry taken out; an output that showed nothing else goes."""
    outputs = cell.get("outputs")
    if not isinstance(outputs, list) or not any(map(carries_events, outputs)):
        return dict(cell)
    left = [_without(output) if carries_events(output) else output for output in outputs]
    return {**cell, "outputs": [output for output in left if output is not None]}


def carries_events(output: object) -> bool:
    """Whether an output carries events, readable or not."""
    data = output.get("data") if isinstance(output, Mapping) else None
    return isinstance(data, Mapping) and EVENTS_MIME in data


def _without(output: Mapping[str, Any]) -> dict[str, Any] | None:
    data = {mime: value for mime, value in output["data"].items() if mime != EVENTS_MIME}
    return {**output, "data": data} if any(data.values()) else None


def _bundles(cells: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    for cell in cells:
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            if carries_events(output):
                bundle = output["data"][EVENTS_MIME]
                yield bundle
                children = bundle.get("children") if isinstance(bundle, Mapping) else None
                yield from children if isinstance(children, list) else []


def _piece(bundle: Any) -> tuple[Header, int, list[str]]:
    if not isinstance(bundle, Mapping) or bundle.get("format") != FORMAT:
        raise FormatError("another version wrote them; upgrade plan_mode_nb")
    header = read_header(bundle.get("session"))
    start, lines, attachments = bundle.get("start"), bundle.get("events"), bundle.get("attachments", {})
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise FormatError(f"session {header.id}: `start` must be an integer of 0 or more")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise FormatError(f"session {header.id}: `events` must be a list of lines")
    if not isinstance(attachments, Mapping) or not all(isinstance(value, str) for value in attachments.values()):
        raise FormatError(f"session {header.id}: `attachments` must be an object of base64 texts")
    return header, start, lines


def _joined(pieces: list[tuple[Header, int, list[str]]]) -> Iterator[Document]:
    """One copy of the session for every way its pieces fit together, and a problem for each piece that reaches nothing."""
    copies: list[tuple[Header, list[str]]] = []
    for header, start, lines in sorted(pieces, key=lambda piece: piece[1]):
        fits = [copy for copy in copies if len(copy[1]) >= start and copy[1][start : start + len(lines)] == lines[: len(copy[1]) - start]]
        if fits:
            _, held = max(fits, key=lambda copy: len(copy[1]))
            held.extend(lines[len(held) - start :])
        elif start == 0:
            copies.append((header, list(lines)))
        else:
            branch = next((copy for copy in copies if len(copy[1]) >= start), None)
            if branch is None:
                yield Document(
                    problems=(f"session {header.id}: no cell carries the events before {start}; those from there on were left out",)
                )
            else:
                copies.append((header, [*branch[1][:start], *lines]))
    for header, lines in copies:
        yield one_session(StoredSession(header, lines))
