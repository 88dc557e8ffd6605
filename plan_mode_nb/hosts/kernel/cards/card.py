"""One card: traits to show, and a callback for what the person does. It decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, get_args

import anywidget
import traitlets

from plan_mode_nb.hosts.kernel.cards import assets
from plan_mode_nb.hosts.kernel.cards.acts import Act, CardKind, read_act
from plan_mode_nb.plan.visible import visible

_logger = logging.getLogger(__name__)

CardState = Literal[
    "waiting",
    "approved",
    "keep planning",
    "answered",
    "allowed",
    "rejected",
    "left",
    "dismissed",
    "interrupted",
    "unavailable",
    "over",
]


class Card(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget is untyped here
    """A card in a cell's output, live while a turn waits or runs.

    ``Card(kind, on_act=..., **traits)``; every trait may change later. ``on_act`` is called once for each well-formed act, in the thread
    that dispatches comms (so it should hand over and return), whatever the state: what a late or second act means is the provider's
    business. A message of any other shape is ignored, with one logged warning a card. Text that is read before a decision is shown
    with hiding characters made visible; ``html`` and ``diff_html`` must be sanitised already, ``markdown`` is never shown.

    Closing the widget, and replacing its output by a static bundle when the turn ends, is the host's part.
    """

    _esm = assets.module()
    _css = assets.style()

    kind = traitlets.Enum(get_args(CardKind)).tag(sync=True)
    """Which card: "controls", "review", "question" or "approval". Fixed once it is shown."""
    state = traitlets.Enum(get_args(CardState), default_value="waiting").tag(sync=True)
    """"waiting" while the card is live; anything else makes it inert and is said on it."""
    title = traitlets.Unicode().tag(sync=True)
    """The plan's heading, or a line above the questions or the preview."""
    note = traitlets.Unicode().tag(sync=True)
    """A sentence under the title, or none."""
    html = traitlets.Unicode().tag(sync=True)
    """The plan, rendered and sanitised."""
    markdown = traitlets.Unicode().tag(sync=True)
    """The plan's exact text, for *Save plan*."""
    diff_html = traitlets.Unicode().tag(sync=True)
    """The difference from the previous submission, sanitised; empty on the first: then there is no *Changes* view."""
    questions: traitlets.List[dict[str, Any]] = traitlets.List(traitlets.Dict()).tag(sync=True)
    """As in ``question/asked``; fixed once it is shown. A review answers under the first one's id, else ``plan-review``."""
    tool = traitlets.Unicode().tag(sync=True)
    """The tool to approve."""
    preview = traitlets.Unicode().tag(sync=True)
    """Exactly what would run."""
    reason = traitlets.Unicode().tag(sync=True)
    """Why it needs a person."""
    plan: traitlets.Dict[str, bool | None] = traitlets.Dict(default_value={"active": False, "pending": None}).tag(sync=True)
    """Plan mode as ``{"active": bool, "pending": bool | None}``."""
    busy = traitlets.Bool(default_value=False).tag(sync=True)
    """The agent's own synchronous Python holds the kernel: what is clicked here waits for it."""

    def __init__(self, kind: CardKind, *, on_act: Callable[[Act], object], **content: Any) -> None:
        unknown = content.keys() - self.class_trait_names(sync=True)
        if unknown:
            raise TypeError(f"Card has no trait {', '.join(sorted(unknown))}")
        super().__init__(kind=kind, **content)
        self._on_act = on_act
        self._warned = False
        self.on_msg(self._receive)

    def close(self) -> None:
        """Close the widget, and the layout that every widget has and ipywidgets would keep open."""
        layout = self.layout
        super().close()
        if layout is not None:
            layout.close()

    @traitlets.validate("title", "note", "tool", "preview", "reason")  # type: ignore[untyped-decorator]
    def _show_what_hides(self, proposal: Any) -> str:
        return visible(proposal["value"])

    def _receive(self, _widget: object, content: object, _buffers: object) -> None:
        act = read_act(content, self.kind)
        if act is not None:
            self._on_act(act)
        elif not self._warned:
            self._warned = True
            _logger.warning("ignored a message that no %s card sends: %.200r", self.kind, content)
