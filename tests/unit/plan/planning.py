"""What the plan tests share: a composition with plan mode between two other sections, a reviewer, and readers of what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from plan_mode_nb.agent.model import Request
from plan_mode_nb.agent.questions import Answer, QuestionRequest, Reply
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Install, Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.folds.plan import is_notice
from plan_mode_nb.models.script import Call, call
from plan_mode_nb.models.scripted import Step
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install
from plan_mode_nb.testing.workbench import Workbench

GUIDE = "Explore first.\n\nHand in one plan."
FIRST = "You live in a notebook."
PLAN = "# Fix the join\n\n1. Look at the keys.\n2. Deduplicate.\n"
ON = "The user switched this session to plan mode."
OFF = "The user switched this session back to the default mode."


def note(text: str) -> str:
    """Take a note."""
    return f"noted {text}"


def plan_mode(seams: Seams) -> Undo:
    """Plan mode with the guidance of these tests."""
    return install(seams, PlanModeConfig(GUIDE))


def others(seams: Seams) -> Undo:
    """What stands around plan mode: a section before it and a tool."""
    return undo_all([seams.sections.register("first", 0, lambda context: FIRST), seams.tools.register(tool_from(note))])


def planned(*steps: Step, install: Iterable[Install] = (), **more: Any) -> Workbench:
    """An agent with plan mode in its composition."""
    return Workbench(*steps, install=[others, plan_mode, *install], **more)


def exits(plan: object = PLAN, id: str | None = None) -> Call:
    """The model hands in a plan."""
    return call("exit_plan_mode", {"plan": plan}, id)


def approve() -> Reply:
    """The one reply that approves."""
    return Reply("answered", (Answer("plan-review", ("Approve",)),))


def keep(words: str | None = None) -> Reply:
    """Keep planning, with the person's words if any."""
    return Reply("answered", (Answer("plan-review", ("Keep planning",), words),))


class Reviewer:
    """Answers reviews with what a test gives, in order: a reply, or a function that is called when the review is shown."""

    def __init__(self, *replies: Reply | Callable[[QuestionRequest], Any]) -> None:
        self.shown: list[QuestionRequest] = []
        self._replies = list(replies)

    async def ask(self, request: QuestionRequest) -> Any:
        """The next reply; none left waits for ever."""
        self.shown.append(request)
        if not self._replies:
            await asyncio.Event().wait()
        reply = self._replies.pop(0)
        result = reply(request) if callable(reply) else reply
        return await result if asyncio.iscoroutine(result) or asyncio.isfuture(result) else result


def reviewed(bench: Workbench, *replies: Reply | Callable[[QuestionRequest], Any]) -> Reviewer:
    """Put a reviewer in place."""
    reviewer = Reviewer(*replies)
    bench.seams.questions.provide(reviewer)
    return reviewer


def shows(request: Request) -> bool:
    """Whether a request has the guidance, where it belongs and exactly."""
    assert request.system in (FIRST, f"{FIRST}\n\n{GUIDE}")
    return request.system != FIRST


def notices(bench: Workbench) -> list[str]:
    """The texts of the plan notices, in order."""
    return [event.data["content"][0]["text"] for event in bench.events("user/message") if is_notice(event.data)]


def modes(bench: Workbench) -> list[bool]:
    """The values of all ``plan/mode`` events."""
    return [event.data["active"] for event in bench.events("plan/mode")]


def last_result(bench: Workbench) -> tuple[bool, str]:
    """Whether the last call failed, and its text."""
    block = bench.events("tool/result")[-1].data["message"]["content"][0]
    return block["isError"], block["content"][0]["text"]


async def until(condition: Callable[[], bool], *, rounds: int = 10_000) -> None:
    """Let the loop run until something is so; bounded in rounds, not in time."""
    for _ in range(rounds):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def planning(*steps: Step, **more: Any) -> Workbench:
    """An agent in plan mode."""
    bench = planned(*steps, **more)
    PlanMode.set(bench.agent, True)
    return bench


def codes(bench: Workbench) -> list[str | None]:
    """The error codes of all results; None for one that did not fail."""
    return [event.data.get("error", {}).get("code") for event in bench.events("tool/result")]


def toggling(*values: bool, then: Any = None) -> Any:
    """Builds a model's step during which the person selects these values, one after the other."""

    def build(bench: Workbench) -> Any:
        def step(request: object) -> Any:
            for value in values:
                PlanMode.set(bench.agent, value)
            return then or call("note", {"text": "x"})

        return step

    return build


def with_toggles(*builders: Any) -> Workbench:
    """An agent whose model's steps are built with :func:`toggling`, or given."""
    bench = planned()
    bench.model.add(*[builder(bench) if callable(builder) else builder for builder in builders])
    return bench
