"""Reading the header of a session from outside: deepseek-harness's rules for its header row, the same for a header in a notebook."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import UNSET, UnsetType

from plan_mode_nb.exceptions import FormatError, quoted
from plan_mode_nb.log.events import FORMAT_VERSION, SAFE_INTEGER, Header, SessionId

RETIRED_KEYS = ("sandboxMode", "approvalPolicy")
"""Once part of the header, now events. A header that has them would be half understood."""


def read_header(row: object, *, line: int | None = None) -> Header:
    """The header in a parsed JSON value; keys that are not known are ignored. ``line``: where it stands, for the error.

    Raises:
        FormatError: of another version (checked before anything else, so a newer format never looks damaged), or not a header.
    """
    if not isinstance(row, dict):
        raise FormatError("this is not a session log: it does not begin with a session header", line=line)
    version = row.get("version")
    if isinstance(version, (int, float)) and not isinstance(version, bool) and version != FORMAT_VERSION:
        newer = (
            "a newer version wrote it; upgrade plan_mode_nb to read it" if version > FORMAT_VERSION else "nothing reads that one any more"
        )
        raise FormatError(
            f"this session log has format version {quoted(version)}, and this version reads {FORMAT_VERSION}: {newer}", line=line
        )
    for key in RETIRED_KEYS:
        if key in row:
            raise FormatError(f"the session header has the retired key {key!r}; open this log with the version that wrote it", line=line)
    try:
        return _header(row)
    except _Wrong as wrong:
        way_out = "" if line is None else f"; name another file, or correct line {line} in a copy of this one"
        raise FormatError(f"this is not a session log: its header's {wrong}{way_out}", line=line) from None


class _Wrong(Exception):
    """What is wrong with which key."""


def _header(row: dict[str, Any]) -> Header:
    if row.get("version") is None or isinstance(row["version"], bool) or row["version"] != FORMAT_VERSION:
        raise _Wrong(f"`version` must be {FORMAT_VERSION}")
    cwd = _optional_text(row, "cwd")
    if cwd is not UNSET and not (PurePosixPath(cwd).is_absolute() or PureWindowsPath(cwd).is_absolute()):
        raise _Wrong("`cwd` must be an absolute path")
    origin = _optional_text(row, "origin")
    if origin not in (UNSET, "subagent"):
        raise _Wrong("`origin` must be subagent")
    if not isinstance(row.get("id"), str) or not row["id"]:
        raise _Wrong("`id` must be a string that is not empty")
    parent = _optional_text(row, "parentSession")
    return Header(
        id=SessionId(row["id"]),
        created_at=_count(row, "createdAt"),
        delegation_depth=_count(row, "delegationDepth"),
        cwd=cwd,
        parent_session=UNSET if parent is UNSET else SessionId(parent),
        seed_length=_count(row, "seedLength") if row.get("seedLength") is not None else UNSET,
        origin=origin,
        agent_preset=_optional_text(row, "agentPreset"),
    )


def _count(row: dict[str, Any], key: str) -> int:
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= SAFE_INTEGER:
        raise _Wrong(f"`{key}` must be an integer of 0 or more")
    return value


def _optional_text(row: dict[str, Any], key: str) -> str | UnsetType:
    value = row.get(key, UNSET)
    if value is UNSET or isinstance(value, str):
        return value
    raise _Wrong(f"`{key}` must be a string")
