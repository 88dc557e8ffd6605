"""What a session spent on whom, and how full the context is."""

from __future__ import annotations

import asyncio
from typing import Any

from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import retry
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.spending import SPENDING
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.log.events import Replace
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.vocabulary import surface
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.script import fail, say, usage
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.testing.workbench import Workbench


class Windowed(ScriptedModel):
    """A scripted model that knows what it can read."""

    def __init__(self, window: int | None, name: str, *steps: Any) -> None:
        super().__init__(steps, config={"provider": "p", "model": name})
        self.window = window

    async def context_window(self) -> int | None:
        return self.window


async def no_wait(seconds: float) -> None:
    """Retries do not wait here."""


def test_tokens_are_summed_by_the_model_they_were_spent_on() -> None:
    async def main() -> None:
        bench = Workbench()
        one, two = (
            Windowed(None, "one", [usage(1, 2), say("a")], [usage(10, 20), say("c")]),
            Windowed(None, "two", [usage(100, 200), say("b")]),
        )
        for model in (one, two, one):
            bench.agent.models = lambda name, model=model: model
            await bench.ask("go")
        assert bench.session.fold(SPENDING) == {("p", "one"): Usage(11, 22), ("p", "two"): Usage(100, 200)}
        assert bench.session.fold(USAGE) == Usage(111, 222)

    asyncio.run(main())


def test_a_failed_attempt_that_was_counted_was_paid_for() -> None:
    """Usage of a step is its last attempt's, as deepseek-harness counts; what was spent is the sum."""

    async def main() -> None:
        bench = Workbench(
            [usage(5, 1), say("a "), fail(ModelError("down", code="SERVER"))],
            [usage(5, 2), usage(5, 3), say("b")],
            install=[lambda seams: retry.install(seams, sleep=no_wait)],
        )
        await bench.ask("go")
        assert bench.session.fold(USAGE) == Usage(5, 3)
        assert bench.session.fold(SPENDING) == {("scripted", "scripted"): Usage(10, 4)}

    asyncio.run(main())


def test_what_a_model_can_read_is_logged_when_it_is_known_and_when_it_changes() -> None:
    """deepseek-harness's ``request/context``: after the header, once, until something differs."""

    async def main() -> None:
        bench = Workbench()
        small, large = Windowed(100, "small", say("1"), say("2"), say("4")), Windowed(1000, "large", say("3"))
        unknown = Windowed(None, "unknown", say("0"), say("5"))
        for model in (unknown, small, small, large, small, unknown):
            bench.agent.models = lambda name, model=model: model
            await bench.ask("go")
        assert [event.data for event in bench.events("request/context")] == [
            {"provider": "p", "model": "small", "contextWindow": 100},
            {"provider": "p", "model": "large", "contextWindow": 1000},
            {"provider": "p", "model": "small", "contextWindow": 100},
            {"provider": "p", "model": "unknown"},
        ]
        assert [bench.types[event.seq - 1] for event in bench.events("request/context")] == ["request/header"] * 4
        assert bench.session.fold(CONTEXT).window is None

    asyncio.run(main())


def test_the_gauge_is_the_last_prompt_cached_or_not() -> None:
    async def main() -> None:
        bench = Workbench()
        model = Windowed(1000, "m", [usage(20, 999, cache_read_tokens=70, cache_write_tokens=10), say("1")])
        bench.agent.models = lambda name: model
        await bench.ask("go")
        context = bench.session.fold(CONTEXT)
        assert (context.used, context.window) == (100, 1000)

    asyncio.run(main())


def test_after_a_compaction_nobody_knows_how_full_it_is() -> None:
    """Until the next request was counted."""

    async def main() -> None:
        bench = Workbench([usage(20, 1), say("1")], [usage(5, 1), say("2")])
        await bench.ask("go")
        assert bench.session.fold(CONTEXT).used == 20
        spoken = [event.seq for event in bench.session.events if event.surface_op]
        summary = user_message("so far", id="s", source={"kind": "plugin", "plugin": "compact"})
        bench.session.append(surface("user/message", summary, op=Replace(spoken[0], spoken[-1]), sources=spoken))
        assert bench.session.fold(CONTEXT).used is None
        await bench.ask("go on")
        assert bench.session.fold(CONTEXT).used == 5

    asyncio.run(main())


def test_a_recording_knows_what_its_model_could_read() -> None:
    """So that a replayed session logs the same."""

    async def main() -> None:
        bench = Workbench()
        models = [Windowed(100, "small", say("1")), Windowed(None, "unknown", say("2")), Windowed(7, "tiny", say("3"))]
        for model in models:
            bench.agent.models = lambda name, model=model: model
            await bench.ask("go")
        again = Workbench()
        recorded = RecordedModel(bench.session.events)
        again.agent.models = lambda name: recorded
        for _ in models:
            await again.ask("go")
        assert [(event.type, event.data) for event in again.session.events] == [(event.type, event.data) for event in bench.session.events]

    asyncio.run(main())
