"""Random logs that keep every rule: each step picks one thing that may happen where the log stands.

A seed and a length, rather than one draw for every choice: hypothesis' draws favour the first choice so much that hardly any log would
reach a tool result. A failing log shrinks by its length; a prefix of it is the same log, shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from plan_mode_nb.log.events import Draft, Replace
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.testing import logs

TEXTS = ["", "x", "é😀", "off", "a\nb", "# heading"]
PLANS = ["# A\n\nbody", "# B ##\n\n- x", "no heading"]


class LogMaker:
    """Draws events one at a time. ``noise`` alone never moves plan state."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.session: Session = logs.new_session()
        self.queues = {"next-turn": 0, "next-step": 0}
        self.asked: list[str] = []
        self.running: list[str] = []

    def grow(self, noise_only: bool = False) -> None:
        kinds = [self.turn, self.message, self.step_work, self.axis, self.inbox, self.compaction, self.unknown, self.question]
        if not noise_only:
            kinds += [self.plan, self.plan, self.command, self.header, self.exit]
        if self.session.place.step is None:
            kinds += [self.turn] * 4
        else:
            kinds += [self.step_work] * 6
        drafts = self._pick(kinds)()
        if drafts:
            self.session.append(*drafts)

    def _id(self) -> str:
        return f"id{len(self.session)}"

    def _pick(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def _flag(self) -> bool:
        return self.random.random() < 0.5

    def turn(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None:
            return [logs.turn_start(place.next_turn)]
        if place.step is None:
            if place.next_step <= 3 and self.random.randint(0, 3):
                return [logs.step_start(place.turn, place.next_step)]
            return [logs.turn_end(place.turn, self._pick(["completed", "aborted", "interrupted"]))]
        return [logs.step_end(place.turn, place.step)]

    def message(self) -> list[Draft]:
        return [logs.user(self._pick(TEXTS), id=self._id())]

    def step_work(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None or place.step is None:
            return [draft("session/title", {"title": self._pick(TEXTS)})]
        turn, step, tokens = place.turn, place.step, self.random.randint(0, 99)
        if place.calls and self._flag():
            call = place.calls[0]
            return [logs.tool_result(turn, step, call, is_error=self._flag(), id=self._id())]
        blocks = [] if self._flag() else [self._pick(TEXTS)]
        usage = {"inputTokens": tokens, "outputTokens": 1}
        return [
            self._pick(
                [
                    logs.assistant(turn, step, *blocks, id=self._id(), usage=usage),
                    logs.usage_chunk(turn, step, tokens, 1),
                    logs.tool_call(turn, step, self._id()),
                    draft("todo/write", {"todos": [{"content": "x", "status": "pending"}]}),
                ]
            )
        ]

    def axis(self) -> list[Draft]:
        return [self._pick([draft("approval/policy", {"policy": "ask"}), draft("sandbox/mode", {"mode": "read-only"})])]

    def inbox(self) -> list[Draft]:
        target = self._pick(["next-turn", "next-step"])
        length = self.queues[target]
        start = self.random.randint(0, length)
        removed = self.random.randint(0, length - start)
        inserted = [self._id()] if self._flag() else []
        self.queues[target] += len(inserted) - removed
        return [logs.spliced(target, start, *inserted, removed=removed)]

    def compaction(self) -> list[Draft]:
        nodes = list(self.session._trace.nodes)
        if not nodes:
            return []
        first = self.random.randint(0, len(nodes) - 1)
        last = self.random.randint(first, len(nodes) - 1)
        data = logs.user("summary", id=self._id()).data
        return [surface("user/message", data, op=Replace(nodes[first], nodes[last]), sources=nodes[first : last + 1])]

    def unknown(self) -> list[Draft]:
        return [Draft("future/thing", {"any": self._pick(TEXTS)}, ignorable=True)]

    def question(self) -> list[Draft]:
        if self.asked and self._flag():
            return [logs.question_answered(self.asked.pop())]
        self.asked.append(self._id())
        calls = self.session.place.calls
        return [logs.review_asked(self.asked[-1], self._pick(PLANS), call_id=calls[0] if calls else None)]

    def plan(self) -> list[Draft]:
        active = self._flag()
        return [self._pick([logs.plan_mode(active), logs.plan_selected(active)])]

    def command(self) -> list[Draft]:
        if self.running and self._flag():
            return [logs.command_done(self.running.pop(), self._pick(["success", "error"]))]
        self.running.append(self._id())
        return [logs.command_run(self.running[-1], self._pick(["", "off", " OFF ", "do it"]), name=self._pick(["plan", "other"]))]

    def header(self) -> list[Draft]:
        if self.session.place.turn is None:
            return [logs.notice(id=self._id())]
        return [logs.request_header(system=self._pick(TEXTS))]

    def exit(self) -> list[Draft]:
        place = self.session.place
        if place.turn is None or place.step is None:
            return []
        return [logs.tool_call(place.turn, place.step, self._id(), "exit_plan_mode", {"plan": self._pick(PLANS)})]


SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def sessions(draw: Callable[..., Any], *, max_events: int = 60) -> Session:
    """A session with a random legal log."""
    maker = LogMaker(draw(SEEDS))
    for _ in range(draw(st.sampled_from([max_events, 0, 1, 5, 25]))):
        maker.grow()
    return maker.session
