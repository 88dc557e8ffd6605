"""The request header in force: model settings, system prompt and tools, as of the last ``request/header``."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from plan_mode_nb.log.events import Event

RequestHeader = dict[str, Any]
"""``{config: {provider, model, ...}, adapterDefaults?, system?, tools?}``."""


def canonical(header: RequestHeader) -> RequestHeader:
    """deepseek-harness's canonical form, the one that is logged and compared: an empty system prompt and an empty tool list are absent."""
    defaults = header.get("adapterDefaults") or {}
    kept: RequestHeader = {"config": header["config"]}
    if defaults.get("reasoningEffort") is True or defaults.get("maxTokens") is True:
        kept["adapterDefaults"] = defaults
    kept.update({key: header[key] for key in ("system", "tools") if header.get(key)})
    return kept


class _Last(msgspec.Struct, frozen=True, gc=False):
    seq: int | None = None
    header: RequestHeader | None = None


class _HeaderFold:
    types: Final = frozenset({"request/header"})

    def start(self) -> _Last:
        """No request yet."""
        return _Last()

    def step(self, state: _Last, event: Event) -> _Last:
        """The last header wins."""
        return _Last(event.seq, event.data["header"])


class HeaderFold(_HeaderFold):
    """Events -> the header in force (canonical), None before the first request."""

    def value(self, state: _Last) -> RequestHeader | None:
        """The header."""
        return None if state.header is None else canonical(state.header)


class HeaderSeqFold(_HeaderFold):
    """Events -> the seq of the last ``request/header``, None before the first."""

    def value(self, state: _Last) -> int | None:
        """The seq."""
        return state.seq


HEADER: Final = HeaderFold()
HEADER_SEQ: Final = HeaderSeqFold()
