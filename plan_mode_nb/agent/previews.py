"""What is seen before it is logged: streaming text. A preview is replaced by its ``assistant/message`` and is never state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from plan_mode_nb.agent.registry import Undo, entered
from plan_mode_nb.log.events import SessionId

_logger = logging.getLogger(__name__)


class Preview(Struct, frozen=True):
    """More text of one block of the answer that is streaming. ``start``: the model began (again): drop what was shown of this step."""

    session: SessionId
    kind: Literal["start", "text", "reasoning"]
    index: int = 0
    text: str = ""


class Previews:
    """Listeners for previews, called on the agent thread."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Callable[[Preview], None]]] = []

    def subscribe(self, listener: Callable[[Preview], None]) -> Undo:
        """Add a listener; returns the undo."""
        return entered(self._listeners, listener)

    def send(self, preview: Preview) -> None:
        """Tell everybody. A listener that fails is logged and does not stop the answer."""
        for (listener,) in tuple(self._listeners):
            try:
                listener(preview)
            except Exception:
                _logger.exception("a preview listener failed in session %s", preview.session)
