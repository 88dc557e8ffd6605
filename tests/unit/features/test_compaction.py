"""A conversation whose older part is replaced by its summary: what is logged, what the model then sees, and what stays as it was."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.agent.seams import Install
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.exceptions import InvariantError, ModelError, StoreError
from plan_mode_nb.features import compaction, redaction, todo
from plan_mode_nb.features.compaction.summary import CLOSE, INSTRUCTION, OPEN
from plan_mode_nb.folds.history import HISTORY, NODES
from plan_mode_nb.folds.plan import APPROVED_PLAN, PLAN
from plan_mode_nb.folds.spending import SPENDING
from plan_mode_nb.folds.todos import TODOS
from plan_mode_nb.folds.tokens import MEASURE, estimate_message
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.log.events import Event, SessionId
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, fail, finish, hold, say, think, usage
from plan_mode_nb.plan import PlanMode, PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.questions import ScriptedAnswers, pick
from plan_mode_nb.testing.workbench import Workbench

LONG = "the rows of March, and those of April " * 30
SUMMARY = "## What the user wants\n- the rows"
REPLACED = ["compaction/start", "compaction/summary", "user/message", "compaction/end"]


def note(text: str) -> str:
    """Take a note."""
    return f"noted {text} " + LONG


def tools(seams: Any) -> Any:
    return seams.tools.register(tool_from(note))


def bench_of(*steps: Any, install: list[Install] | None = None, **more: Any) -> Workbench:
    return Workbench(*steps, install=[tools, compaction.install, *(install or [])], **more)


async def compact(bench: Workbench, words: str = "") -> CommandResult:
    assert bench.seams.commands is not None
    return await bench.seams.commands.run("compact", CommandCall(bench.agent, words))


def texts(bench: Workbench) -> list[str]:
    """The history, one text a message."""
    return ["\n".join(block.get("text", block["type"]) for block in message["content"]) for message in bench.session.fold(HISTORY)]


def attempts(bench: Workbench) -> list[Event]:
    return [event for event in bench.session.events if event.type.startswith("compaction/")]


def test_the_span_is_replaced_by_its_summary_and_logged_as_deepseek_harness_does() -> None:
    """Start, then in one write the log-only summary, the message in the span's place, and the end; the command around them."""

    async def main() -> None:
        bench = bench_of(say(LONG), say("Four rows."), [think("Hm."), say(SUMMARY), usage(50, 9)])
        await bench.ask("count " + LONG)
        await bench.ask("and now?")
        spoken = list(bench.session.fold(NODES))
        prices = list(bench.session.fold(MEASURE).prices)
        result = await compact(bench, "keep the names")
        run, *made, done = bench.session.events[-6:]
        assert [event.type for event in (run, *made, done)] == ["command/run", *REPLACED, "command/done"]
        assert [line.count("\n") for line in bench.sink.writes[-2]] == [0, 0, 0]
        start, summary, message, end = made
        source = {"compactionId": start.data["compactionId"], "sourceCommandId": run.data["commandId"]}
        assert start.data == end.data == {**source, "turn": None}
        text = [{"type": "text", "text": SUMMARY}]
        assert summary.data == {
            **source,
            "summary": text,
            "rawOutput": [{"type": "reasoning", "text": "Hm."}, *text],
            "llmStreamCall": True,
            "shadowedRange": {"start": spoken[0], "end": spoken[-2]},
            "shadowedSeqs": spoken[:-1],
            "shadowedTokenCount": sum(prices[:-1]),
            "provider": "scripted",
            "model": "scripted",
            "usage": {"inputTokens": 50, "outputTokens": 9},
        }
        assert message.data["source"] == {"kind": "plugin", "plugin": "compact", **source}
        assert [block["text"] for block in message.data["content"]][1:] == [SUMMARY, CLOSE]
        assert message.data["content"][0]["text"].endswith(OPEN)
        assert message.sources == [start.seq, summary.seq, *spoken[:-1]]
        new = estimate_message(message.data)
        assert result.text == f"Compacted 3 messages (about {sum(prices[:-1]):,} tokens) into a summary of about {new}."
        assert texts(bench)[1:] == ["Four rows."]

    asyncio.run(main())


def test_the_summary_is_asked_for_by_the_conversation_s_own_request_and_one_more_message() -> None:
    """System prompt, tools and messages as the last request had them, so that a provider's cache has all but the last message."""

    async def main() -> None:
        bench = bench_of(say(LONG), say("Four."), say(SUMMARY), say("Go on."))
        bench.seams.sections.register("first", 0, lambda context: "You live in a notebook.")
        await bench.ask("count " + LONG)
        await bench.ask("and now?")
        before = bench.model.requests[-1]
        await compact(bench, "keep the names")
        asked = bench.model.requests[-1]
        assert (asked.system, list(asked.tools), dict(asked.config)) == (before.system, list(before.tools), dict(before.config))
        assert list(asked.messages)[:-1] == list(before.messages)
        (words,) = asked.messages[-1]["content"]
        assert words["text"].startswith(INSTRUCTION)
        assert words["text"].endswith("\nkeep the names")
        await bench.ask("go on")
        assert [message["role"] for message in bench.model.requests[-1].messages] == ["user", "assistant", "user"]

    asyncio.run(main())


def test_a_later_compaction_takes_the_earlier_summary_into_its_own() -> None:
    """One summary stands at the beginning, however often; alone it is not summarized again."""

    async def main() -> None:
        bench = bench_of(say(LONG), say(SUMMARY), say(LONG), say("## Again"), say("x"))
        await bench.ask("count " + LONG)
        await compact(bench)
        assert (await compact(bench)).text == "There is nothing to compact yet."
        await bench.ask("more " + LONG)
        assert (await compact(bench)).kind == "success"
        assert texts(bench)[0].count(OPEN) == 1
        assert "## Again" in texts(bench)[0]
        assert SUMMARY not in "".join(texts(bench))

    asyncio.run(main())


@pytest.mark.parametrize("prompt", [None, "hello"])
def test_where_there_is_nothing_to_compact_no_model_is_asked(prompt: str | None) -> None:
    """An empty conversation, and one whose only message is still to be answered."""

    async def main() -> None:
        bench = bench_of()
        if prompt is not None:
            bench.session.append(draft("session/title", {"title": "t"}))
            bench.agent.inbox.followup(user_message(prompt, id="p"))
        result = await compact(bench)
        assert (result.kind, result.text) == ("success", "There is nothing to compact yet.")
        assert (bench.model.requests, attempts(bench)) == ([], [])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (fail(ModelError("It is down: run the cell again.", code="SERVER")), "It is down: run the cell again."),
        ([think("Hm."), say("  \n")], "the model's summary was empty"),
        (
            [say(SUMMARY), finish("max-tokens")],
            "the summary was cut off at the model's token limit",
        ),
        ([say("I look."), call("note", {"text": "x"})], "the model called a tool instead of writing a summary"),
        (say(LONG * 9), "the summary would not be shorter"),
    ],
)
def test_where_no_summary_comes_the_conversation_is_as_it_was(answer: Any, why: str) -> None:
    """The log says that it was tried and why it failed, the person too; and it can be tried again."""

    async def main() -> None:
        bench = bench_of(say(LONG), answer, say(SUMMARY))
        await bench.ask("count " + LONG)
        before = list(bench.session.fold(HISTORY))
        result = await compact(bench)
        assert result.kind == "error"
        assert result.text.startswith(f"The conversation was not compacted and is as it was: {why}")
        assert [event.type for event in attempts(bench)] == ["compaction/start", "compaction/end"]
        assert attempts(bench)[-1].data["error"].startswith(why)
        assert list(bench.session.fold(HISTORY)) == before
        assert (await compact(bench)).kind == "success"

    asyncio.run(main())


def test_a_stopped_attempt_leaves_the_conversation_as_it_was() -> None:
    """Stopped while the summary streams; no turn can begin meanwhile, and the next one works."""

    async def main() -> None:
        streaming = asyncio.Event()

        async def wait() -> None:
            streaming.set()
            await asyncio.Event().wait()

        bench = bench_of(say(LONG), [say("## Wh"), hold(wait)], say("Go on."))
        await bench.ask("count " + LONG)
        before = list(bench.session.fold(HISTORY))
        task = asyncio.ensure_future(compact(bench))
        await streaming.wait()
        with pytest.raises(Exception, match="already in a turn"):
            await bench.agent.run_turn()
        assert bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await task
        assert attempts(bench)[-1].data["error"] == "stopped"
        assert bench.types[-1] == "command/done"
        assert list(bench.session.fold(HISTORY)) == before
        assert (await bench.ask("go on")).reason == {"kind": "completed"}

    asyncio.run(main())


def test_in_a_running_turn_the_command_says_when_it_can_run() -> None:
    async def main() -> None:
        bench = bench_of([call("ask", {})], say("done"))
        results = []

        async def ask() -> str:
            """Ask for room."""
            results.append(await compact(bench))
            return "asked"

        bench.seams.tools.register(tool_from(ask))
        await bench.ask("go")
        assert [(result.kind, result.text) for result in results] == [
            ("error", "A turn is running: compact the conversation when its cell has ended.")
        ]
        assert attempts(bench) == []

    asyncio.run(main())


def test_a_process_that_was_killed_in_it_leaves_an_attempt_that_the_next_one_takes_as_over() -> None:
    """As deepseek-harness: no end is invented; the next ``session/end-seed`` says that nobody works on it any more."""

    async def main() -> None:
        bench = bench_of(say(LONG), say(SUMMARY))
        await bench.ask("count " + LONG)
        await compact(bench)
        lines = bench.session.lines[: attempts(bench)[0].seq + 1]
        again = bench_of(say(SUMMARY), say("Go on."), lines=lines, ids="again")
        assert (await compact(again)).kind == "success"
        assert [event.type for event in again.session.events[len(lines) :]][:2] == ["session/end-seed", "command/run"]
        assert len(again.session.fold(HISTORY)) == 2
        assert (await again.ask("go on")).reason == {"kind": "completed"}

    asyncio.run(main())


def test_an_end_that_cannot_be_written_is_written_ahead_of_what_comes_next() -> None:
    """The disk is full when the summary is there: the person hears of it, and afterwards the conversation goes on."""

    async def main() -> None:
        bench = bench_of(say(LONG), say(SUMMARY), say("Go on."), say(SUMMARY))
        await bench.ask("count " + LONG)
        bench.sink.refuse = lambda lines: any("compaction/end" in line for line in lines)
        assert (await compact_unwritten(bench)).kind == "error"
        bench.sink.refuse = lambda lines: False
        assert (await bench.ask("go on")).reason == {"kind": "completed"}
        assert [event.type for event in attempts(bench)] == ["compaction/start", "compaction/end"]
        assert Session(bench.session.header, clock=lambda: 1, lines=bench.sink.lines).events == bench.session.events
        assert (await compact(bench)).kind == "success"

    asyncio.run(main())


async def compact_unwritten(bench: Workbench) -> CommandResult:
    """The end of the command cannot be written either while something is owed."""
    try:
        return await compact(bench)
    except StoreError as error:
        return CommandResult("error", str(error))


def test_calls_and_their_results_stay_together() -> None:
    """The newest message may be a result: then its call stays, and the results of the same answer."""

    async def main() -> None:
        twice = [call("note", {"text": "a"}, "one"), call("note", {"text": "b"}, "two")]
        bench = bench_of(twice, twice, fail(ModelError("No.", code="AUTH")), say(SUMMARY))
        await bench.ask("note both " + LONG)
        await compact(bench)
        kinds = [[block["type"] for block in message["content"]] for message in bench.session.fold(HISTORY)]
        assert kinds == [["text"] * 3, ["tool-call"] * 2, ["tool-result"], ["tool-result"]]

    asyncio.run(main())


PLANNED = {"plan": "# Count\n\n1. Count the rows of `March`.\n2. Tell.\n"}
TODOS_SENT = {"todos": [{"content": "Count", "status": "in_progress"}, {"content": "Tell", "status": "pending"}]}


def planned(*steps: Any) -> Workbench:
    bench = bench_of(*steps, install=[todo.install, lambda seams: install_plan(seams, PlanModeConfig("Plan first."))])
    bench.seams.questions.provide(ScriptedAnswers(pick("Keep planning", custom="more"), pick("Approve")))
    return bench


def folds(bench: Workbench) -> list[Any]:
    session = bench.session
    return [session.fold(PLAN), session.fold(APPROVED_PLAN), session.fold(TODOS), session.fold(USAGE)]


def test_the_approved_plan_and_the_todos_stay_in_front_of_the_model_word_for_word() -> None:
    """Their folds do not move; what the model read of them in the span stands behind the summary. Twice, too."""

    async def main() -> None:
        other = {"plan": "# Guess\n\n1. Guess.\n"}
        bench = planned(
            call("exit_plan_mode", other), call("exit_plan_mode", PLANNED), call("todo_write", TODOS_SENT), say(LONG),
            say(SUMMARY), say(LONG), say("## Again"), say("x"),
        )  # fmt: skip
        PlanMode.set(bench.agent, True)
        await bench.ask("count the rows " + LONG)
        before = folds(bench)
        for prompt in ("more", "and more"):
            await compact(bench)
            assert folds(bench)[:2] == before[:2]
            kept = texts(bench)[0]
            assert f"<approved-plan>\n{PLANNED['plan']}\n</approved-plan>" in kept
            assert "Guess" not in kept
            if prompt == "more":
                assert folds(bench) == before
                assert "<todo-list>\n[~] Count\n[ ] Tell\n</todo-list>" in kept
            await bench.ask(prompt + LONG)

    asyncio.run(main())


def test_a_plan_that_was_sent_back_stays_while_another_one_is_made() -> None:
    """Planning goes on from the text that was put before the person; the section stays, too."""

    async def main() -> None:
        bench = planned(call("exit_plan_mode", PLANNED), say(LONG), say(SUMMARY), say("x"))
        PlanMode.set(bench.agent, True)
        await bench.ask("count the rows " + LONG)
        await compact(bench)
        kept = texts(bench)[0]
        assert f"<submitted-plan>\n{PLANNED['plan']}\n</submitted-plan>" in kept
        assert "approved-plan" not in kept
        await bench.ask("go on")
        assert "Plan first." in bench.model.requests[-1].system
        assert PlanMode.get(bench.agent).active

    asyncio.run(main())


def test_what_the_newest_messages_still_say_is_not_said_twice() -> None:
    async def main() -> None:
        both = [call("exit_plan_mode", PLANNED), call("todo_write", TODOS_SENT)]
        bench = planned(say(LONG), both, fail(ModelError("No.", code="AUTH")), say(SUMMARY))
        PlanMode.set(bench.agent, True)
        await bench.ask("look " + LONG)
        await bench.ask("now plan")
        assert (await compact(bench)).kind == "success"
        assert not any(tag in texts(bench)[0] for tag in ("submitted-plan", "todo-list"))

    asyncio.run(main())


def test_a_summary_was_paid_for_and_is_no_step() -> None:
    """Tokens of the conversation are counted as deepseek-harness does; what was spent has the summary, too."""

    async def main() -> None:
        bench = bench_of([usage(10, 1), say(LONG)], [usage(100, 7), say(SUMMARY)], [usage(5, 1), say("x")])
        await bench.ask("count " + LONG)
        await compact(bench)
        await bench.ask("go on")
        assert bench.session.fold(USAGE) == Usage(15, 2)
        assert bench.session.fold(SPENDING) == {("scripted", "scripted"): Usage(115, 9)}

    asyncio.run(main())


def test_no_secret_is_in_what_a_compaction_logs_or_sends() -> None:
    async def main() -> None:
        secret = "sk-" + "a1B2" * 8
        bench = bench_of(say(LONG), say(f"## Key\n- {secret}"), install=[redaction.install])
        await bench.ask("count " + LONG)
        await compact(bench, f"forget {secret}")
        assert secret not in "".join(bench.session.lines)
        assert secret not in str(bench.model.requests[-1].messages)

    asyncio.run(main())


def test_going_back_is_a_fork_before_the_summary() -> None:
    """Everything is still in the log."""

    async def main() -> None:
        bench = bench_of(say(LONG), say(SUMMARY))
        await bench.ask("count " + LONG)
        before = list(bench.session.fold(HISTORY))
        await compact(bench)
        fork = bench.session.fork(attempts(bench)[0].seq, id=SessionId("fork"))
        assert list(fork.fold(HISTORY)) == before

    asyncio.run(main())


def test_taken_out_it_leaves_nothing() -> None:
    bench = Workbench()
    undo = compaction.install(bench.seams)
    assert bench.seams.commands is not None
    with pytest.raises(ValueError, match="compact"):
        compaction.install(bench.seams)
    undo()
    assert bench.seams.commands.get("compact") is None
    assert asyncio.run(bench.ask("go")).reason["error"]["code"] == "CONFIG"


@pytest.mark.parametrize(
    ("types", "why"),
    [
        (["compaction/start", "compaction/start"], "is open"),
        (["compaction/end"], "names compaction"),
        (["compaction/summary"], "names compaction"),
        (["compaction/start", "turn/start"], "is open"),
    ],
)
def test_events_of_a_compaction_stand_in_order(types: list[str], why: str) -> None:
    bench = Workbench()
    data: dict[str, Any] = {"compactionId": "c", "turn": None}
    with pytest.raises(InvariantError, match=why):
        bench.session.append(*(draft(type, {"turn": 1} if type == "turn/start" else data) for type in types))
