"""One turn as an ordered list of displays, folded from its events one by one.

The kernel shows a slot when it first appears and repaints it when its bundle changes; replay shows the last state at once. Both come
from here, so they are the same bundles in the same order and number (replay.md). Slots are only ever appended: a display that a
notebook already shows cannot move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from plan_mode_nb.render import facts
from plan_mode_nb.render.calls import Asked, Call, TitleOf, asked_approval_card, asked_card, call_card
from plan_mode_nb.render.cards import (
    assistant_text,
    error_line,
    figure,
    notice,
    todo_list,
    turn_summary,
)
from plan_mode_nb.render.child_view import ChildView, whose
from plan_mode_nb.render.compaction import Compacting
from plan_mode_nb.render.facts import EventLike, mapping
from plan_mode_nb.render.html import Bundle

ImageOf = Callable[[str], bytes | None]
"""An image's ``attachmentId`` -> its bytes, None where they are not here."""

SUMMARY = "summary"


class Slot(NamedTuple):
    """``key`` names the display within its turn (a call's id for a call's card); ``final``: the bundle will not change any more."""

    key: str
    bundle: Bundle
    final: bool


class _Entry(Struct):
    """A slot in the making: how to render it, and what it last rendered to."""

    render: Callable[[], Bundle]
    final: bool = False
    rendered: Bundle | None = None

    def bundle(self) -> Bundle:
        """What it shows now, rendered at most once for each change."""
        if self.rendered is None:
            self.rendered = self.render()
        return self.rendered


class TurnView:
    """Feed one turn's events in order; read ``slots`` at any time.

    Slot 0 is the summary, final with ``turn/end``. Then, in the order things first happened: assistant texts, one card a tool call (a
    plan review or a question in place of the card of the call that asked it; calls that a call made itself are in its card) and the
    figures that only the log has, approvals, steering, compactions, the todo list, a failure's line.
    Event types it does not know are ignored.
    """

    def __init__(self, title_of: TitleOf | None = None, image_of: ImageOf = lambda attachment_id: None) -> None:
        self._title_of: TitleOf = title_of or (lambda name, arguments: None)
        self._image_of = image_of
        self._entries: dict[str, _Entry] = {SUMMARY: _Entry(self._summary)}
        self._calls: dict[str, Call] = {}
        self._asked: dict[str, Asked] = {}
        self._usage: dict[object, object] = {}
        self._streamed: dict[object, str] = {}
        self._compactions: dict[str, Compacting] = {}
        self._todos: Sequence[Mapping[str, Any]] = ()
        self._opened = False
        self._steps = 0
        self._retries = 0
        self._reason: Mapping[str, Any] | None = None

    @property
    def slots(self) -> list[Slot]:
        """Every display of the turn so far, in order."""
        return [Slot(key, entry.bundle(), entry.final) for key, entry in self._entries.items()]

    @property
    def preview(self) -> Bundle | None:
        """What the model has streamed of a message that is not in the log yet; it belongs to no slot, since it may never be."""
        streamed = "\n\n".join(part for part in self._streamed.values() if part)
        return assistant_text(streamed) if streamed else None

    @property
    def ended(self) -> bool:
        """Whether ``turn/end`` was seen; what is fed afterwards is no part of this turn."""
        return self._reason is not None

    def feed(self, event: EventLike) -> None:
        """Take the turn's next event."""
        handle = _HANDLERS.get(event.type)
        if handle is not None and not self.ended:
            handle(self, mapping(event.data))

    def feed_child(self, call_id: str, session: str, who: str, event: EventLike) -> None:
        """Take the next event of a child. ``call_id``: the turn's own call that it works for; ``who``: its task in a few words."""
        call = self._calls.get(call_id)
        if call is None or self.ended:
            return
        call.child = call.child or ChildView()
        if call.child.feed(session, who, event):
            for key, entry in self._entries.items():
                if key in self._calls and not entry.final:
                    self._changed(key)
        data = mapping(event.data)
        match event.type:
            case "question/asked":
                request = str(data.get("requestId", ""))
                asked = self._asked[request] = Asked(data, f"question:{request}", of=whose(who))
                self._show(asked.slot, lambda: asked_card(asked, None, ended=self.ended))
            case "approval/asked":
                self._approval(data, of=whose(who), given=call.child.given(session, data.get("callId")))
            case "question/answered" | "approval/decided":
                _HANDLERS[event.type](self, data)

    def _step_start(self, data: Mapping[str, Any]) -> None:
        self._steps += 1
        self._changed(SUMMARY)

    def _chunk(self, data: Mapping[str, Any]) -> None:
        chunk = mapping(data.get("chunk"))
        if chunk.get("type") == "usage":
            self._count(data.get("step"), chunk.get("usage"))
        elif chunk.get("type") == "text-delta":
            index = chunk.get("index")
            self._streamed[index] = self._streamed.get(index, "") + str(chunk.get("text", ""))

    def _retry(self, data: Mapping[str, Any]) -> None:
        self._retries += 1
        self._streamed.clear()
        self._changed(SUMMARY)

    def _message(self, data: Mapping[str, Any]) -> None:
        self._streamed.clear()
        self._count(data.get("step"), data.get("usage"))
        for index, block in enumerate(facts.blocks(data.get("message"))):
            written = str(block.get("text", ""))
            if block.get("type") == "text" and written.strip():
                self._show(f"text:{data.get('step')}:{index}", partial(assistant_text, written), final=True)
            elif block.get("type") == "tool-call":
                call = Call(str(block.get("name", "")), str(block.get("arguments", "")))
                self._calls.setdefault(str(block.get("id", "")), call)

    def _user(self, data: Mapping[str, Any]) -> None:
        source = mapping(data.get("source"))
        said = "\n".join(str(block.get("text", "")) for block in facts.blocks(data) if block.get("type") == "text")
        key = f"user:{len(self._entries)}"
        if source.get("kind") == "user" and not self._opened:
            self._opened = True  # the prompt is the cell itself
        elif source.get("kind") == "user":
            self._show(key, partial(notice, f"You: {said}"), final=True)
        elif source.get("form") == "notice":
            self._show(key, partial(notice, str(source.get("summary") or said)), final=True)

    def _call(self, data: Mapping[str, Any]) -> None:
        call_id = str(data.get("callId", ""))
        self._calls[call_id] = Call(str(data.get("name", "")), str(data.get("arguments", "")))
        self._show(call_id, partial(self._call_card, call_id))

    def _result(self, data: Mapping[str, Any]) -> None:
        call_id, content, is_error = facts.result_of(data)
        call = self._calls.setdefault(call_id, Call("tool", ""))
        call.result, call.is_error = content, is_error
        self._show(call_id, partial(self._call_card, call_id), final=True)
        self._figures(call_id, data)

    def _inside(self, data: Mapping[str, Any]) -> None:
        """A call that another one made: it stands in that one's card."""
        call_id, name, is_error = facts.inside_of(data)
        parent = self._calls.get(parent_id := str(data.get("parentCallId", "")))
        if parent is None or parent_id not in self._entries:
            return
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = Call(name, facts.inside_arguments(data))
            parent.inner.append(call)
        if "content" in data:
            call.result, call.is_error = facts.blocks(data), is_error
            for asked in self._asked.values():
                if asked.data.get("callId") == call_id:
                    self._changed(asked.slot, final=True)
            self._figures(call_id, data)
        self._changed(parent_id)

    def _figures(self, call_id: str, data: Mapping[str, Any]) -> None:
        for number, image in enumerate(facts.own_figures(data)):
            shown = self._image_of(str(mapping(image.get("attachment")).get("attachmentId", "")))
            self._show(f"figure:{call_id}:{number}", partial(figure, image, shown), final=True)

    def _question(self, data: Mapping[str, Any]) -> None:
        request, call_id = str(data.get("requestId", "")), str(data.get("callId", ""))
        call = self._calls.get(call_id)
        if call is not None and call.asked is None and call_id in self._entries:
            call.asked = self._asked[request] = Asked(data, call_id)
            self._changed(call_id)
        else:
            asked = self._asked[request] = Asked(data, f"question:{request}")
            self._show(asked.slot, lambda: asked_card(asked, call, ended=self.ended))

    def _answer(self, data: Mapping[str, Any]) -> None:
        self._answered(str(data.get("requestId", "")), data)

    def _approval(self, data: Mapping[str, Any], of: str = "", given: str = "") -> None:
        slot = f"approval:{data.get('id')}"
        asked = self._asked[slot] = Asked(data, slot, of=of, given=given)
        self._show(slot, lambda: asked_approval_card(asked, ended=self.ended))

    def _decision(self, data: Mapping[str, Any]) -> None:
        self._answered(f"approval:{data.get('id')}", data)

    def _todo_write(self, data: Mapping[str, Any]) -> None:
        self._todos = facts.items(data.get("todos"))
        self._show("todos", lambda: todo_list(self._todos))

    def _compaction(self, data: Mapping[str, Any]) -> None:
        key = f"compaction:{data.get('compactionId')}"
        attempt = self._compactions.setdefault(key, Compacting()).take(data)
        self._count(key, data.get("usage"))
        self._show(key, lambda: attempt.card(ended=self.ended), final=attempt.is_over)

    def _end(self, data: Mapping[str, Any]) -> None:
        self._reason = mapping(data.get("reason"))
        self._streamed.clear()
        if self._reason.get("kind") == "error":
            error = mapping(self._reason.get("error"))
            self._show("error", partial(error_line, str(error.get("message") or error.get("code") or "the turn failed")))
        for key, entry in self._entries.items():
            if not entry.final:
                self._changed(key, final=True)

    def _show(self, key: str, render: Callable[[], Bundle], *, final: bool = False) -> None:
        """Append the slot, or repaint it where it stands."""
        self._entries.setdefault(key, _Entry(render)).render = render
        self._changed(key, final=final)

    def _changed(self, key: str, *, final: bool = False) -> None:
        self._entries[key].rendered = None
        self._entries[key].final = final

    def _answered(self, request: str, data: Mapping[str, Any]) -> None:
        asked = self._asked.get(request)
        if asked is not None and asked.answered is None:
            asked.answered = data
            # A call's card waits for the call's result, which says what the answer led to.
            self._changed(asked.slot, final=asked.slot not in self._calls)

    def _count(self, step: object, usage: object) -> None:
        """The newest usage of a step counts, as in dsh's token fold."""
        if usage is not None:
            self._usage[step] = usage
            self._changed(SUMMARY)

    def _summary(self) -> Bundle:
        counts = [facts.tokens(usage) for usage in self._usage.values()]
        given, made, cached = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
        return turn_summary(self._steps, given, made, cached, self._reason, self._retries)

    def _call_card(self, call_id: str) -> Bundle:
        call = self._calls[call_id]
        if call.asked is not None:
            return asked_card(call.asked, call, ended=self.ended)
        return call_card(call, self._title_of, ended=self.ended)


_HANDLERS: dict[str, Callable[[TurnView, Mapping[str, Any]], None]] = {
    "step/start": TurnView._step_start,
    "assistant/chunk": TurnView._chunk,
    "llm/retry": TurnView._retry,
    "assistant/message": TurnView._message,
    "user/message": TurnView._user,
    "tool/call": TurnView._call,
    "tool/result": TurnView._result,
    "tool/code-dispatch-start": TurnView._inside,
    "tool/code-dispatch": TurnView._inside,
    "question/asked": TurnView._question,
    "question/answered": TurnView._answer,
    "approval/asked": TurnView._approval,
    "approval/decided": TurnView._decision,
    "todo/write": TurnView._todo_write,
    **dict.fromkeys(("compaction/start", "compaction/summary", "compaction/end"), TurnView._compaction),
    "turn/end": TurnView._end,
}


def render_turn(events: Iterable[EventLike], title_of: TitleOf | None = None) -> list[Bundle]:
    """A whole turn's displays in their last state, as replay emits them at once."""
    view = TurnView(title_of)
    for event in events:
        view.feed(event)
    return [slot.bundle for slot in view.slots]
