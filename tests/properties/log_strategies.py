"""Random logs that keep every rule: each step picks one thing that may happen where the log stands."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from plan_mode_nb.log.events import Draft, Replace
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.testing import logs

TEXTS = st.text(max_size=20).filter(lambda text: text.isascii() or text.isprintable())
PLANS = st.sampled_from(["# A\n\nbody", "# B ##\n\n- x", "no heading"])
FLAGS = st.booleans()


class LogMaker:
    """Draws events one at a time. ``noise`` alone never moves plan state."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object]) -> None:
        self.draw = draw
        self.session: Session = logs.new_session()
        self.queues = {"next-turn": 0, "next-step": 0}
        self.asked: list[str] = []
        self.running: list[str] = []

    def grow(self, noise_only: bool = False) -> None:
        kinds = [self.turn, self.message, self.step_work, self.axis, self.inbox, self.compaction, self.unknown, self.question]
        if not noise_only:
            kinds += [self.plan, self.plan, self.command, self.header, self.exit]
        kind = self.draw(st.sampled_from(kinds))
        drafts = kind()  # type: ignore[operator]
        if drafts:
            self.session.append(*drafts)

    def _id(self) -> str:
        return f"id{len(self.session)}"

    def _pick(self, values: list[object]) -> object:
        return self.draw(st.sampled_from(values))

    def turn(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None:
            return [logs.turn_start(place.next_turn)]
        if place.step is None:
            return [
                self._pick([logs.turn_end(place.turn), logs.turn_end(place.turn, "aborted"), logs.step_start(place.turn, place.next_step)])
            ]  # type: ignore[list-item]
        return [logs.step_end(place.turn, place.step)]

    def message(self) -> list[Draft]:
        return [logs.user(str(self.draw(TEXTS)), id=self._id())]

    def step_work(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None or place.step is None:
            return [draft("session/title", {"title": self.draw(TEXTS)})]
        turn, step, tokens = place.turn, place.step, self.draw(st.integers(0, 99))
        if place.calls and self.draw(FLAGS):
            call = place.calls[0]
            return [logs.tool_result(turn, step, call, is_error=bool(self.draw(FLAGS)), id=self._id())]
        blocks = [] if self.draw(FLAGS) else [str(self.draw(TEXTS))]
        usage = {"inputTokens": tokens, "outputTokens": 1}
        return [
            self._pick(  # type: ignore[list-item]
                [
                    logs.assistant(turn, step, *blocks, id=self._id(), usage=usage),
                    logs.usage_chunk(turn, step, tokens, 1),  # type: ignore[arg-type]
                    logs.tool_call(turn, step, self._id()),
                    draft("todo/write", {"todos": [{"content": "x", "status": "pending"}]}),
                ]
            )
        ]

    def axis(self) -> list[Draft]:
        return [self._pick([draft("approval/policy", {"policy": "ask"}), draft("sandbox/mode", {"mode": "read-only"})])]  # type: ignore[list-item]

    def inbox(self) -> list[Draft]:
        target = str(self._pick(["next-turn", "next-step"]))
        length = self.queues[target]
        start = int(self.draw(st.integers(0, length)))  # type: ignore[call-overload]
        removed = int(self.draw(st.integers(0, length - start)))  # type: ignore[call-overload]
        inserted = [self._id()] if self.draw(FLAGS) else []
        self.queues[target] += len(inserted) - removed
        return [logs.spliced(target, start, *inserted, removed=removed)]

    def compaction(self) -> list[Draft]:
        nodes = list(self.session._trace.nodes)
        if not nodes:
            return []
        first = int(self.draw(st.integers(0, len(nodes) - 1)))  # type: ignore[call-overload]
        last = int(self.draw(st.integers(first, len(nodes) - 1)))  # type: ignore[call-overload]
        data = logs.user("summary", id=self._id()).data
        return [surface("user/message", data, op=Replace(nodes[first], nodes[last]), sources=nodes[first : last + 1])]

    def unknown(self) -> list[Draft]:
        return [Draft("future/thing", {"any": self.draw(TEXTS)}, ignorable=True)]

    def question(self) -> list[Draft]:
        if self.asked and self.draw(FLAGS):
            return [logs.question_answered(self.asked.pop())]
        self.asked.append(self._id())
        calls = self.session.place.calls
        return [logs.review_asked(self.asked[-1], str(self.draw(PLANS)), call_id=calls[0] if calls else None)]

    def plan(self) -> list[Draft]:
        active = bool(self.draw(FLAGS))
        return [self._pick([logs.plan_mode(active), logs.plan_selected(active)])]  # type: ignore[list-item]

    def command(self) -> list[Draft]:
        if self.running and self.draw(FLAGS):
            return [logs.command_done(self.running.pop(), str(self._pick(["success", "error"])))]
        self.running.append(self._id())
        return [logs.command_run(self.running[-1], str(self._pick(["", "off", " OFF ", "do it"])), name=str(self._pick(["plan", "other"])))]

    def header(self) -> list[Draft]:
        if self.session.place.turn is None:
            return [logs.notice(id=self._id())]
        return [logs.request_header(system=str(self.draw(TEXTS)))]

    def exit(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None or place.step is None:
            return []
        return [logs.tool_call(place.turn, place.step, self._id(), "exit_plan_mode", {"plan": self.draw(PLANS)})]


@st.composite
def sessions(draw: Callable[[st.SearchStrategy[object]], object], *, max_events: int = 40) -> Session:
    """A session with a random legal log."""
    maker = LogMaker(draw)
    for _ in range(int(draw(st.integers(0, max_events)))):  # type: ignore[call-overload]
        maker.grow()
    return maker.session
