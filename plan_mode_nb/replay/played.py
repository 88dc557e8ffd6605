"""The parts of a composition that a replay stands in for: the model, the person, and the tools that are not run again.

Each asks the course of the session it is called for; without one it leaves the call to whoever would have it otherwise.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, get_args

import msgspec
from msgspec.structs import replace

from plan_mode_nb.agent.approval import ApprovalOutcome, ApprovalProvider, ApprovalRequest, Decided, NobodyToApprove
from plan_mode_nb.agent.dispatch import INSIDE, INSIDE_START, call_inside, inside_number
from plan_mode_nb.agent.mcp import PREFIX
from plan_mode_nb.agent.model import Chunk, Request
from plan_mode_nb.agent.prestep import CallNext, Decision, Step
from plan_mode_nb.agent.questions import Answer, NobodyToAsk, QuestionProvider, QuestionRequest, Reply
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import CallInterrupted, Outcome, Replayed, RunTool, Tool, ToolCall, ToolResult
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import Block
from plan_mode_nb.log.session import Session
from plan_mode_nb.replay.compare import MARK, REDACTED
from plan_mode_nb.replay.course import Course

SPILLED: Final = re.compile(r"characters left out here; the whole text is in ")


class Courses(Protocol):
    """Which course a session follows."""

    def of(self, session: Session) -> Course | None:
        """The course; None for a session that is not replayed."""

    def had_child(self, course: Course, result: Event) -> bool:
        """Whether a recorded call, whose result this is, ran in a session of its own."""


class PlayedModel:
    """Answers as recorded, wherever a retry or a step asks, and fails and is stopped where the recorded one was."""

    def __init__(self, course: Course) -> None:
        self._course = course

    @property
    def config(self) -> Mapping[str, Any]:
        """As recorded."""
        return self._course.model_config

    async def context_window(self) -> int | None:
        """As recorded."""
        await self._course.feed()
        return self._course.context_window

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """The recorded answer.

        Raises:
            ReplayError: the request is not the recorded one.
            ModelError: as recorded.
        """
        course = self._course
        await course.feed()
        answer = course.next_answer(request)
        for chunk in answer.chunks:
            await course.feed()
            yield chunk
        await course.feed()
        if course.stops_here:
            await course.stop()
        if answer.error is not None:
            raise answer.error


Otherwise = Callable[[], tuple[QuestionProvider, ApprovalProvider]]


class PlayedPeople:
    """Satisfies QuestionProvider and ApprovalProvider: the recorded answers, marked ``by: "replay"``.

    ``otherwise``: who answers for sessions without a course. ``approves``: False leaves approvals to them in every case.
    """

    def __init__(self, courses: Courses, otherwise: Otherwise, *, approves: bool = True) -> None:
        self._courses = courses
        self._otherwise = otherwise
        self._approves = approves

    async def ask(self, request: QuestionRequest) -> Reply:
        """The recorded reply, at once."""
        course = self._courses.of(request.agent.session)
        if course is None:
            return await self._otherwise()[0].ask(request)
        await course.feed()
        asked = course.recorded_at("question/asked", "requestId", request.request_id)
        answered = None if asked is None else _later(course.recorded, asked, "question/answered", "requestId")
        if request.call_id is not None and course.stops_in(request.call_id) and (answered is None or answered["outcome"] == "cancelled"):
            await course.stop()
        if answered is None:
            return Reply("unavailable", by="replay", reason="nobody answered this question in the recording")
        if answered["outcome"] == "unavailable":
            # The reason is not logged; where nobody was there, it is always this one.
            return replace(await NobodyToAsk().ask(request), by="replay")
        answers = tuple(msgspec.convert(answer, Answer) for answer in answered.get("answers", ()))
        return Reply(answered["outcome"], answers, by="replay")

    async def decide(self, request: ApprovalRequest) -> Decided:
        """The recorded decision, at once. Nothing is approved that was not approved in the recording."""
        course = self._courses.of(request.agent.session)
        if course is None or not self._approves:
            return await self._otherwise()[1].decide(request)
        await course.feed()
        asked = course.recorded_at("approval/asked", "id", request.id)
        decided = None if asked is None else _later(course.recorded, asked, "approval/decided", "id")
        recorded = "unavailable" if decided is None else decided["outcome"]
        outcomes: tuple[ApprovalOutcome, ...] = get_args(ApprovalOutcome)
        outcome: ApprovalOutcome = next((each for each in outcomes if each == recorded), "unavailable")
        reason = (await NobodyToApprove().decide(request)).reason if outcome == "unavailable" else ""
        return Decided(outcome, by="replay", reason=reason)


def _later(events: Sequence[Event], asked: Event, type: str, key: str) -> dict[str, Any] | None:
    for event in events[asked.seq + 1 :]:
        if event.type == type and event.data.get(key) == asked.data.get(key):
            data: dict[str, Any] = event.data
            return data
    return None


class PlayedTools:
    """Stands between a call and its tool: takes the recorded result, or has the tool run and compares."""

    def __init__(self, courses: Courses, seams: Seams, note: Callable[[str], None]) -> None:
        """``note``: told when a recorded result was taken for one that was made again, one sentence."""
        self._courses = courses
        self._seams = seams
        self._tools = seams.tools
        self._note = note

    async def __call__(self, call: ToolCall, run: RunTool) -> Outcome:
        """The call's outcome.

        Raises:
            ReplayError: something differed before.
            CallInterrupted, CancelledError: the turn was stopped here.
        """
        course = None if call.agent is None else self._courses.of(call.agent.session)
        if course is None:
            return await run(call)
        await course.feed()
        recorded = course.result_of(call.call_id)
        if recorded is None:
            return await run(call)
        outcome = await self._outcome(course, call, recorded, run)
        await course.feed()
        if course.stops_in(call.call_id):
            try:
                await course.stop()
            except asyncio.CancelledError:
                raise CallInterrupted(outcome) from None
        return outcome

    async def _outcome(self, course: Course, call: ToolCall, recorded: Event, run: RunTool) -> Outcome:
        tool = self._tools.get(call.name)
        how = "derived" if tool is None else tool.replayed(call.arguments)
        well = course.is_rebuilt
        if how == "derived" and _is_derivable(course, call, recorded):
            return await run(call)
        if how == "delegates" and self._courses.had_child(course, recorded):
            return await run(call)
        everything = course.runs_all and how == "played" and not call.name.startswith(PREFIX)
        if tool is not None and well and (how in ("rebuilds", "volatile") or everything):
            return self._settled(course, tool, how, recorded, await run(call))
        if well:
            await self._inner_calls(course, call, recorded)
        await course.play_until(recorded)
        return Outcome(_result(recorded))

    async def _inner_calls(self, course: Course, call: ToolCall, recorded: Event) -> None:
        """Make again, one by one, the calls that a played call made itself: each is then played, derived or run as its own tool has it."""
        for start in [event for event in course.until(recorded) if event.type == INSIDE_START]:
            await course.play_until(start)
            course.check()
            _, stop = await call_inside(self._seams, call, inside_number(start.data), start.data["name"], start.data.get("arguments"))
            if stop is not None:
                raise stop

    def _settled(self, course: Course, tool: Tool, how: Replayed, recorded: Event, outcome: Outcome) -> Outcome:
        """The recorded result where the one that was made now counts as equal, or is not compared; else what was made now."""
        now = outcome.result
        before = _result(recorded, now)
        text = _texts(before.content)
        if how == "volatile" or course.is_volatile or REDACTED.search(text) or SPILLED.search(text):
            if not _equal(course, before, now):
                self._note(f"a result of {tool.name} was not compared: the recorded one was taken")
                return Outcome(ToolResult(before.content, before.is_error, now.value, before.error, {**MARK}), outcome.events)
            return Outcome(ToolResult(before.content, before.is_error, now.value, before.error, before.meta), outcome.events)
        if _equal(course, before, now):
            return Outcome(ToolResult(before.content, before.is_error, now.value, now.error, now.meta), outcome.events)
        return outcome


def _is_derivable(course: Course, call: ToolCall, recorded: Event) -> bool:
    """Whether the log says how a call came to its result. A question that was closed for a reason outside the log does not."""
    if course.stops_in(call.call_id):
        return True
    between = course.until(recorded)
    closed = any(event.type == "question/answered" and event.data["outcome"] == "cancelled" for event in between)
    return not closed or any(event.type == "command/run" for event in between)


def _result(event: Event, now: ToolResult | None = None) -> ToolResult:
    """As recorded. Of a call that another one made the log has no error; ``now``: has it."""
    if event.type == INSIDE:
        error = None if now is None else now.error
        return ToolResult(tuple(event.data.get("content", ())), bool(event.data.get("isError")), None, error, event.data.get("meta"))
    block = event.data["message"]["content"][0]
    return ToolResult(tuple(block["content"]), bool(block.get("isError")), None, event.data.get("error"), event.data.get("meta"))


def _equal(course: Course, before: ToolResult, now: ToolResult) -> bool:
    """Text by text, and figures by kind: their pixels depend on fonts and versions, as nbval has it."""
    if before.is_error != now.is_error or before.error != now.error or len(before.content) != len(now.content):
        return False
    return all(_same_block(course, a, b) for a, b in zip(before.content, now.content, strict=True))


def _same_block(course: Course, before: Block, now: Block) -> bool:
    if before.get("type") != now.get("type"):
        return False
    if before.get("type") == "text":
        return course.comparison.same_result(before["text"], now["text"])
    if before.get("type") == "image":
        keys = ("mediaType", "name")
        return all(before["attachment"].get(key) == now["attachment"].get(key) for key in keys)
    return before == now


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def fed_before_step(courses: Courses) -> Callable[[Step, CallNext], Any]:
    """A pre-step listener, to be registered innermost: what came while a step was proposed, and a stop between two steps."""

    async def listen(step: Step, call_next: CallNext) -> Decision:
        course = courses.of(step.agent.session)
        if course is not None:
            await course.feed()
            if course.stops_between:
                await course.stop()
        return await call_next(step)

    return listen
