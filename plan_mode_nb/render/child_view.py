"""What a call's child did, as lines: the progress of a running call, and the record in its card when it is over."""

from __future__ import annotations

from typing import Final

from plan_mode_nb.plan.visible import visible_line
from plan_mode_nb.render.facts import EventLike, mapping, result_of
from plan_mode_nb.render.tool_card import read_arguments
from plan_mode_nb.render.transcript import Sayings

SHOWN: Final = 60
"""Lines that a card holds; of more, the last."""
_SAID: Final = frozenset({"assistant/message", "tool/call", "approval/decided", "question/answered", "plan/mode", "llm/retry"})


def whose(who: str) -> str:
    """The child that asks, in words; ``who``: its task's label."""
    return f"the child agent “{visible_line(who)}”"


class ChildView:
    """Fed the events of one child, and of its children after it (each told apart by ``session``), in order."""

    def __init__(self) -> None:
        self._sayings: dict[str, Sayings] = {}
        self._first = ""
        self._steps = self._calls = 0
        self._lines: list[str] = []
        self._given: dict[tuple[str, object], str] = {}

    def feed(self, session: str, who: str, event: EventLike) -> str:
        """Take one more event; returns its line, "" where it is worth none."""
        self._first = self._first or session
        sayings = self._sayings.setdefault(session, Sayings())
        said = sayings.of(_Undecided(event))
        is_own = session == self._first
        if event.type == "tool/call":
            data = mapping(event.data)
            self._given[session, data.get("callId")] = str(data.get("arguments", ""))
        self._steps += is_own and event.type == "step/start"
        self._calls += is_own and event.type == "tool/call"
        if not said or not (event.type in _SAID or _is_failure(event)):
            return ""
        self._lines.append(said if is_own else f"{visible_line(who)}: {said}")
        return said

    def given(self, session: str, call_id: object) -> str:
        """What a call of a child was given, each argument's value as it is; "" for one that is not known."""
        return "\n\n".join(argument.value for argument in read_arguments(self._given.get((session, call_id), "")))

    @property
    def last(self) -> str:
        """The last line."""
        return self._lines[-1] if self._lines else ""

    @property
    def lines(self) -> list[str]:
        """A heading that counts, and the lines."""
        steps, calls = (f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((self._steps, "step"), (self._calls, "call")))
        left = len(self._lines) - SHOWN
        earlier = [f"… {left} earlier line{'' if left == 1 else 's'}"] if left > 0 else []
        return [f"The child: {steps}, {calls}", *earlier, *self._lines[-SHOWN:]]


class _Undecided:
    """An event without who decided: a replayed answer must look like the person's."""

    def __init__(self, event: EventLike) -> None:
        self.type, self.seq, self.time = event.type, event.seq, event.time
        self.data = {key: value for key, value in mapping(event.data).items() if key != "by"}


def _is_failure(event: EventLike) -> bool:
    """A result that is worth a line: the person sees only the last words of what went well."""
    if event.type == "tool/result":
        return result_of(event.data)[2]
    return event.type == "turn/end" and mapping(mapping(event.data).get("reason")).get("kind") != "completed"
