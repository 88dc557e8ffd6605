"""Plan mode may have a model of its own: it answers exactly the steps whose request carries the guidance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from planning import GUIDE

from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.models.script import call, say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.plan import PlanMode, install, resolve_config
from plan_mode_nb.testing.questions import ScriptedAnswers, pick
from plan_mode_nb.testing.workbench import Workbench


def with_plan(model: str | None) -> Callable[[Seams], Any]:
    return lambda seams: install(seams, resolve_config({"section": GUIDE}, model=model))


def named(bench: Workbench, **models: ScriptedModel) -> None:
    bench.agent.models = lambda name: models[name or "usual"]


def model(name: str, *steps: Any) -> ScriptedModel:
    return ScriptedModel(steps, config={"provider": "scripted", "model": name})


def headers(bench: Workbench) -> list[tuple[str, str, bool]]:
    """(reason, model, whether the guidance is in it) of every logged header."""
    return [
        (event.data["reason"], event.data["header"]["config"]["model"], GUIDE in event.data["header"].get("system", ""))
        for event in bench.events("request/header")
    ]


def test_the_plan_model_answers_while_plan_mode_is_on_and_the_header_says_so() -> None:
    async def main() -> None:
        bench = Workbench(install=[with_plan("wise")])
        usual, wise = model("usual", say("1"), say("3")), model("wise", say("2"))
        named(bench, usual=usual, wise=wise)
        await bench.ask("a")
        PlanMode.set(bench.agent, True)
        await bench.ask("b")
        PlanMode.set(bench.agent, False)
        await bench.ask("c")
        assert headers(bench) == [("initial", "usual", False), ("change", "wise", True), ("change", "usual", False)]
        sources = [event.data["message"]["source"]["model"] for event in bench.events("assistant/message")]
        assert sources == ["usual", "wise", "usual"]
        assert usual.requests[1].messages[-3]["content"][0]["text"] == "2", "the conversation is one, whoever answered"

    asyncio.run(main())


def test_the_switch_comes_with_the_step_that_applies_an_approval() -> None:
    """The exit is pending until the next pre-step; the approved plan is carried out by the usual model within the same turn."""

    async def main() -> None:
        bench = Workbench(install=[with_plan("wise"), lambda seams: seams.questions.provide(ScriptedAnswers(pick("Approve")))])
        named(bench, usual=model("usual", say("done")), wise=model("wise", call("exit_plan_mode", {"plan": "# P\n\nDo it."})))
        PlanMode.set(bench.agent, True)
        await bench.ask("go")
        assert headers(bench) == [("initial", "wise", True), ("change", "usual", False)]

    asyncio.run(main())


def test_without_one_the_agents_model_answers_in_both_states() -> None:
    async def main() -> None:
        bench = Workbench(install=[with_plan(None)])
        named(bench, usual=model("usual", say("1"), say("2")))
        await bench.ask("a")
        PlanMode.set(bench.agent, True)
        await bench.ask("b")
        assert [(name, planning) for _, name, planning in headers(bench)] == [("usual", False), ("usual", True)]

    asyncio.run(main())


def test_a_model_that_another_listener_chose_for_the_step_stays() -> None:
    """Plan mode is the outermost listener: who is asked before it knew better."""

    async def chooses(step: Step, call_next: CallNext) -> Decision:
        step.model = "cheap"
        return await call_next(step)

    async def main() -> None:
        bench = Workbench(install=[with_plan("wise"), lambda seams: seams.pre_step.register(chooses)])
        named(bench, cheap=model("cheap", say("1")))
        PlanMode.set(bench.agent, True)
        await bench.ask("a")
        assert headers(bench) == [("initial", "cheap", True)]

    asyncio.run(main())


def test_a_switch_that_could_not_be_logged_changes_neither_the_guidance_nor_the_model() -> None:
    """What goes out agrees with the log."""

    async def main() -> None:
        bench = Workbench(install=[with_plan("wise")])

        def select(request: Any) -> Any:
            PlanMode.set(bench.agent, True)
            bench.sink.refuse = lambda lines: any('"type":"plan/mode"' in line for line in lines)
            return say("1")

        named(bench, usual=model("usual", select, say("2")), wise=model("wise"))
        await bench.ask("a")
        await bench.ask("b")
        assert headers(bench) == [("initial", "usual", False)]

    asyncio.run(main())
