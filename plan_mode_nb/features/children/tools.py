"""``spawn_agent`` and ``fork_agent``: a task handed to a child agent, whose last message is the call's result.

A spawned child begins with an empty log, so plan mode is off; a forked one with its parent's log up to its own call, plan state included.
Several children of one answer run one after the other, like all calls, so that the logs are the same each time. The tools are always
there: at the limit of depth they say what to do instead.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.delegation import CHILD, Birth, Guide, Kind, Nursery
from plan_mode_nb.agent.prestep import CallNext, Decision, Reject, Step
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import (
    CallInterrupted,
    Outcome,
    Presentation,
    Tool,
    ToolCall,
    ToolError,
    ToolResult,
    error_result,
    text_result,
)
from plan_mode_nb.exceptions import LogError, StoreError
from plan_mode_nb.features.children.report import Report, report_of
from plan_mode_nb.features.tools.cap import cap_text
from plan_mode_nb.folds.descriptor import descriptor_data
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import notice_source, user_message
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

SPAWN: Final = "spawn_agent"
FORK: Final = "fork_agent"
PLUGIN: Final = "children"
MAX_DEPTH: Final = 3
"""Delegations from the agent that a person speaks to down to the deepest child: deepseek-harness's default."""
_LABEL_LIMIT: Final = 60
_ALONE: Final = (
    "Work on your own: your last message is all that it gets, so put the whole result there. You cannot hand in a plan for review; put a "
    "decision that the user has to take into that message."
)
SPAWNED: Final = f"You are a child agent. The agent that made you waits for the task that follows. {_ALONE}"
FORKED: Final = f"You are a child agent, forked from this conversation for the task that follows; do that and nothing else of it. {_ALONE}"
FORK_POINT: Final = "The conversation was forked here: from now on you are the child."
LEFT_TO_PARENT: Final = "This call is the parent's, not the child's: leave it."
Description = Annotated[str, msgspec.Meta(description="What the task is in three to five words, shown to the user.")]


class Children:
    """One composition's tools. ``max_depth``: how deep delegation may go; 0: not at all."""

    def __init__(self, seams: Seams, max_depth: int) -> None:
        self._seams = seams
        self._max_depth = max_depth
        self._undescribed: dict[str, dict[str, Any]] = {}

    def spawn_tool(self) -> Tool:
        """The tool for a registry."""

        async def spawn(
            call: ToolCall,
            task: Annotated[str, msgspec.Meta(description="The whole task: the child knows nothing but this, so say all that it needs.")],
            description: Description = "",
        ) -> Outcome:
            """Hand a self-contained task to a new agent and wait for its result: research, a review, a part of the work.

            It has your tools, limits and kernel, but an empty conversation, and its steps do not fill yours: you get its last message.
            """
            return await self.run(call, "spawn", task, description)

        return tool_from(spawn, name=SPAWN, replay="delegates", present_call=present_call)

    def fork_tool(self) -> Tool:
        """The tool for a registry."""

        async def fork(
            call: ToolCall,
            task: Annotated[str, msgspec.Meta(description="The task. The child knows this conversation up to here: say only what is new.")],
            description: Description = "",
        ) -> Outcome:
            """Hand a task that builds on this conversation to a copy of yourself and wait for its result.

            It goes on from here with your tools, limits and kernel; its steps do not fill your conversation. You get its last message.
            """
            return await self.run(call, "fork", task, description)

        return tool_from(fork, name=FORK, replay="delegates", present_call=present_call)

    async def run(self, call: ToolCall, kind: Kind, task: str, description: str) -> Outcome:
        """Run the child's turn, whole, in the task of its parent's: so whatever stops the parent stops it.

        Raises:
            ToolError: there can be no child; says what to do instead.
            CallInterrupted: the parent was stopped, and the child with it.
        """
        parent = self._checked(call, task)
        # Kept by hand: the extension may be loaded again meanwhile.
        nursery, guide = self._seams.delegation.nursery, self._seams.delegation.guide
        if nursery is None:
            raise ToolError("nothing here can run a child agent: do the task yourself", code="NO_CHILDREN")
        session = self._session(call, parent, kind, nursery, guide)
        label = _label(description or task)
        try:
            child = nursery.open(parent, session, label)
        except StoreError as error:
            raise ToolError(f"the child agent's log cannot be kept: {error}", code="CHILD_FAILED") from error
        birth = Birth(child, parent, call.call_id, kind, label)
        self._seams.delegation.announce(birth)
        try:
            if guide is None or not guide.begin(birth):
                await self._turn(birth, task)
        except asyncio.CancelledError:
            raise CallInterrupted(Outcome(_result(birth, report_of(birth.child.session)))) from None
        except (LogError, StoreError) as error:
            raise ToolError(f"the child agent's log could not be kept: {error}", code="CHILD_FAILED") from error
        finally:
            if guide is not None:
                guide.end(birth)
            nursery.close(birth.child)
        return Outcome(_result(birth, report_of(birth.child.session)))

    async def describe(self, step: Step, call_next: CallNext) -> Decision:
        """A pre-step: a child's first accepted step logs what it is, in its turn and ahead of its request (deepseek-harness's place)."""
        decision = await call_next(step)
        data = None if isinstance(decision, Reject) else self._undescribed.pop(step.agent.session.id, None)
        if data is not None:
            step.agent.session.append(draft("subagent/descriptor", data))
        return decision

    # -- inside

    def _checked(self, call: ToolCall, task: str) -> Agent:
        if call.agent is None:
            raise ToolError(f"{call.name} needs a calling agent: there is no session that a child could belong to", code="NO_AGENT")
        if not task.strip():
            raise ToolError("the task is empty: say what the child has to do and what it has to answer", code="BAD_ARGUMENTS")
        depth = call.agent.session.header.delegation_depth
        if depth >= self._max_depth:
            limit = f"children may be {self._max_depth} deep here" if self._max_depth else "agents have no children here"
            raise ToolError(f"{limit}: do the task yourself, and do not call {SPAWN} or {FORK} again", code="TOO_DEEP")
        return call.agent

    def _session(self, call: ToolCall, parent: Agent, kind: Kind, nursery: Nursery, guide: Guide | None) -> Session:
        led = None if guide is None else guide.session_id(parent, call.call_id)
        id = nursery.session_id(parent) if led is None else led
        if kind == "spawn":
            return parent.session.child(id=id)
        answers = _answers(parent.session.events, call.call_id)
        return parent.session.child(id=id, length=len(parent.session), answers=answers)

    async def _turn(self, birth: Birth, task: str) -> None:
        child, new_id = birth.child, self._seams.new_id
        self._seams.delegation.take_over(birth)
        self._undescribed[child.session.id] = descriptor_data(birth.kind, birth.label)
        notice = SPAWNED if birth.kind == "spawn" else FORKED
        child.inbox.inject(user_message(notice, id=new_id(), source=notice_source(PLUGIN, notice)))
        child.inbox.followup(user_message(task, id=new_id()))
        try:
            await child.run_turn()
        finally:
            self._undescribed.pop(child.session.id, None)


def _result(birth: Birth, report: Report) -> ToolResult:
    """What the parent is told: the child's last words, or one sentence on how it failed and what it had said until then."""
    session = birth.child.session
    meta = {CHILD: {"session": session.id, "steps": report.steps, "calls": report.calls}}
    words = cap_text(report.words)
    if not report.failure:
        return text_result(words or "The child agent ended without a word.", meta=meta)
    said = f"{report.failure}\nWhat it had said until then:\n{words}" if words else report.failure
    failed = error_result(said, name="ChildFailed", code="CHILD_FAILED")
    return ToolResult(failed.content, is_error=True, error=failed.error, meta=meta)


def _answers(events: Any, call_id: str) -> dict[str, str]:
    """What a forked child reads as results of the calls that its parent's open step still waits for."""
    asked: Event = next(event for event in reversed(events) if event.type == "assistant/message")
    calls = [block["id"] for block in asked.data["message"]["content"] if block["type"] == "tool-call"]
    # A call of a program has an id that begins with its program's.
    return {each: FORK_POINT if call_id == each or call_id.startswith(f"{each}:") else LEFT_TO_PARENT for each in calls}


def _label(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _LABEL_LIMIT else f"{line[: _LABEL_LIMIT - 1].rstrip()}…"


def present_call(arguments: str) -> Presentation | None:
    """The call as its task, titled by the description or the task's first words; None where the arguments hold none."""
    try:
        sent = msgspec.json.decode(arguments, type=dict[str, str])
    except msgspec.MsgspecError:
        return None
    task = sent.get("task", "")
    return Presentation(_label(sent.get("description") or task), task) if task.strip() else None


def install(seams: Seams, max_depth: int = MAX_DEPTH) -> Undo:
    """Register both tools and the pre-step; returns the undo.

    Raises:
        ValueError: a name is taken; nothing stays registered.
    """
    children = Children(seams, max_depth)
    undos: list[Undo] = []
    undo = undo_all(undos)
    try:
        undos.append(seams.tools.register(children.spawn_tool()))
        undos.append(seams.tools.register(children.fork_tool()))
        undos.append(seams.pre_step.register(children.describe))
    except ValueError:
        undo()
        raise
    return undo
