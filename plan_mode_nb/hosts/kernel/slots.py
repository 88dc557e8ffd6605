"""One output of the cell: displayed once, changed in place, static at the end.

A front end keeps the last state of an output in the notebook, so what remains is the last bundle, at the place where it first appeared.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from IPython.display import display, update_display

Bundle = Mapping[str, Any]
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class OutputSlot:
    """Every call comes on the main thread, inside the cell."""

    def __init__(self) -> None:
        self._display_id: str | None = None
        self._shown: Bundle | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the output exists yet."""
        return self._display_id is not None

    def show(self, bundle: Bundle) -> None:
        """Display, or replace what is there; nothing is sent when nothing changed."""
        if bundle == self._shown:
            return
        self._shown = dict(bundle)
        if self._display_id is None:
            # Transient: a front end uses it to find the output again and does not save it.
            self._display_id = uuid.uuid4().hex
            display(dict(bundle), raw=True, display_id=self._display_id)
        else:
            update_display(dict(bundle), raw=True, display_id=self._display_id)

    def show_widget(self, widget: Any, text: str) -> None:
        """Put a live widget here; ``text`` is what a front end without widgets shows."""
        view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
        self.show({"text/plain": text, WIDGET_MIME: view})
