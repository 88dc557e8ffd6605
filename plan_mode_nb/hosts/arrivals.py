"""What a display of a turn is told: the turn's events and previews, from the agent thread to the main thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.log.events import Event
from plan_mode_nb.loop.agent import LoopAgent


class Arrivals:
    """Collects from `open` to `close`. ``told()`` is called on the agent thread whenever something came."""

    def __init__(self, agent: LoopAgent, told: Callable[[], None]) -> None:
        self._agent = agent
        self._told = told
        self._waiting: deque[Event | Preview] = deque()
        self._began = False
        self._undos: list[Callable[[], None]] = []

    def open(self) -> None:
        """Listen."""
        self._undos = [self._agent.session.subscribe(self._on_events), self._agent.seams.previews.subscribe(self._on_preview)]

    def close(self) -> None:
        """Listen no more; what came before is still there to take."""
        for undo in self._undos:
            undo()
        self._undos = []

    def take(self) -> Iterator[Event | Preview]:
        """What came, in order, each once. Reasoning is not previewed; events ahead of the first of a turn, or of a compaction, are not its
        own: they close an earlier turn that was interrupted."""
        while self._waiting:
            arrived = self._waiting.popleft()
            if isinstance(arrived, Event):
                self._began = self._began or arrived.type in ("turn/start", "compaction/start")
                if not self._began:
                    continue
            yield arrived

    def _on_events(self, batch: Sequence[Event]) -> None:
        self._waiting.extend(batch)
        self._told()

    def _on_preview(self, preview: Preview) -> None:
        if preview.session == self._agent.session.id and preview.kind != "reasoning":
            self._waiting.append(preview)
            self._told()
