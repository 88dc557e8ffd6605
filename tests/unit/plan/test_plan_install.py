"""Putting plan mode in and taking it out; its configuration."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from planning import FIRST, GUIDE, PLAN, exits, others, plan_mode, planned, shows

from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanMode, PlanModeConfig, install, resolve_config
from plan_mode_nb.testing.workbench import Workbench


def registered(seams: Seams) -> dict[str, Any]:
    """Everything that a plugin can leave in the seams."""
    assert seams.commands is not None
    assert seams.projections is not None
    return {
        "sections": seams.sections._sections.names(),
        "tools": [schema["name"] for schema in seams.tools.schemas()],
        "pre_step": {place: len(listeners) for place, listeners in seams.pre_step._listeners.items()},
        "commands": [command.name for command in seams.commands.all()],
        "projections": seams.projections._folds.names(),
        "redactions": len(seams.redactions._functions),
        "previews": len(seams.previews._listeners),
        "provider": seams.questions._provider,
    }


def test_install_then_undo_leaves_everything_as_before() -> None:
    """Case 40: once, twice, and again after an undo; the undo may be called twice."""
    seams = Seams.create()
    others(seams)
    before = registered(seams)
    undo = plan_mode(seams)
    with_plan = registered(seams)
    added = {key: Counter(with_plan[key]) - Counter(before[key]) for key in ("sections", "tools", "commands", "projections", "pre_step")}
    assert added == {
        "sections": {"plan:policy": 1},
        "tools": {"exit_plan_mode": 1},
        "commands": {"plan": 1},
        "projections": {"plan": 1},
        "pre_step": {"outermost": 1},
    }
    undo()
    assert registered(seams) == before
    undo()
    again = plan_mode(seams)
    undo()
    assert registered(seams) == with_plan
    again()
    assert registered(seams) == before


@pytest.mark.parametrize("taken", ["section", "tool", "command", "projection", "all"])
def test_a_clash_names_both_parties_and_leaves_nothing_half_installed(taken: str) -> None:
    """Whatever name is taken: what stood there stays, and nothing of the second is left."""
    donor, seams = Seams.create(), Seams.create()
    plan_mode(donor)
    assert donor.commands is not None
    assert donor.projections is not None
    assert seams.commands is not None
    assert seams.projections is not None
    if taken == "all":
        plan_mode(seams)
    if taken == "section":
        seams.sections.register("plan:policy", 1, lambda context: "mine")
    if taken == "tool":
        tool = donor.tools.get("exit_plan_mode")
        assert tool is not None
        seams.tools.register(tool)
    if taken == "command":
        command = donor.commands.get("plan")
        assert command is not None
        seams.commands.register(command)
    if taken == "projection":
        fold = donor.projections._folds.get("plan")
        assert fold is not None
        seams.projections.register("plan", fold)
    before = registered(seams)
    with pytest.raises(ValueError, match=r"is already registered by .*; .* cannot take its place"):
        plan_mode(seams)
    assert registered(seams) == before


def test_the_section_is_late_and_the_listener_outermost() -> None:
    """Nothing before the section moves; everybody else has decided before it commits."""
    seams = Seams.create()
    plan_mode(seams)
    (section,) = list(seams.sections._sections)
    assert (section.name, section.order) == ("plan:policy", 500)


def test_taken_out_while_active_the_loop_works_without_section_tool_and_notice() -> None:
    """The state stays in the log, and is in force again when the plugin is back."""

    async def main() -> None:
        bench = planned(say("a"), exits(), say("c"), say("d"))
        PlanMode.set(bench.agent, True)
        await bench.ask("go")
        bench.undos[1]()
        await bench.ask("go")
        result = bench.events("tool/result")[0].data
        assert result["error"]["code"] == "UNKNOWN_TOOL"
        plan_mode(bench.seams)
        await bench.ask("go")
        assert [shows(request) for request in bench.model.requests] == [True, False, False, True]
        assert PlanMode.get(bench.agent) == PlanState(True, None)

    asyncio.run(main())


def test_the_projection_is_the_fold_pushed_on_change() -> None:
    """What a chip shows after a restart is what it showed before: active and pending, from the log alone."""

    async def main() -> None:
        bench = planned()
        projections = bench.seams.projections
        assert projections is not None
        pushed: list[Any] = []
        projections.watch(bench.session, lambda name, value: pushed.append((name, value.active, value.pending)))

        def toggle(request: object) -> Any:
            PlanMode.set(bench.agent, True)
            return call("note", {"text": "x"})

        bench.model.add(toggle, say("ok"))
        await bench.ask("go")
        assert pushed == [("plan", False, True), ("plan", True, None)]
        reopened = planned(lines=bench.sink.lines, ids="x")
        assert reopened.seams.projections is not None
        assert reopened.seams.projections.read(reopened.session) == projections.read(bench.session) == {"plan": PlanState(True, None)}

    asyncio.run(main())


# ---- configuration

BAD: list[tuple[Any, str]] = [
    ({}, "PlanMode.section is missing: plan mode needs its guidance"),
    ({"section": ""}, "PlanMode.section is blank: write the guidance for plan mode there"),
    ({"section": " \n\t"}, "PlanMode.section is blank"),
    ({"section": None}, "PlanMode.section must be a string, not NoneType"),
    ({"section": 7}, "PlanMode.section must be a string, not int"),
    ({"section": ["x"]}, "PlanMode.section must be a string, not list"),
]


@pytest.mark.parametrize(("raw", "sentence"), BAD)
def test_a_section_that_cannot_work_is_refused_by_name_and_says_where_it_goes(raw: Any, sentence: str) -> None:
    """Case 46: the package has no guidance of its own to fall back on."""
    with pytest.raises(ConfigError) as caught:
        resolve_config(raw)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(
        'put {"PlanMode": {"section": "…"}} in plan_mode_nb.json in a folder that `jupyter --paths` lists under config'
    )


@pytest.mark.parametrize(
    ("key", "hint"),
    [("sektion", "did you mean 'section'?"), ("order", "it has section"), ("Section", "did you mean 'section'?"), (7, "it has section")],
)
def test_an_unknown_key_is_refused_by_name(key: Any, hint: str) -> None:
    """Case 46: also beside a valid section."""
    for raw in ({key: "x"}, {key: "x", "section": "fine"}):
        with pytest.raises(ConfigError) as caught:
            resolve_config(raw)
        assert str(caught.value) == f"PlanMode has no setting {key!r}; {hint}"


@pytest.mark.parametrize("section", [GUIDE, "  keep my spaces \n\n", "# Markdown & <b>\n{x} $HOME", "計画 🇯🇵"])
def test_a_valid_section_is_inserted_exactly(section: str) -> None:
    """Case 46: nothing trimmed, nothing expanded."""

    async def main() -> None:
        bench = Workbench(say("ok"), install=[others, lambda seams: install(seams, resolve_config({"section": section}))])
        PlanMode.set(bench.agent, True)
        await bench.ask("go")
        assert bench.model.requests[0].system == f"{FIRST}\n\n{section}"
        assert json.loads(bench.session.lines[bench.events("request/header")[0].seq])["data"]["header"]["system"].endswith(section)

    asyncio.run(main())


def test_a_configuration_is_frozen() -> None:
    """Resolved once; a new one takes the place of the old between turns, by taking the plugin out and putting it in."""
    config = PlanModeConfig("x")
    with pytest.raises(AttributeError):
        config.section = "y"  # type: ignore[misc]
    bench = planned()
    PlanMode.set(bench.agent, True)
    bench.undos[1]()
    install(bench.seams, PlanModeConfig("new guidance"))
    assert bench.seams.sections.assemble(PromptContext(bench.agent)) == f"{FIRST}\n\nnew guidance"


def test_the_schema_of_the_tool_is_static() -> None:
    """It does not depend on the guidance, the state or the agent."""
    schemas = set()
    for guidance in ("x", "y"):
        seams = Seams.create()
        install(seams, PlanModeConfig(guidance))
        schemas.add(json.dumps(seams.tools.schemas()))
    assert len(schemas) == 1
    assert json.loads(schemas.pop())[0]["parameters"]["required"] == ["plan"]
    assert PLAN.startswith("# ")
