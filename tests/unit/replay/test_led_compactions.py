"""A recorded compaction is made again where it was and from the recorded summary, whatever would be due now; so is one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from leading import Conversation, again

from plan_mode_nb.exceptions import ModelError, ReplayError
from plan_mode_nb.folds.history import HISTORY
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.script import call, fail, hold, say, usage
from plan_mode_nb.replay.replay import Rules
from plan_mode_nb.testing.questions import pick
from plan_mode_nb.testing.workbench import counted_clock

LONG = "the rows of March, and those of April " * 30
SUMMARY: Any = [say("## What the user wants\n- the rows"), usage(90, 9)]
TOO_LONG = ModelError("The conversation is longer than this model can read.", code="CONTEXT_OVERFLOW")


def held(conversation: Conversation, *cells: str, meanwhile: Callable[[Conversation], Any] | None = None) -> Conversation:
    """Hold it live."""

    async def body() -> None:
        for cell in cells:
            await conversation.run(cell)

    async def beside() -> None:
        await asyncio.gather(body(), *([] if meanwhile is None else [meanwhile(conversation)]))

    asyncio.run(beside())
    return conversation


def pressed(*steps: Any, window: int | None = 700) -> Conversation:
    """Two long results fill what the model can read; then the steps."""
    looks: list[Any] = [[call("look", {"what": LONG}), say(f"I look ({number}).")] for number in (1, 2)]
    return Conversation(*looks, *steps, window=window)


class Cut:
    """An answer that the person stops while it streams."""

    def __init__(self) -> None:
        self._streaming = asyncio.Event()
        self.answer: Any = [say("## Wh"), hold(self._wait)]

    async def _wait(self) -> None:
        self._streaming.set()
        await asyncio.Event().wait()

    async def stop(self, conversation: Conversation) -> None:
        """What the person does meanwhile."""
        await self._streaming.wait()
        conversation.agent.cancel({"kind": "user"})


def asked(*steps: Any) -> Conversation:
    return Conversation([say(LONG), usage(300, 300)], *steps)


def types(conversation: Conversation) -> list[str]:
    return [event.type for event in conversation.bench.session.events]


HELD: dict[str, Callable[[], Conversation]] = {
    "asked for": lambda: held(asked(SUMMARY, say("On.")), f"%agent {LONG}", "%session compact keep the names", "%agent go on"),
    "nothing to compact": lambda: held(asked(), "%session compact", "%agent hello", "%session compact"),
    "failed": lambda: held(
        asked(fail(ModelError("It is down.", code="SERVER", status=503)), say("On.")), f"%agent {LONG}", "%session compact", "%agent go on"
    ),
    "empty": lambda: held(asked(say(" "), SUMMARY, say("On.")), f"%agent {LONG}", "%session compact", "%session compact", "%agent go on"),
    "at pressure": lambda: held(pressed(SUMMARY, say("Done."), say("On.")), "%agent look", "%agent go on"),
    "at pressure, failed": lambda: held(
        pressed(fail(ModelError("It is down.", code="SERVER")), say("Done."), SUMMARY, say("On.")), "%agent look", "%agent go on"
    ),
    "too long": lambda: held(
        Conversation(say(LONG), fail(TOO_LONG), SUMMARY, say("It fits."), fail(TOO_LONG), fail(TOO_LONG)),
        f"%agent {LONG}", "%agent go on", "%agent and on",
    ),
}  # fmt: skip


HELD["too long for its summary, too"] = lambda: held(
    Conversation(*[say(f"{number} {LONG}") for number in range(4)], fail(TOO_LONG), fail(TOO_LONG), SUMMARY, say("It fits.")),
    *[f"%agent {number} {LONG}" for number in range(4)], "%agent go on",
)  # fmt: skip


def clicked(then: Any) -> Any:
    """While the summary streams, the person switches plan mode by the chip, and says something for the next step where one runs."""

    async def click() -> None:
        await CLICKED[-1].select(True)
        if CLICKED[-1].agent.session.place.turn is not None:
            CLICKED[-1].steer("in rows, please")

    return [say("## What"), hold(click), *then]


CLICKED: list[Conversation] = []


@pytest.mark.parametrize("where", ["asked for", "at pressure"])
def test_what_a_person_does_while_the_summary_is_made_is_led_too(where: str) -> None:
    """By the chip and by the controls; in a turn it applies from the next step."""
    if where == "asked for":
        CLICKED.append(asked(clicked(SUMMARY), say("On.")))
        live = held(CLICKED[-1], f"%agent {LONG}", "%session compact", "%agent go on")
    else:
        CLICKED.append(pressed(clicked(SUMMARY), say("Done."), say("In rows."), say("On.")))
        live = held(CLICKED[-1], "%agent look", "%agent go on")
    bracket = [event.seq for event in live.bench.events("compaction/start", "compaction/end")]
    (run,) = [event.seq for event in live.bench.events("command/run") if event.data["name"] == "plan"]
    assert bracket[0] < run < bracket[1]
    assert [event.data["active"] for event in live.bench.events("plan/mode")] == [True]
    led, replay = again(live.notebook())
    assert types(led) == types(live)
    assert replay.is_over


@pytest.mark.parametrize("name", list(HELD))
def test_led_along_its_recording_it_gives_the_same_log_without_its_model(name: str) -> None:
    """Also where the threshold is another one now, or what the model can read is not known any more."""
    live = HELD[name]()
    for prepare in (lambda held: None, lambda held: setattr(held.bench.model, "window", 100)):
        led, replay = again(live.notebook(), prepare=prepare)
        assert types(led) == types(live)
        assert replay.is_over
        assert led.bench.model.requests == []
        blank = [[{**each, "id": ""} for each in conversation.bench.session.fold(HISTORY)] for conversation in (live, led)]
        for before, now in zip(*blank, strict=True):
            assert before["content"] == now["content"]
    if name != "nothing to compact":
        assert "compaction/start" in types(live)


@pytest.mark.parametrize("where", ["asked for", "at pressure"])
def test_one_that_was_stopped_is_stopped_again(where: str) -> None:
    """While its summary streamed: the cell ends as it did, and what follows goes on from the whole conversation."""

    cut = Cut()
    live = (
        held(asked(cut.answer, say("On.")), f"%agent {LONG}", "%session compact", "%agent go on", meanwhile=cut.stop)
        if where == "asked for"
        else held(pressed(cut.answer, SUMMARY, say("On.")), "%agent look", "%agent go on", meanwhile=cut.stop)
    )
    (end, *_) = live.bench.events("compaction/end")
    assert end.data["error"] == "stopped"
    led, replay = again(live.notebook())
    assert types(led) == types(live)
    assert replay.is_over
    if where == "asked for":
        assert isinstance(led.said[0][0], asyncio.CancelledError)


@pytest.mark.parametrize("where", ["asked for", "at pressure"])
def test_one_that_a_killed_process_left_is_played(where: str) -> None:
    """Up to where the process ended; the next cell goes on in another one."""
    live = HELD[where]()
    start = next(event for event in live.bench.session.events if event.type == "compaction/start")
    cells = live.cells[:2] if where == "asked for" else live.cells[:1]
    killed = Conversation(SUMMARY, say("On."), say("On."), lines=live.bench.session.lines[: start.seq + 1], ids="next", window=700)
    killed.bench.session._clock = counted_clock(9_000)
    killed.cells = cells
    held(killed, "%agent go on")
    led, replay = again(killed.notebook())
    assert types(led) == types(killed)
    assert replay.is_over


def test_one_that_was_stopped_before_the_first_step_hands_its_words_back_again() -> None:
    cut = Cut()
    live = held(pressed(fail(ModelError("Down.", code="SERVER")), say("Done."), cut.answer, SUMMARY, say("On.")),
                "%agent look", "%agent and now?", "%agent go on", meanwhile=cut.stop)  # fmt: skip
    canceled = [event.data for event in live.bench.events("agent/inbox/spliced") if event.data.get("outcome") == "canceled"]
    assert len(canceled) == 1
    led, replay = again(live.notebook())
    assert types(led) == types(live)
    assert replay.is_over


def word(type: str, change: Callable[[dict[str, Any]], None]) -> Callable[[list[dict[str, Any]]], None]:
    def edit(events: list[dict[str, Any]]) -> None:
        change(next(event for event in events if event["type"] == type)["data"])

    return edit


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        pytest.param(
            word("compaction/summary", lambda data: data["rawOutput"][0].update(text="## Else")), "compaction/summary", id="answer"
        ),
        pytest.param(
            word("compaction/summary", lambda data: data["summary"][0].update(text="## Else")), "compaction/summary", id="summary"
        ),
        pytest.param(word("compaction/summary", lambda data: data["rawOutput"][0].update(text="## No")), "compaction/summary", id="answer"),
        pytest.param(word("compaction/summary", lambda data: data["summary"][0].update(text="## No")), "compaction/summary", id="summary"),
        pytest.param(word("compaction/summary", lambda data: data.update(shadowedTokenCount=1)), "shadowedTokenCount", id="price"),
        pytest.param(word("command/run", lambda data: data.update(args="keep nothing")), "command/run", id="words"),
    ],
)
def test_a_log_that_was_changed_by_hand_is_noticed(edit: Any, says: str) -> None:
    notebook = HELD["asked for"]().notebook(edit)
    with pytest.raises(ReplayError, match=says):
        again(notebook)


def test_where_it_was_compacted_counts_not_where_it_would_be_now() -> None:
    """A summary that is missing in the recording is no reason to make one, and a history that is not the recorded one is a difference."""
    live = held(pressed(say("Done."), window=None), "%agent look")
    led, _ = again(live.notebook(), Rules(), lambda held: setattr(held.bench.model, "window", 10))
    assert "compaction/start" not in types(led)


@pytest.mark.parametrize("seed", range(8))
def test_any_conversation_is_led_again_whatever_was_compacted_in_it(seed: int) -> None:
    """Asked for, at pressure, after an overflow, with half of it, failed, stopped: in any order, with reviews and todos between."""
    chance = Random(seed)

    async def stop() -> None:
        live.agent.cancel({"kind": "user"})
        await asyncio.Event().wait()

    def answer(request: Any) -> Any:
        if chance.random() < 0.1:
            return [say("## So"), hold(stop)]
        if request.messages[-1]["source"].get("plugin") == "compact":
            return chance.choice([SUMMARY, SUMMARY, SUMMARY, say(" "), fail(TOO_LONG), fail(ModelError("Down.", code="SERVER"))])
        tokens = usage(chance.randint(1, 900), 5)
        calls = [
            call("look", {"what": LONG[: chance.randint(1, 900)]}),
            call("todo_write", {"todos": [{"content": "x", "status": "pending"}]}),
            call("exit_plan_mode", {"plan": "# Plan\n\n1. Step.\n"}),
        ]
        said = [say(LONG[: chance.randint(9, 900)]), tokens]
        return chance.choice([said, said, [chance.choice(calls), tokens], [chance.choice(calls), tokens], fail(TOO_LONG)])

    picks = [chance.choice([pick("Approve"), pick("Keep planning", custom="no")]) for _ in range(80)]
    live = Conversation(*[answer] * 200, answers=picks, window=chance.choice([None, 900, 2_000]))
    cells = [
        chance.choice([f"%agent {number} {LONG[: chance.randint(1, 900)]}", f"%plan {number}", f"%session compact {number}", "%plan off"])
        for number in range(10)
    ]
    held(live, *cells)
    led, replay = again(live.notebook())
    assert types(led) == types(live)
    assert replay.is_over


def test_a_recording_as_a_model_gives_summaries_to_those_who_ask_for_one() -> None:
    """In a demo nobody leads the turns: where the recording was compacted makes no other answer come."""
    live = HELD["asked for"]()
    model = RecordedModel(list(live.bench.session.events))
    assert model.remaining == 2
    held_again = Conversation()
    held_again.agent.models = lambda name: model
    held(held_again, f"%agent {LONG}", "%agent go on", "%session compact")
    texts = [block["text"] for message in held_again.bench.session.fold(HISTORY) for block in message["content"]]
    assert "## What the user wants\n- the rows" in texts
    assert texts[-1] == "On."
