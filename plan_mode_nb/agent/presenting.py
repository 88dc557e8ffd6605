"""Waiting for whoever presents something to the person, without trusting it: it may raise, answer junk, or be cancelled by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Fault = Literal["failed", "junk", "closed"]
"""``failed``: it raised; ``junk``: it returned something else; ``closed``: it was cancelled though nobody cancelled the asker."""
_logger = logging.getLogger(__name__)


async def presented(
    present: Callable[[], Awaitable[Any]],
    understood: Callable[[Any], bool],
    *,
    what: str,
    withdrawn: asyncio.Future[T] | None = None,
) -> T | Fault:
    """What ``present`` returns once ``understood`` accepts it, or ``withdrawn``'s result if that comes first or at the same time.

    ``what`` names the request in the log of faults. What was withdrawn before is not presented at all. When the asker is cancelled, the
    presenting is cancelled too and has ended when this raises.

    Raises:
        asyncio.CancelledError: the asker was cancelled.
    """
    if withdrawn is not None and withdrawn.done():
        return withdrawn.result()

    async def call() -> Any:
        return await present()

    presenting = asyncio.ensure_future(call())
    try:
        await asyncio.wait({presenting} if withdrawn is None else {presenting, withdrawn}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not presenting.done():
            presenting.cancel()
            await asyncio.gather(presenting, return_exceptions=True)
    error = None if presenting.cancelled() else presenting.exception()
    if error is not None:
        _logger.error("presenting %s failed", what, exc_info=error)
    if withdrawn is not None and withdrawn.done():
        return withdrawn.result()
    if presenting.cancelled():
        return "closed"
    if error is not None:
        return "failed"
    answer = presenting.result()
    if not understood(answer):
        _logger.error("presenting %s gave %r", what, answer)
        return "junk"
    given: T = answer
    return given
