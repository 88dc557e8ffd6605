"""What waits to be said, and which step takes it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Step
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Outcome, Tool, ToolCall, text_result
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.messages import notice_source, text_of, user_message
from plan_mode_nb.models.script import call, fail, say
from plan_mode_nb.testing.workbench import Workbench


def add(a: int, b: int) -> str:
    """Add."""
    return str(a + b)


def said(bench: Workbench, request: int) -> list[str]:
    """The texts of the person's messages in a request."""
    messages = bench.model.requests[request].messages
    return [m["content"][0]["text"] for m in messages if m["source"]["kind"] == "user"]


def test_a_steer_joins_the_next_step_of_the_running_turn() -> None:
    """It stands after the results of the step it was sent in."""

    async def main() -> None:
        async def run(c: ToolCall) -> Outcome:
            bench.steer("but in blue")
            return Outcome(text_result("painted"))

        bench = Workbench(call("paint", {}), say("done"), install=[lambda s: s.tools.register(Tool("paint", "Paint.", {}, run))])
        await bench.ask("paint it")
        assert said(bench, 0) == ["paint it"]
        assert said(bench, 1) == ["paint it", "but in blue"]
        assert [m["source"]["kind"] for m in bench.model.requests[1].messages] == ["user", "model", "tool", "user"]

    asyncio.run(main())


def test_a_steer_after_the_last_step_without_calls_makes_another_step() -> None:
    """A turn does not end while a steer waits."""

    async def main() -> None:
        def late(request: object) -> object:
            bench.steer("one more thing")
            return say("done")

        bench = Workbench(late, say("that too"))
        assert (await bench.ask("go")).steps == 2
        assert said(bench, 1) == ["go", "one more thing"]

    asyncio.run(main())


def test_a_steer_that_a_listener_takes_away_makes_no_step() -> None:
    """Nothing is left to say, so nothing is asked."""

    async def main() -> None:
        async def first_only(step: Step, call_next: CallNext) -> Decision:
            await call_next(step)
            return Enter(step.messages if step.step == 1 else ())

        def late(request: object) -> object:
            bench.steer("one more thing")
            return say("done")

        bench = Workbench(late, say("never"), install=[lambda s: s.pre_step.register(first_only)])
        end = await bench.ask("go")
        assert (end.steps, end.reason, end.sentence) == (1, {"kind": "completed"}, "")

    asyncio.run(main())


def test_a_followup_is_a_turn_of_its_own() -> None:
    """Two prompts, two turns, in the order they came, though both waited."""

    async def main() -> None:
        bench = Workbench(say("1"), say("2"))
        for text in ("first", "second"):
            bench.agent.inbox.followup(user_message(text, id=text))
        assert (await bench.agent.run_turn()).turn == 1
        assert [m["id"] for m in bench.agent.inbox.next_turn] == ["second"]
        assert (await bench.agent.run_turn()).turn == 2
        assert (said(bench, 0), said(bench, 1)) == (["first"], ["first", "second"])
        assert not bench.agent.inbox.has_pending

    asyncio.run(main())


def test_a_followup_sent_while_a_turn_runs_waits_for_it_to_end() -> None:
    """It joins no step of the running turn."""

    async def main() -> None:
        def meanwhile(request: object) -> object:
            bench.agent.inbox.followup(user_message("later", id="later"))
            return say("done")

        bench = Workbench(meanwhile, say("now"))
        assert (await bench.ask("go")).steps == 1
        assert (await bench.agent.run_turn()).turn == 2
        assert said(bench, 1) == ["go", "later"]

    asyncio.run(main())


def test_what_was_injected_precedes_the_prompt_of_the_turn_that_takes_it() -> None:
    """Context first, then the question about it."""

    async def main() -> None:
        bench = Workbench(say("ok"))
        bench.agent.inbox.inject(user_message("the cell above failed", id="c"))
        await bench.ask("why?")
        assert said(bench, 0) == ["the cell above failed", "why?"]

    asyncio.run(main())


def test_what_waits_survives_a_killed_process_and_is_not_inherited_by_a_fork() -> None:
    """The queues are a fold of the log; a fork starts with the events, not with its parent's errands."""

    async def main() -> None:
        bench = Workbench()
        bench.agent.inbox.followup(user_message("prompt", id="p"))
        bench.steer("steer")
        again = Workbench(say("ok"), lines=bench.session.lines, ids="again")
        fork = bench.session.fork(len(bench.session), id=SessionId("fork"))
        assert not Workbench(session=fork).agent.inbox.has_pending
        await again.agent.run_turn()
        assert said(again, 0) == ["steer", "prompt"]
        assert not again.agent.inbox.has_pending

    asyncio.run(main())


def test_a_claim_is_logged_before_the_step_is_proposed_and_no_message_is_claimed_twice() -> None:
    """What one step took, no other takes, whatever happens to it."""

    async def main() -> None:
        seen: list[tuple[str, ...]] = []

        async def look(step: Step, call_next: CallNext) -> Decision:
            assert not bench.agent.inbox.has_pending
            seen.append(tuple(m["content"][0]["text"] for m in step.messages))
            return await call_next(step)

        bench = Workbench(
            call("add", {"a": 1, "b": 1}),
            say("2"),
            install=[lambda s: s.tools.register(tool_from(add)), lambda s: s.pre_step.register(look)],
        )
        bench.steer("s")
        await bench.ask("p")
        assert seen == [("s", "p"), ()]

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["followup", "steer", "inject"])
def test_secrets_are_taken_out_before_a_message_enters_the_log(kind: str) -> None:
    """In the queue, in the history and in the request alike; keys, ids and attachments stay."""

    async def main() -> None:
        bench = Workbench(
            say("I saw hunter22"), install=[lambda s: s.redactions.register("secret", lambda t: t.replace("hunter22", "[redacted:PW]"))]
        )
        image = {"type": "image", "attachment": {"attachmentId": "hunter22", "mediaType": "image/png"}}
        message = user_message([{"type": "text", "text": "my password is hunter22"}, image], id="hunter22-id")
        getattr(bench.agent.inbox, kind)(message)
        await bench.agent.run_turn()
        logged = bench.events("user/message")[0].data
        assert logged["content"] == [{"type": "text", "text": "my password is [redacted:PW]"}, image]
        assert logged["id"] == "hunter22-id"
        assert bench.session.lines[0].count("hunter22") == 2
        assert bench.model.requests[0].messages[0] == logged
        assert bench.events("assistant/message")[0].data["message"]["content"][0]["text"] == "I saw [redacted:PW]"

    asyncio.run(main())


def test_secrets_are_taken_out_of_arguments_results_and_the_system_prompt() -> None:
    """The tool runs with what the log says it was called with, so that model, log and notebook agree."""

    async def main() -> None:
        def echo(text: str) -> str:
            """Echo."""
            return f"{text} hunter22"

        def redact(text: str) -> str:
            return text.replace("hunter22", "[redacted:PW]")

        def setup(seams: Seams) -> object:
            seams.redactions.register("secret", redact)
            seams.sections.register("s", 1, lambda context: "never say hunter22")
            return seams.tools.register(tool_from(echo))

        bench = Workbench(call("echo", {"text": "hunter22"}, id="c"), say("ok"), install=[setup])
        await bench.ask("go")
        assert "hunter22" not in "".join(bench.session.lines)
        assert bench.model.requests[0].system == "never say [redacted:PW]"
        assert bench.events("tool/call")[0].data["arguments"] == '{"text":"[redacted:PW]"}'
        block = bench.events("tool/result")[0].data["message"]["content"][0]
        assert block["content"][0]["text"] == "[redacted:PW] [redacted:PW]"

    asyncio.run(main())


def test_an_agent_that_is_let_go_leaves_no_cycle_that_keeps_its_session_subscribed() -> None:
    """Nothing of the loop hooks itself into the log for good."""
    bench = Workbench(say("ok"))
    asyncio.run(bench.ask("go"))
    session, agent = bench.session, weakref.ref(bench.agent)
    bench.agent.dispose()
    del bench
    gc.collect()
    assert agent() is None
    assert len(session) > 0


def test_a_host_takes_out_what_a_person_had_said_before_and_nothing_else() -> None:
    """What a plugin put in, and what came since, stays in its place; what was taken out is in the log as canceled."""
    bench = Workbench(say("ok"))
    inbox = bench.agent.inbox
    notice = user_message("the file changed", id="n", source=notice_source("watcher", "changed"))
    bench.steer("one")
    inbox.inject(notice)
    bench.steer("two")
    inbox.followup(user_message("old", id="old"))
    before = inbox.queues
    bench.steer("three")
    inbox.followup(user_message("new", id="new"))
    taken = inbox.hand_back(before)
    assert [text_of(message["content"]) for message in taken] == ["one", "two", "old"]
    assert [text_of(message["content"]) for message in (*inbox.next_step, *inbox.next_turn)] == ["the file changed", "three", "new"]
    assert list(inbox.queues.canceled) == taken
    before = inbox.queues
    assert inbox.hand_back(before) == [*before.next_step[1:], *before.next_turn]
    assert inbox.next_step == [notice]
    asyncio.run(bench.agent.run_turn())
    assert inbox.queues.canceled[-1] == before.next_turn[0]


def test_a_turn_that_failed_takes_what_waits_for_it_out_of_the_inbox() -> None:
    """As one that was stopped: the next prompt must not bring along what was meant for this turn."""

    async def main() -> None:
        def late(request: object) -> object:
            bench.steer("and in blue")
            return fail(ModelError("no", code="BAD_REQUEST"))

        bench = Workbench(late, say("ok"))
        assert (await bench.ask("go")).reason["kind"] == "error"
        assert bench.types[-2:] == ["turn/end", "agent/inbox/spliced"]
        await bench.ask("again")
        assert said(bench, 1) == ["go", "again"]

    asyncio.run(main())
