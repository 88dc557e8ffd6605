"""deepseek-harness's own logs and verdicts: what it loads loads here and folds to the same, what it refuses is refused.

The recordings lie beside this repository, in ``shared/dsh-logs``; they are not copied into it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.exceptions import LogError
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.plan import PLAN, fold_plan_mode
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.codec import encode
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.fold import fold_value
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "dsh-logs"
NAMES = sorted(path.stem for path in LOGS.glob("*.jsonl"))
EXPECTED: dict[str, Any] = {name: json.loads((LOGS / f"{name}.expected.json").read_text()) for name in NAMES}
REFUSED = [name for name in NAMES if EXPECTED[name]["refused"]]
VERDICTS: dict[str, Any] = json.loads((LOGS / "verdicts.json").read_text()) if NAMES else {}
pytestmark = pytest.mark.skipif(not NAMES, reason=f"the recorded logs are not there ({LOGS})")


def opened(data: bytes) -> Session:
    header, lines = read_jsonl(data)
    return Session(header, clock=lambda: 1, lines=lines)


def as_json(events: list[Event]) -> list[Any]:
    return [json.loads(encode(event)) for event in events]


def closed(session: Session) -> list[Event]:
    """The session's events after the repair, which the first new event brings."""
    if session.place.turn is not None:
        session.owe(closers(session.events), time=session.events[-1].time)
    session.append(draft("session/title", {}))
    return session.events[:-1]


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_a_hand_made_log_is_loaded_or_refused_as_deepseek_harness_does(name: str) -> None:
    verdict = VERDICTS[name]
    data = verdict["input"].encode()
    if "refused" in verdict:
        with pytest.raises(LogError) as caught:
            opened(data)
        assert str(caught.value)
        return
    session = opened(data)
    assert as_json(closed(session)) == verdict["loaded"]
    assert list(session.fold(NODES)) == verdict["surface"]
    assert list(session.fold(HISTORY)) == verdict["messages"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_recorded_log_that_deepseek_harness_refuses_is_refused(name: str) -> None:
    with pytest.raises(LogError):
        opened((LOGS / f"{name}.jsonl").read_bytes())


@pytest.fixture(params=[name for name in NAMES if name not in REFUSED])
def recorded(request: pytest.FixtureRequest) -> tuple[bytes, dict[str, Any]]:
    return (LOGS / f"{request.param}.jsonl").read_bytes(), EXPECTED[request.param]


def test_a_recorded_log_folds_to_what_deepseek_harness_folds_from_it(recorded: tuple[bytes, dict[str, Any]]) -> None:
    data, expected = recorded
    session = opened(data)
    summary = fold_summary(session.header, session.events)
    assert summary["events"] == expected["events"]
    assert summary["messages"] == expected["messages"]
    assert summary["header"] == expected["header"]
    assert summary["todos"] == expected["todos"]
    assert summary["usage"] == expected["usageTotals"]
    assert (summary["approval_policy"], summary["sandbox_mode"]) == (expected["approvalPolicy"], expected["sandboxMode"])
    assert summary["turns"] == [{"turn": each["turn"], "steps": each["steps"], "end": each["reason"]} for each in expected["turns"]]
    assert list(session.fold(NODES)) == expected["surface"]
    for migrated in expected["migratedEvents"] or []:
        assert as_json([session.events[migrated["seq"]]]) == [migrated]


def test_the_plan_state_of_every_prefix_is_deepseek_harnesss(recorded: tuple[bytes, dict[str, Any]]) -> None:
    data, expected = recorded
    session = opened(data)
    changes = {change["prefix"]: change["value"] for change in expected["plan_changes"]}
    active = False
    for prefix in range(len(session.events) + 1):
        active = changes.get(prefix, active)
        assert fold_plan_mode(session.events, prefix) is active
        assert fold_value(PLAN, session.events[:prefix]).active is active


def test_a_log_cut_at_a_crash_is_closed_with_deepseek_harnesss_own_events(recorded: tuple[bytes, dict[str, Any]]) -> None:
    data, expected = recorded
    header, lines = read_jsonl(data)
    for cut in expected["crash_prefixes"]:
        session = Session(header, clock=lambda: 1, lines=lines[: cut["prefix"]])
        assert session.events[-1].type == cut["lastType"]
        assert session.fold(PLAN).active is cut["planMode"]
        assert list(session.fold(NODES)) == cut["surfaceNodes"]
        assert as_json(closed(session))[cut["prefix"] :] == cut["closers"]


def test_export_and_import_again_change_nothing(recorded: tuple[bytes, dict[str, Any]]) -> None:
    header, lines = read_jsonl(recorded[0])
    assert lines
    assert read_jsonl(write_jsonl(header, lines)) == (header, lines)
