"""A session that goes on after a turn that went wrong."""

from __future__ import annotations

from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import say
from plan_mode_nb.testing.workbench import Workbench, counted_clock


def add(a: int, b: int) -> str:
    """Add."""
    return str(a + b)


def with_add(seams: object) -> object:
    return seams.tools.register(tool_from(add))  # type: ignore[attr-defined]


async def goes_on(bench: Workbench) -> None:
    """The log loads again, the next turn completes and its request answers every call of the history."""
    Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines)
    bench.agent.models = lambda name: bench.model
    bench.model.add(*[say("back")] * (1 - bench.model.remaining))
    assert (await bench.ask("again")).reason == {"kind": "completed"}
    blocks = [block for message in bench.model.requests[-1].messages for block in message["content"]]
    asked = [block["id"] for block in blocks if block["type"] == "tool-call"]
    assert asked == [block["toolCallId"] for block in blocks if block["type"] == "tool-result"]
