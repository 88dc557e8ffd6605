"""Who answers in a terminal, over a real pseudo terminal: the rules of every question provider, and which line means what."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.questions import Answer, Option, Question, QuestionProvider, QuestionRequest, Reply
from plan_mode_nb.hosts.terminal.keyboard import LONGEST_LINE, Keyboard
from plan_mode_nb.hosts.terminal.people import TerminalPeople
from plan_mode_nb.hosts.terminal.prompts import Prompts
from plan_mode_nb.plan.review import review_question
from plan_mode_nb.testing.questions import QuestionProviderContract, a_question, a_question_request
from plan_mode_nb.testing.workbench import Workbench

CTRL_D = "\x04"
PLAN = "# Count\n\n1. Count.\n"
Act = Callable[[QuestionRequest], Reply] | Reply | None


class InAThread:
    """A turn whose main thread is a worker of its own, so that the loop goes on while it prompts."""

    async def on_main(self, fn: Callable[..., Any], *args: Any) -> Any:
        job = asyncio.ensure_future(asyncio.to_thread(fn, *args))
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.wait([job])  # the one main thread is not free before
            raise

    def user_code(self) -> AbstractContextManager[None]:
        return nullcontext()

    def mark_dirty(self) -> None:
        raise AssertionError("a prompt changes nothing that is displayed")

    def request_stop(self) -> None:
        raise AssertionError("nobody stops")


class Person:
    """Sits at a pseudo terminal and types the next of ``lines`` whenever a prompt waits; None: nothing more."""

    def __init__(self, *lines: str | None) -> None:
        self.master, self.slave = os.openpty()
        self.lines = list(lines)
        self.wrote = ""
        self.waiting = threading.Event()
        keyboard = Keyboard(self.see, self.slave)
        self.people = TerminalPeople(keyboard, Prompts(keyboard, self.see, lambda: 60))
        self.people.turn = InAThread()
        self._keyboard = keyboard

    def see(self, text: str) -> None:
        self.wrote += text
        if text.endswith(("] ", ": ", ") ")):
            line = self.lines.pop(0) if self.lines else None
            if line is not None:
                self.type(line if line.endswith(CTRL_D) else f"{line}\n")
            self.waiting.set()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> None:
        self._keyboard.close()
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def sitting(*lines: str | None) -> Iterator[Person]:
    person = Person(*lines)
    yield person
    person.close()


class OneActARequest:
    """The terminal's people, with a person who does one act of the contract at each request."""

    def __init__(self, person: Person, acts: list[Act]) -> None:
        self._person = person
        self._acts = acts

    async def ask(self, request: QuestionRequest) -> Reply:
        self._person.lines = [typed(self._acts.pop(0), request)]
        return await self._person.people.ask(request)


def typed(act: Act, request: QuestionRequest) -> str | None:
    """What a person types to do an act; None: nothing."""
    reply = act(request) if callable(act) else act
    if reply is None or reply.outcome == "dismissed":
        return None if reply is None else CTRL_D
    answer = reply.answers[0]
    labels = [option.label for option in request.questions[0].options]
    return answer.custom if answer.custom is not None else str(labels.index(answer.selected[0]) + 1)


class TestTerminalPeople(QuestionProviderContract):
    @contextmanager
    def person(self, *acts: Act) -> Iterator[QuestionProvider]:
        with sitting() as person:
            yield OneActARequest(person, list(acts))


def review(*lines: str, plans: tuple[str, ...] = (PLAN,)) -> tuple[Reply, Person]:
    """Review the last of the plans; the lines that are typed must be enough."""
    with sitting(*lines) as person:
        request = a_question_request(review_question(plans[-1]))
        reply = asyncio.run(asyncio.wait_for(person.people.ask(request), 60))
        assert person.lines == []
        return reply, person


def answered(*selected: str, custom: str | None = None) -> Reply:
    return Reply("answered", (Answer("plan-review", selected, custom),))


@pytest.mark.parametrize(
    ("lines", "reply"),
    [
        (("a",), answered("Approve")),
        ((" A ",), answered("Approve")),
        (("k", ""), answered("Keep planning")),
        (("k", "   "), answered("Keep planning")),
        (("k", " count twice,\n\tplease  "), answered("Keep planning", custom=" count twice,\n\tplease  ")),
        (("k", "approve"), answered("Keep planning", custom="approve")),
        (("k", "a"), answered("Keep planning", custom="a")),
        (("d",), Reply("dismissed")),
        ((CTRL_D,), Reply("dismissed")),
        (("k", CTRL_D), Reply("dismissed")),
        (("approve", "Approve", "yes", "a but not b", "aa", "", "c", "1", "d"), Reply("dismissed")),
        (("a\nyes", "d"), Reply("dismissed")),
        (("k nothing", "k", "日本語 – ünï"), answered("Keep planning", custom="日本語 – ünï")),
    ],
)
def test_a_line_answers_a_review_only_when_it_is_exactly_a_key(lines: tuple[str, ...], reply: Reply) -> None:
    """Everything else is asked again, and words are words whatever they say."""
    assert review(*lines)[0] == reply


def test_a_line_that_the_terminal_would_cut_is_never_taken_for_the_whole() -> None:
    """It is asked for again; nothing of it reaches the agent. Cut: "do not delete" could end as "do"."""
    reply, person = review("k", "x" * 5000, "short")
    assert reply == answered("Keep planning", custom="short")
    assert "A terminal cuts a line this long" in person.wrote
    whole = "\n".join("y" * (LONGEST_LINE // 2) for _ in range(3))
    assert review("k", whole)[0] == answered("Keep planning", custom=whole)


def test_keys_pressed_before_a_review_is_shown_decide_nothing() -> None:
    """They are thrown away when the prompt begins."""
    with sitting("d") as person:
        person.type("a\na\n")
        reply = asyncio.run(asyncio.wait_for(person.people.ask(a_question_request(review_question(PLAN))), 60))
    assert reply == Reply("dismissed")


def test_changes_are_offered_from_the_second_submission_on() -> None:
    """As often as wanted; they decide nothing."""
    with sitting("c", "c", "a") as person:
        prompts = Prompts(Keyboard(person.see, person.slave), person.see, lambda: 60)
        reply = prompts.ask(a_question_request(review_question("# Count\n\n1. Count twice.\n")), PLAN)
    assert reply == answered("Approve")
    assert person.wrote.count("│ + 1. Count twice.") == 2


def test_a_prompt_is_taken_back_before_it_begins_and_while_it_waits() -> None:
    """Cancelling ends it at once, with the answer unread."""

    async def cancelled(person: Person) -> None:
        asking = asyncio.ensure_future(person.people.ask(a_question_request(review_question(PLAN))))
        await asyncio.to_thread(person.waiting.wait, 60)
        asking.cancel()
        done, _ = await asyncio.wait({asking}, timeout=60)
        assert asking in done
        assert asking.cancelled()

    with sitting() as person:
        asyncio.run(cancelled(person))
        person.waiting.set()
        for _ in range(20):
            asyncio.run(cancelled(person))


@pytest.mark.parametrize(
    ("lines", "multiple", "answer"),
    [
        (("2",), False, Answer("q", ("B",))),
        (("0", "3", "1,2", "1, x", "1"), False, None),
        (("2, 1",), True, Answer("q", ("A", "B"))),
        (("", "  ", "B"), False, Answer("q", (), "B")),
    ],
)
def test_numbers_pick_and_words_are_the_persons_own(lines: tuple[str, ...], multiple: bool, answer: Answer | None) -> None:
    """A number that is not offered is asked again; the label typed out is words, for who asked reads labels only from picks."""
    question = Question("q", "Which?", (Option("A", "first"), Option("B")), multi_select=multiple)
    with sitting(*lines) as person:
        reply = asyncio.run(asyncio.wait_for(person.people.ask(a_question_request(question)), 60))
    assert reply == Reply("answered", (answer or Answer("q", (), "1, x"),))


def test_several_questions_are_one_reply_and_ctrl_d_dismisses_all() -> None:
    """Half an answer is none."""
    two = (a_question("a", "A?", ("x", "y")), a_question("b", "B?", ("x", "y")))
    for lines, reply in (("1", "2"), Reply("answered", (Answer("a", ("x",)), Answer("b", ("y",))))), (("1", CTRL_D), Reply("dismissed")):
        with sitting(*lines) as person:
            assert asyncio.run(asyncio.wait_for(person.people.ask(a_question_request(*two)), 60)) == reply


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [(("a",), "allowed-once"), (("r",), "rejected"), ((CTRL_D,), "rejected"), (("allow once", "yes", "", "y", "r"), "rejected")],
)
def test_only_the_allowing_key_lets_a_call_run(lines: tuple[str, ...], outcome: str) -> None:
    """Anything else is asked again, and Ctrl-D rejects."""
    request = ApprovalRequest("1", Workbench().agent, "python", "rm()\n\u202e#", "it cannot be confined", None)
    with sitting(*lines) as person:
        decided = asyncio.run(asyncio.wait_for(person.people.decide(request), 60))
    assert decided == Decided(outcome)  # type: ignore[arg-type]
    assert "│ rm()\n│ ⟦U+202E⟧#\n" in person.wrote


def test_with_no_terminal_or_no_turn_nobody_is_asked() -> None:
    """A pipe cannot answer, nor can a prompt appear where no turn has the main thread: unavailable at once."""
    reader, writer = os.pipe()
    keyboard = Keyboard(lambda text: pytest.fail(text), reader)
    people = TerminalPeople(keyboard, Prompts(keyboard, lambda text: None))
    request = a_question_request(review_question(PLAN))
    for turn in (InAThread(), None):
        people.turn = turn
        assert asyncio.run(people.ask(request)).outcome == "unavailable"
        approval = ApprovalRequest("1", request.agent, "python", "1", "why", None)
        assert asyncio.run(people.decide(approval)).outcome == "unavailable"
    for fd in (reader, writer):
        os.close(fd)
    keyboard.close()
