"""What a notebook's metadata holds of ours, as values. No Jupyter, no IO."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from plan_mode_nb.log.events import Header


class StoredSession(Struct, frozen=True):
    """One session as text. ``raw``: its header as it was read, with keys that this version does not know; None for one made here."""

    header: Header
    lines: Sequence[str] = ()
    raw: Mapping[str, Any] | None = None

    def header_json(self) -> dict[str, Any]:
        """The header as it is written back."""
        return self.header.to_json() if self.raw is None else dict(self.raw)


class Unread(Struct, frozen=True):
    """What is ours by name but was not understood; written back as it was, and never over.

    ``headers``: entries of the index by session id. ``keys``: metadata keys. ``index``: further keys of the index.
    """

    headers: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    index: Mapping[str, Any] = field(default_factory=dict)


class Document(Struct, frozen=True):
    """Every session of one notebook.

    ``agents``: name -> session id. ``chosen``: how often each name was sent to another session; missing is 0. ``attachments``: sha256 ->
    base64. ``stripped``: ids that never return. ``problems``: one sentence for each thing that was not understood. ``locked``: why nothing
    of ours may be written into this notebook ("" when it may).
    """

    agents: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, StoredSession] = field(default_factory=dict)
    attachments: Mapping[str, str] = field(default_factory=dict)
    stripped: frozenset[str] = frozenset()
    unread: Unread = field(default_factory=Unread)
    chosen: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    locked: str = ""

    def is_stripped(self, session_id: str) -> bool:
        """Whether this id, or the one it was forked from when two copies diverged, was stripped."""
        return any(session_id == gone or session_id.startswith(f"{gone}~") for gone in self.stripped)


def decoded_images(attachments: Mapping[str, str], digests: Iterable[str] | None = None) -> dict[str, bytes]:
    """The bytes of a document's attachments, or of those of these digests, by sha256.

    What is damaged, or is not what its name says, is left out: the notebook may come from anybody.
    """
    images = {}
    for digest in attachments if digests is None else digests:
        try:
            data = base64.b64decode(attachments.get(digest, ""), validate=True)
        except ValueError:
            continue
        if hashlib.sha256(data).hexdigest() == digest:
            images[digest] = data
    return images


class EncodedImages(Mapping[str, str]):
    """Images as a document's attachments: sha256 -> base64, each encoded when it is asked for."""

    def __init__(self, images: Mapping[str, bytes]) -> None:
        self._images = images

    def __getitem__(self, digest: str) -> str:
        return base64.b64encode(self._images[digest]).decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)


def one_session(
    session: StoredSession, *, agent: str | None = None, chosen: int = 0, attachments: Mapping[str, str] | None = None
) -> Document:
    """A document that holds one session, such as a journal's.

    ``agent``: the name it answers to; ``chosen``: how often that name was sent to another session by then.
    """
    session_id = session.header.id
    agents = {} if agent is None else {agent: session_id}
    counts = {name: chosen for name in agents if chosen}
    return Document(agents=agents, chosen=counts, sessions={session_id: session}, attachments=attachments or {})
