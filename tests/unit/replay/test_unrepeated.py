"""What recording again leaves out is listed: steers, commands and stops that no cell made."""

from __future__ import annotations

from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.replay.unrepeated import unrepeated
from plan_mode_nb.testing import logs


def of_a_cell(command: str, args: str) -> list[object]:
    """A command as a cell gives it."""
    cell = draft("notebook/cell", {"turn": None, "command": command, "source": "0"})
    return [logs.command_run(command, args), cell, logs.command_done(command)]


def test_what_was_done_beside_the_cells_is_listed_in_order_with_its_place() -> None:
    """What a cell or the plugin did, a prompt, and the end of a turn that ended by itself are not."""
    session = logs.new_session()
    session.append(*of_a_cell("c1", "measure it"))  # type: ignore[arg-type]
    session.append(logs.spliced("next-step", 0, "measure it"), logs.turn_start(1), logs.spliced("next-step", 0, removed=1))
    session.append(
        logs.step_start(1, 1), logs.spliced("next-step", 0, "in  feet,\nplease"), logs.command_run("c2"), logs.command_done("c2")
    )
    session.append(logs.step_end(1, 1), draft("turn/end", {"turn": 1, "reason": {"kind": "aborted", "reason": {"kind": "user"}}}))
    session.append(logs.command_run("c3", "off"), logs.command_done("c3"), logs.spliced("next-turn", 0, "go on"))
    session.append(logs.turn_start(2), logs.turn_end(2))
    assert list(unrepeated(session.events)) == [
        "“in feet, please” in turn 1",
        "%plan in turn 1",
        "turn 1 was stopped",
        "%plan off between turns",
    ]
    assert list(unrepeated(session.events, len(session) - 5)) == ["%plan off between turns"]
