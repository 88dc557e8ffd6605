"""The envelope of one event, its draft, and the header of a session.

Shapes and names are deepseek-harness's session format, version 0 (``FORMAT.md`` of its recorded logs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NewType

import msgspec
from msgspec import UNSET, Meta, UnsetType

SessionId = NewType("SessionId", str)
Clock = Callable[[], int]
"""Integer Unix milliseconds."""

FORMAT_VERSION = 0
SAFE_INTEGER: Final = 2**53 - 1
"""JavaScript's largest safe integer: beyond it dsh could not read the number back unchanged."""
Integer = Annotated[int, Meta(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]
"""A safe integer, where a type is read or checked; nothing checks it when a value is made."""


class Replace(msgspec.Struct, frozen=True, tag_field="op", tag="replace", forbid_unknown_fields=True):
    """A surface operation: this event takes the place of the span from ``start`` to ``end`` (seqs on the surface, inclusive)."""

    start: int
    end: int


SurfaceOp = Literal["append"] | Replace
APPEND: Literal["append"] = "append"


class Event(
    msgspec.Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    rename={"surface_op": "surfaceOp", "source_event_seqs": "sourceEventSeqs"},
):
    """One row of the log. ``seq`` is contiguous from 0, ``time`` integer Unix milliseconds, ``data`` lossless JSON (never mutate it)."""

    type: str
    seq: Annotated[int, Meta(ge=0, le=SAFE_INTEGER)]
    time: Integer
    data: Any
    surface_op: SurfaceOp | UnsetType = UNSET
    source_event_seqs: list[int] | UnsetType = UNSET
    ignorable: bool | UnsetType = UNSET

    @property
    def sources(self) -> list[int]:
        """``sourceEventSeqs``, empty where the event has none."""
        return [] if self.source_event_seqs is UNSET else self.source_event_seqs

    @property
    def is_ignorable(self) -> bool:
        """Whether a reader that does not know the type may skip the event."""
        return self.ignorable is True


class Draft(msgspec.Struct, frozen=True):
    """An event before the log gives it ``seq`` and ``time``. Build one with :func:`draft` or :func:`surface`."""

    type: str
    data: Any
    surface_op: SurfaceOp | UnsetType = UNSET
    source_event_seqs: list[int] | UnsetType = UNSET
    ignorable: bool | UnsetType = UNSET


class Header(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={
        "created_at": "createdAt",
        "delegation_depth": "delegationDepth",
        "parent_session": "parentSession",
        "seed_length": "seedLength",
        "agent_preset": "agentPreset",
    },
):
    """dsh's header row without its ``type``.

    ``created_at`` is Unix milliseconds; ``seed_length`` counts the events taken from the parent.
    """

    id: SessionId
    created_at: int
    version: int = msgspec.field(default=FORMAT_VERSION)
    delegation_depth: int = msgspec.field(default=0)
    cwd: str | UnsetType = UNSET
    parent_session: SessionId | UnsetType = UNSET
    seed_length: int | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    agent_preset: str | UnsetType = UNSET

    def to_json(self) -> dict[str, Any]:
        """The header row's keys, ``version`` and ``delegationDepth`` always written (dsh requires them on disk)."""
        row: dict[str, Any] = {"version": self.version, "id": self.id, "createdAt": self.created_at}
        named = {
            "cwd": self.cwd,
            "parentSession": self.parent_session,
            "seedLength": self.seed_length,
            "origin": self.origin,
        }
        row.update({key: value for key, value in named.items() if value is not UNSET})
        row["delegationDepth"] = self.delegation_depth
        if self.agent_preset is not UNSET:
            row["agentPreset"] = self.agent_preset
        return row
