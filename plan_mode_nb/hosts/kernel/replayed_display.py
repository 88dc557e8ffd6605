"""A replayed turn as the outputs of its cell: the same bundles as live, in the same order and number, each displayed once.

nbval follows no updates of a display, so nothing is shown before it is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from IPython.display import display

from plan_mode_nb.agent.attachments import images_of
from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.hosts.arrivals import Arrivals, ChildEvent
from plan_mode_nb.hosts.front_end import Recorded, RunningTurn, TurnEnd
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.render.cards import FIGURE
from plan_mode_nb.render.turn_view import TurnView

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

Shown = tuple[int, Mapping[str, Any], Mapping[str, Any]]
"""What code displayed: behind how many of the turn's own displays it stands, its data by mime, its metadata."""


@final
class ReplayedDisplay:
    """Satisfies front_end.TurnDisplay."""

    def __init__(self, host: KernelHost, agent: LoopAgent, saved: Sequence[Shown] = ()) -> None:
        """``saved``: what code displayed when it ran, for a turn in which none runs again."""
        self._host = host
        self._view = TurnView(self._title_of, images_of(host.composition.seams.attachments))
        self._arrivals = Arrivals(agent, lambda: None)
        self._shown: list[Shown] = list(saved)

    def open(self, turn: RunningTurn) -> None:
        """Listen."""
        self._arrivals.open()

    def flush(self) -> None:
        """Take in what arrived; nothing is shown yet."""
        for arrived in self._arrivals.take():
            if isinstance(arrived, ChildEvent):
                self._view.feed_child(arrived.call, arrived.session, arrived.who, arrived.event)
            elif not isinstance(arrived, Preview):
                self._view.feed(arrived)

    def close(self, reason: TurnEnd) -> None:
        """Show everything."""
        self._arrivals.close()
        self.flush()
        bundles = [slot.bundle for slot in self._view.slots]
        for place, bundle in enumerate(bundles):
            self._show_code(place)
            display(dict(bundle), raw=True)
        self._show_code(len(bundles))

    def on_recording(self, call_id: str, recording: Recorded | None) -> None:
        """Code has ended: keep what it displayed, at its place."""
        if recording is not None and recording.status != "running":
            place = len(self._view.slots)
            self._shown += [(place, dict(shown.data), dict(shown.metadata)) for shown in recording.displays]

    def show_plan(self, state: PlanState) -> None:
        """No controls, so nothing to say."""

    def _show_code(self, place: int) -> None:
        for at, data, metadata in self._shown:
            if at == place:
                display(dict(data), raw=True, metadata=dict(metadata))

    def _title_of(self, name: str, arguments: str) -> str | None:
        tool = self._host.composition.seams.tools.get(name)
        shown = None if tool is None else tool.present_call(arguments)
        return None if shown is None else shown.title


def figures_of(outputs: Iterable[Mapping[str, Any]]) -> list[Shown]:
    """What code displayed among a cell's saved outputs, each with how many of the turn's own displays stand before it."""
    own = 0
    found: list[Shown] = []
    for output in outputs:
        if output.get("output_type") != "display_data":
            continue
        if _is_own(output["data"]):
            own += 1
        else:
            found.append((own, _joined(output["data"]), dict(output.get("metadata", {}))))
    return found


def _is_own(data: Mapping[str, Any]) -> bool:
    """A turn's own display: a card, text of the model's as markdown and HTML, which no object of a library shows together, or a figure
    of the log's."""
    html = data.get("text/html", "")
    if {"text/markdown", "text/html"} <= data.keys() or "pmnb-static" in (html if isinstance(html, str) else "".join(html)):
        return True
    return "".join(data.get("text/plain", "")).startswith(FIGURE)


def _joined(data: Mapping[str, Any]) -> dict[str, Any]:
    """Texts as one string each: in a file they may be lists of lines."""
    return {mime: "".join(value) if isinstance(value, list) and not mime.endswith("json") else value for mime, value in data.items()}
