"""What a request was: a pure function of the log up to it, so that the model seam's input can be derived again and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.folds.header import HEADER, RequestHeader
from plan_mode_nb.folds.history import HISTORY, Messages
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import fold_value


class Request(TypedDict):
    """``config``: provider, model and settings. ``system`` is None and ``tools`` empty where the header has none."""

    config: dict[str, Any]
    system: str | None
    tools: list[dict[str, Any]]
    messages: Messages


def request_of(header: RequestHeader, messages: Messages) -> Request:
    """The request that a header and a history amount to."""
    return Request(config=header["config"], system=header.get("system"), tools=header.get("tools", []), messages=messages)


def request_at(events: Sequence[Event], seq: int) -> Request:
    """The request as it stood after event ``seq``: the last header at or before it, and the surface there. O(seq).

    Raises:
        InvariantError: the log has no event ``seq``, or no header up to it.
    """
    if not 0 <= seq < len(events):
        raise InvariantError(f"there is no event {seq}: this log has {len(events)}", seq=seq)
    prefix = events[: seq + 1]
    header = fold_value(HEADER, prefix)
    if header is None:
        raise InvariantError(f"no request was made up to event {seq}: the log has no request/header there", seq=seq)
    return request_of(header, fold_value(HISTORY, prefix))
