"""What a display of a turn is told: the turn's events and previews, and its children's events, from the agent thread to the main thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from plan_mode_nb.agent.delegation import Birth
from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.log.events import Event
from plan_mode_nb.loop.agent import LoopAgent


class ChildEvent(Struct, frozen=True):
    """An event of a child. ``call``: the turn's own call that it works for; ``who``: its task's label, after its parents' where it has
    some; ``session``: its id."""

    call: str
    who: str
    session: str
    event: Event


class Arrivals:
    """Collects from `open` to `close`. ``told()`` is called on the agent thread whenever something came."""

    def __init__(self, agent: LoopAgent, told: Callable[[], None]) -> None:
        self._agent = agent
        self._told = told
        self._waiting: deque[Event | Preview | ChildEvent] = deque()
        self._began = False
        self._children: dict[str, tuple[Birth, str, str]] = {}
        self._undos: list[Callable[[], None]] = []

    def open(self) -> None:
        """Listen."""
        seams = self._agent.seams
        self._undos = [
            self._agent.session.subscribe(self._on_events),
            seams.previews.subscribe(self._on_preview),
            seams.delegation.watch(self._on_birth),
        ]

    def close(self) -> None:
        """Listen no more; what came before is still there to take."""
        for undo in self._undos:
            undo()
        self._undos = []

    def take(self) -> Iterator[Event | Preview | ChildEvent]:
        """What came, in order, each once. Reasoning is not previewed; events ahead of the first of a turn, or of a compaction, are not its
        own: they close an earlier turn that was interrupted."""
        while self._waiting:
            arrived = self._waiting.popleft()
            if isinstance(arrived, Event):
                self._began = self._began or arrived.type in ("turn/start", "compaction/start")
                if not self._began:
                    continue
            yield arrived

    @property
    def child(self) -> Birth | None:
        """The child that works now, the innermost; None where it is the agent itself. To be read while the agent waits."""
        return next((birth for birth, _, _ in reversed(self._children.values()) if birth.child.is_running), None)

    def _on_events(self, batch: Sequence[Event]) -> None:
        self._waiting.extend(batch)
        self._told()

    def _on_preview(self, preview: Preview) -> None:
        if preview.session == self._agent.session.id and preview.kind != "reasoning":
            self._waiting.append(preview)
            self._told()

    def _on_birth(self, birth: Birth) -> None:
        parent, session = birth.parent.session, birth.child.session
        if parent is self._agent.session:
            call, who = birth.call_id, birth.label
        elif parent.id in self._children:
            _, call, over = self._children[parent.id]
            who = f"{over} › {birth.label}"
        else:
            return
        self._children[session.id] = (birth, call, who)

        def on_events(batch: Sequence[Event]) -> None:
            self._waiting.extend(ChildEvent(call, who, session.id, event) for event in batch)
            self._told()

        self._undos.append(session.subscribe(on_events))
