"""Turns that are stopped at a place which they have reached, and what must hold afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall
from plan_mode_nb.log.session import Session
from plan_mode_nb.models.script import say
from plan_mode_nb.testing.workbench import Workbench, counted_clock

CONFIG: Mapping[str, str] = {"provider": "p", "model": "m"}
USER = {"kind": "aborted", "reason": {"kind": "user"}}
PLAN = '{"plan":"# P\\n\\nbody"}'


class Reached:
    """A place that a test waits for, and that then waits to be cancelled."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def stay(self) -> None:
        self.event.set()
        await asyncio.Event().wait()


async def stop_at(bench: Workbench, reached: Reached, *, cause: dict[str, Any] | None = None) -> None:
    """Run a turn, stop it at the place, and see it end as cancelled."""
    turn = asyncio.ensure_future(bench.ask("go"))
    await asyncio.wait_for(reached.event.wait(), 60)
    assert bench.agent.cancel({"kind": "user"} if cause is None else cause)
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert not bench.agent.is_running
    assert not bench.agent.is_stopped()


async def goes_on(bench: Workbench) -> None:
    """The log has no open turn, loads again, and the next turn completes."""
    assert bench.session.place.turn is None
    Session(bench.session.header, clock=counted_clock(), lines=bench.session.lines)
    bench.model.add(say("back"))
    assert (await bench.ask("again")).reason == {"kind": "completed"}


def tool(run: Callable[[ToolCall], Awaitable[Outcome]]) -> Any:
    return lambda seams: seams.tools.register(Tool("wait", "Wait.", {"type": "object"}, run))


def errors(bench: Workbench) -> list[tuple[str, str | None]]:
    return [(e.data["message"]["source"]["callId"], e.data.get("error", {}).get("code")) for e in bench.events("tool/result")]
