"""A turn as the outputs of its cell: live while it runs, static when it is over.

What is shown is the render layer's projection of the turn's events, in its order; this module only keeps one output for each of its slots,
puts live cards where something waits for the person, and shows streaming text before its message is in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.display import display

from plan_mode_nb.agent.approval import ApprovalRequest
from plan_mode_nb.agent.attachments import images_of
from plan_mode_nb.agent.previews import Preview
from plan_mode_nb.agent.questions import QuestionRequest
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.hosts.arrivals import Arrivals, ChildEvent
from plan_mode_nb.hosts.front_end import Recorded, RunningTurn, TurnEnd
from plan_mode_nb.hosts.kernel import live_cards
from plan_mode_nb.hosts.kernel.cards.acts import Act
from plan_mode_nb.hosts.kernel.slots import OutputSlot
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import text_block, user_message
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.render import facts
from plan_mode_nb.render.cards import assistant_text
from plan_mode_nb.render.tool_card import tool_card
from plan_mode_nb.render.turn_view import SUMMARY, TurnView

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

OnAct = Callable[[Act], object]


class TurnDisplay:
    """Satisfies front_end.TurnDisplay and CardSurface. Everything is called on the main thread."""

    def __init__(self, host: KernelHost, agent: LoopAgent) -> None:
        self._host = host
        self._agent = agent
        self._view = TurnView(self._title_of, images_of(host.composition.seams.attachments))
        self._arrivals = Arrivals(agent, self._mark_dirty)
        self._outputs: dict[str, OutputSlot] = {}
        self._streaming: list[OutputSlot] = []
        self._streamed: dict[int, str] = {}
        self._cards: dict[str, Any] = {}
        self._asked_at: dict[str, str] = {}
        self._arguments: dict[str, tuple[str, str]] = {}
        self._controls: Any = None
        self._turn: RunningTurn | None = None

    # -- CellView

    def open(self, turn: RunningTurn) -> None:
        """Listen, and put the controls card at the place of the summary."""
        self._turn = turn
        self._arrivals.open()
        summary = self._outputs[SUMMARY] = OutputSlot()
        if not self._host.shell.kernel._allow_stdin:
            summary.show(self._view.slots[0].bundle)
            return
        self._controls = live_cards.controls(self._host.plan_state(self._agent.session), self._on_control)
        summary.show_widget(self._controls, "The agent is working. Stop, plan mode and steering are in this card.")

    def flush(self) -> None:
        """Show what arrived."""
        for arrived in self._arrivals.take():
            if isinstance(arrived, Preview):
                self._preview(arrived)
            elif isinstance(arrived, ChildEvent):
                self._feed_child(arrived)
            else:
                self._feed(arrived)
        # What is in the log already stands before what still streams.
        self._show_slots()
        for place, index in enumerate(sorted(self._streamed)):
            self._streaming_slot(place).show(assistant_text(self._streamed[index]))

    def close(self, reason: TurnEnd) -> None:
        """Static outputs only: every card becomes its bundle, the controls become the summary."""
        self._arrivals.close()
        self.flush()
        for key in list(self._cards):
            self._retire(key)
        self._show_slots()
        self._outputs[SUMMARY].show({**self._view.slots[0].bundle, **self._carried()})
        if self._controls is not None:
            self._controls.close()
            self._controls = None

    # -- CardSurface

    def ask(self, request: QuestionRequest, previous: str | None, on_act: OnAct) -> None:
        """Put a live card where the view shows the question."""
        self.flush()
        is_own = request.agent is self._agent and request.call_id in self._outputs
        key = request.call_id if is_own else f"question:{request.request_id}"
        self._asked_at[request.request_id] = str(key)
        self._put_card(str(key), live_cards.question(request, previous, on_act))

    def approve(self, request: ApprovalRequest, on_act: OnAct) -> None:
        """Put a live card where the view shows the approval."""
        self.flush()
        self._put_card(f"approval:{request.id}", live_cards.approval(request, on_act))

    # -- user code

    def on_recording(self, call_id: str, recording: Recorded | None) -> None:
        """Code of a call is about to run (None), runs, or has ended: repaint its card; at the end show what it displayed."""
        if self._controls is not None:
            self._controls.busy = recording is None or recording.status == "running"
        # A child's calls have no card of their own, and their ids may be those of calls that have.
        is_childs = self._arrivals.child is not None
        if recording is None or (call_id not in self._arguments and not is_childs):
            return
        slot = None if is_childs else self._outputs.get(call_id)
        if slot is not None and recording.text:
            name, arguments = self._arguments[call_id]
            slot.show(tool_card(name, arguments, [text_block(recording.text)], "running", self._title_of(name, arguments)))
        if recording.status != "running":
            for shown in recording.displays:
                display(dict(shown.data), raw=True, metadata=dict(shown.metadata))

    # -- inside

    def _carried(self) -> dict[str, Any]:
        """The log itself, invisible, where nothing else carries it."""
        carrier, session, cell = self._host.carrier, self._agent.session, self._host.cell.reference.get("cell")
        return {} if carrier is None else carrier.in_output(self._agent.name, session, cell, self._host.agents.children.of(session))

    def _mark_dirty(self) -> None:
        if self._turn is not None:
            self._turn.mark_dirty()

    def _preview(self, preview: Preview) -> None:
        if preview.kind == "start":
            self._streamed.clear()
        else:
            self._streamed[preview.index] = self._streamed.get(preview.index, "") + preview.text

    def _feed(self, event: Event) -> None:
        self._view.feed(event)
        data = event.data
        match event.type:
            case "tool/call":
                self._arguments[data["callId"]] = (data["name"], data["arguments"])
            case "tool/code-dispatch-start":
                self._arguments[data["subCallId"]] = (data["name"], facts.inside_arguments(data))
            case "assistant/message":
                self._settle_stream(data["step"])
            case "question/answered":
                self._retire(self._asked_at.get(data["requestId"], ""))
            case "approval/decided":
                self._retire(f"approval:{data['id']}")

    def _feed_child(self, arrived: ChildEvent) -> None:
        self._view.feed_child(arrived.call, arrived.session, arrived.who, arrived.event)
        data = arrived.event.data
        match arrived.event.type:
            case "question/answered":
                self._retire(self._asked_at.get(data["requestId"], ""))
            case "approval/decided":
                self._retire(f"approval:{data['id']}")
            case "step/end" if self._host.carrier is not None:
                self._host.carrier.kick()

    def show_plan(self, state: PlanState) -> None:
        """Plan mode changed: the controls say so."""
        if self._controls is not None:
            self._controls.plan = {"active": state.active, "pending": state.pending}

    def _on_control(self, act: Act) -> None:
        """A click on the controls, in the pump."""
        if act["kind"] == "stop" and self._turn is not None:
            self._turn.request_stop()
        elif act["kind"] == "plan":
            self._host.select(act["active"])
        elif act["kind"] == "steer":
            message = user_message(act["text"], id=self._host.composition.seams.new_id())
            self._host.on_agent(lambda: self._agent.inbox.steer(message))

    def _title_of(self, name: str, arguments: str) -> str | None:
        tool = self._host.composition.seams.tools.get(name)
        shown = None if tool is None else tool.present_call(arguments)
        return None if shown is None else shown.title

    def _settle_stream(self, step: int) -> None:
        """The message is in the log: its text slots take over the outputs that showed the stream, in order."""
        keys = [slot.key for slot in self._view.slots if slot.key.startswith(f"text:{step}:")]
        for key, output in zip(keys, self._streaming, strict=False):
            self._outputs.setdefault(key, output)
        self._streaming = self._streaming[len(keys) :]
        self._streamed.clear()

    def _streaming_slot(self, place: int) -> OutputSlot:
        while len(self._streaming) <= place:
            self._streaming.append(OutputSlot())
        return self._streaming[place]

    def _show_slots(self) -> None:
        for slot in self._view.slots:
            if slot.key != SUMMARY and slot.key not in self._cards:
                self._outputs.setdefault(slot.key, OutputSlot()).show(slot.bundle)

    def _put_card(self, key: str, card: Any) -> None:
        self._cards[key] = card
        self._outputs.setdefault(key, OutputSlot()).show_widget(card, "Waiting for you: open this notebook in a front end with widgets.")

    def _retire(self, key: str) -> None:
        """A card's question is over: its bundle takes its place."""
        card = self._cards.pop(key, None)
        if card is None:
            return
        self._show_slots()
        card.close()
