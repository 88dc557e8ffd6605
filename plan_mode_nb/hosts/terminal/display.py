"""A turn as text in a terminal: what streams is printed once, as it comes, and everything else is a short line."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final, final

from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.hosts.arrivals import Arrivals, ChildEvent
from plan_mode_nb.hosts.front_end import Recorded, RunningTurn, TurnEnd
from plan_mode_nb.hosts.terminal.growing import Growing, Write
from plan_mode_nb.hosts.terminal.people import TerminalPeople
from plan_mode_nb.log.events import Event
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.plan.visible import visible_line
from plan_mode_nb.render import facts
from plan_mode_nb.render.child_view import ChildView
from plan_mode_nb.render.transcript import Sayings
from plan_mode_nb.render.turn_view import SUMMARY, TurnView

MARK: Final = "· "
"""Before each line that is not the model's own text."""
_SAID: Final = frozenset(
    "tool/call tool/result tool/code-dispatch-start tool/code-dispatch question/answered approval/decided llm/retry plan/mode "
    "todo/write compaction/summary compaction/end".split()
)


@final
class TextDisplay:
    """Satisfies front_end.TurnDisplay. Everything is called on the main thread, or while it waits."""

    def __init__(self, agent: LoopAgent, people: TerminalPeople, write: Write) -> None:
        self._people = people
        self._write = write
        self._arrivals = Arrivals(agent, self._mark_dirty)
        self._sayings = Sayings()
        self._summary = TurnView()
        self._streamed: dict[int, Growing] = {}
        self._output: tuple[str, Growing] = ("", Growing(write))
        self._shown_calls: set[str] = set()
        self._children: dict[str, ChildView] = {}
        self._turn: RunningTurn | None = None

    # -- CellView

    def open(self, turn: RunningTurn) -> None:
        """Listen; from now on people can be asked."""
        self._turn = turn
        self._people.turn, self._people.before = turn, self.flush
        self._arrivals.open()

    def flush(self) -> None:
        """Print what arrived."""
        for arrived in self._arrivals.take():
            if isinstance(arrived, Preview):
                self._preview(arrived)
            elif isinstance(arrived, ChildEvent):
                self._child(arrived)
            else:
                self._event(arrived)

    def close(self, reason: TurnEnd) -> None:
        """The rest, and one line on the whole turn."""
        self._arrivals.close()
        self.flush()
        self._end_stream()
        self._output[1].end()
        if self._summary.ended:
            self._line(next(slot.bundle["text/plain"] for slot in self._summary.slots if slot.key == SUMMARY))

    # -- user code, plan mode

    def on_recording(self, call_id: str, recording: Recorded | None) -> None:
        """What code prints and displays is printed as it comes."""
        if recording is None:
            return
        child = self._arrivals.child
        call_id = call_id if child is None else f"{child.child.session.id}:{call_id}"
        if self._output[0] != call_id:
            self._output = (call_id, Growing(self._write))
        if not recording.text.startswith(self._output[1].text):  # cleared, or shortened
            self._output[1].end()
            self._output = (call_id, Growing(self._write))
        growing = self._output[1]
        growing.add(recording.text[len(growing.text) :])
        if growing.text:
            self._shown_calls.add(call_id)
        if recording.status != "running":
            growing.end()

    def show_plan(self, state: PlanState) -> None:
        """What waits for the next step; what is in force is a line of the log."""
        if state.pending is not None:
            self.flush()
            self._line(f"plan mode {'on' if state.pending else 'off'}, from the next step")

    # -- inside

    def _mark_dirty(self) -> None:
        if self._turn is not None:
            self._turn.mark_dirty()

    def _preview(self, preview: Preview) -> None:
        if preview.kind == "start":
            if any(growing.text for growing in self._streamed.values()):
                self._end_stream()
                self._line("the answer begins again")
            self._streamed.clear()
            return
        last = next(reversed(self._streamed), preview.index)
        if last != preview.index:
            self._streamed[last].end()
        self._streamed.setdefault(preview.index, Growing(self._write)).add(preview.text)

    def _event(self, event: Event) -> None:
        self._summary.feed(event)
        data = event.data
        if event.type == "assistant/message":
            self._message(data)
        elif event.type == "user/message":
            self._note(event)
        elif event.type == "compaction/start":
            self._end_stream()
            self._line("compacting the conversation…")
        elif event.type in _SAID:
            said = self._sayings.of(event)
            if _ended_call(event) in self._shown_calls:
                return
            if event.type in ("tool/call", "plan/mode"):
                self._end_stream()
            if said:
                self._line(said)
        else:
            self._sayings.of(event)

    def _child(self, arrived: ChildEvent) -> None:
        """One line for each thing worth one, under the child's name."""
        said = self._children.setdefault(arrived.call, ChildView()).feed(arrived.session, arrived.who, arrived.event)
        if said:
            self._end_stream()
            self._line(f"[{visible_line(arrived.who)}] {said}")

    def _message(self, data: object) -> None:
        """It is in the log: print what did not stream of it, or all where something else streamed."""
        blocks = facts.blocks(facts.mapping(data).get("message"))
        written = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
        streamed = [self._streamed[index] for index in sorted(self._streamed)]
        for text, growing in zip_longest(written, streamed):
            if growing is None or not text:
                growing = growing or Growing(self._write)
            elif not text.startswith(growing.text):
                growing.end()
                growing = Growing(self._write)
            growing.add((text or "")[len(growing.text) :])
            growing.end()
        self._streamed.clear()

    def _note(self, event: Event) -> None:
        """A notice of plan mode; the prompt itself is the line that was typed."""
        if facts.mapping(event.data.get("source")).get("form") == "notice":
            self._line(self._sayings.of(event))

    def _end_stream(self) -> None:
        for growing in self._streamed.values():
            growing.end()

    def _line(self, words: str) -> None:
        self._write(f"{MARK}{words}\n")


def _ended_call(event: Event) -> str:
    """The call that a result ends; "" for anything else."""
    if event.type == "tool/result":
        return facts.result_of(event.data)[0]
    return facts.inside_of(event.data)[0] if event.type == "tool/code-dispatch" else ""
