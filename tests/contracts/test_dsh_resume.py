"""A deepseek-harness session goes on here: what the model is sent is what deepseek-harness derives, then what is new.

The recordings lie beside this repository, in ``shared/dsh-logs``; they are not copied into it.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.features import approval_policy, missing_tools, restart, sandbox
from plan_mode_nb.features.missing_tools import notice
from plan_mode_nb.folds.plan import PLAN
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.dsh import read_jsonl, write_jsonl
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.models.script import say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing import logs
from plan_mode_nb.testing.workbench import CHECKED, counted_clock, counted_ids

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "dsh-logs"
EXPECTED: dict[str, Any] = {path.name.partition(".")[0]: json.loads(path.read_text()) for path in sorted(LOGS.glob("*.expected.json"))}
LOADED = [name for name, expected in EXPECTED.items() if not expected["refused"]]
recorded = pytest.mark.skipif(not LOADED, reason=f"the recorded logs are not there ({LOGS})")
SECTION = "GUIDANCE"


class Resumed:
    """A session that was just read, under an agent of a notebook's composition as far as it matters here."""

    def __init__(self, data: bytes, length: int | None = None, *, answers: int = 1) -> None:
        """``length``: read the first events only, as where a crash cut the log."""
        header, lines = read_jsonl(data)
        self.session = Session(header, clock=counted_clock(2_000_000_000_000), lines=lines if length is None else lines[:length])
        self.read = list(self.session.lines)
        self.model = ScriptedModel([say("ok") for _ in range(answers)])
        self.seams = Seams.create(counted_ids("new"))
        install_plan(self.seams, PlanModeConfig(section=SECTION))
        for plugin in (restart, missing_tools, sandbox, approval_policy):
            plugin.install(self.seams)
        self.agent = LoopAgent("main", self.session, self.seams, lambda name: self.model, CHECKED, reopened=True)

    def turn(self) -> list[dict[str, Any]]:
        """Ask one thing; the messages of the request."""
        self.agent.inbox.followup(user_message("go on", id="prompt"))
        asyncio.run(self.agent.run_turn({"source": "0" * 64}))
        return list(self.model.requests[-1].messages)

    @property
    def new(self) -> list[Any]:
        """What was appended, as ``(type, data)``."""
        return [(event.type, event.data) for event in self.session.events[len(self.read) :]]


def stored(*drafts: Draft) -> bytes:
    """A log of these events, as a file."""
    session = logs.new_session()
    session.append(*drafts)
    return write_jsonl(session.header, session.lines)


def called(messages: list[dict[str, Any]]) -> list[str]:
    """The tools that the history calls, in order of their first call."""
    blocks = [block for message in messages for block in message["content"]]
    return list(dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool-call"))


@recorded
@pytest.mark.parametrize("name", LOADED)
def test_the_next_request_is_the_derived_history_then_what_is_new(name: str) -> None:
    """Message for message, ids included; then what the model has to know of this place, and the prompt. The header says ``resume``."""
    resumed = Resumed((LOGS / f"{name}.jsonl").read_bytes())
    messages = resumed.turn()
    history = EXPECTED[name]["messages"]
    assert messages[: len(history)] == history
    assert resumed.session.lines[: len(resumed.read)] == resumed.read
    headers = [data for type, data in resumed.new if type == "request/header"]
    assert [header["reason"] for header in headers] == ["resume"]
    gone = tuple(tool for tool in called(history) if tool != "exit_plan_mode")
    notices = [message for message in messages[len(history) :] if message["source"]["kind"] == "plugin"]
    assert [message["content"][0]["text"] for message in notices] == ([notice(gone)] if gone else [])
    assert messages[-1]["content"][0]["text"] == "go on"


@recorded
@pytest.mark.parametrize("name", LOADED)
def test_a_session_that_a_crash_cut_is_closed_as_deepseek_harness_does_and_then_goes_on(name: str) -> None:
    """Its closing events come first, with their own time, before anything of ours; the history holds their results."""
    for cut in EXPECTED[name]["crash_prefixes"][::4]:
        resumed = Resumed((LOGS / f"{name}.jsonl").read_bytes(), cut["prefix"])
        expected = closers(resumed.session.events)
        resumed.turn()
        appended = resumed.session.events[cut["prefix"] :]
        written = [json.loads(line) for line in resumed.session.lines[cut["prefix"] :][: len(cut["closers"])]]
        assert written == cut["closers"]
        assert len(expected) == len(cut["closers"])
        assert appended[len(expected)].type == "session/end-seed"
        ended = [event.data["reason"]["kind"] for event in resumed.session.events if event.type == "turn/end"]
        assert ended[-1] == "completed"


def command(args: str, *, kind: str = "success", id: str = "c1") -> list[Draft]:
    """A ``/plan`` of deepseek-harness."""
    run = draft("command/run", {"commandId": id, "name": "plan", "args": args, "source": {"kind": "user"}})
    return [run, draft("command/done", {"commandId": id, "kind": kind, "text": "said"})]


@pytest.mark.parametrize(
    ("before", "applies"),
    [
        (command("make a plan"), True),
        (command("make a plan", kind="error"), None),
        ([logs.plan_mode(True), *command("off")], False),
        ([*command(""), *command("off", id="c2")], None),
        ([*command(""), logs.plan_mode(True)], None),
    ],
    ids=["asked for", "failed", "left", "taken back", "applied already"],
)
def test_a_choice_that_waited_there_applies_at_the_first_step_here(before: list[Draft], applies: bool | None) -> None:
    """deepseek-harness loses it with its process; here the log has it. It stands before the header it changes."""
    resumed = Resumed(stored(logs.turn_start(1), *before, logs.turn_end(1)))
    state = resumed.session.fold(PLAN)
    assert state.pending is applies
    resumed.turn()
    types = [type for type, _ in resumed.new]
    assert ("plan/mode" in types) is (applies is not None)
    if applies is not None:
        assert types.index("plan/mode") < types.index("request/header")
    now = state.active if applies is None else applies
    assert resumed.session.fold(PLAN).active is now
    assert (SECTION in resumed.model.requests[0].system) is now


@pytest.mark.parametrize(("mode", "here"), [("danger-full-access", "workspace-write"), ("read-only", "read-only"), (None, None)])
def test_the_axes_come_along_but_full_access_does_not(mode: str | None, here: str | None) -> None:
    """What was granted to another process is not granted to this one."""
    axes = [draft("approval/policy", {"policy": "never"}), *([draft("sandbox/mode", {"mode": mode})] if mode else [])]
    resumed = Resumed(stored(*axes))
    assert resumed.session.fold(SANDBOX_MODE) == mode
    resumed.turn()
    assert (resumed.session.fold(SANDBOX_MODE), resumed.session.fold(APPROVAL_POLICY)) == (here, "never")


def test_looking_at_an_imported_session_writes_nothing() -> None:
    """What it owes is written with the first new event."""
    resumed = Resumed(stored(logs.turn_start(1), draft("sandbox/mode", {"mode": "danger-full-access"})))
    assert resumed.session.place.turn is None
    assert resumed.session.lines == resumed.read


def test_what_waited_in_the_inbox_is_sent_first() -> None:
    """A message that was queued when the other process ended is not lost."""
    waiting = user_message("asked before", id="w")
    resumed = Resumed(stored(draft("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [waiting]})))
    assert [message["content"][0]["text"] for message in resumed.turn()] == ["asked before"]
