"""Plan mode as a fold of the log (plan-mode.md, State): what is in force, what is selected, what the model was last told.

Nothing else holds plan state. deepseek-harness keeps a pending selection in process memory; here it is ``plan/selected``, and up to a log's
first one its projection's rule over the ``/plan`` command is used, so that its logs read here as they read there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from plan_mode_nb.folds.view import View
from plan_mode_nb.log.events import Event, Replace

EXIT_PLAN_MODE: Final = "exit_plan_mode"
"""The tool through which the model leaves plan mode."""
PLAN_COMMAND: Final = "plan"
PLAN_PLUGIN: Final = "plan-mode"
REVIEW_INTENT: Final = "plan-review"


class PlanState(Struct, frozen=True):
    """``active``: the logged value in force. ``pending``: the awaited value; None when none is, or when it would equal ``active``."""

    active: bool = False
    pending: bool | None = None

    @property
    def target(self) -> bool:
        """The value once nothing is pending any more."""
        return self.active if self.pending is None else self.pending


def fold_plan_mode(events: Iterable[Event], end: int | None = None) -> bool:
    """The last ``plan/mode`` among the first ``end`` events (default: all), else False."""
    active = False
    for index, event in enumerate(events):
        if end is not None and index >= end:
            break
        if event.type == "plan/mode":
            active = event.data["active"]
    return active


def fold_plan_state(events: Iterable[Event]) -> PlanState:
    """The plan state of a whole log or any prefix of it."""
    state = PLAN.start()
    for event in events:
        if event.type in PLAN.types:
            state = PLAN.step(state, event)
    return PLAN.value(state)


class _Plan(Struct):
    active: bool = False
    wanted: bool | None = None
    by_selection: bool = False
    running: tuple[str, bool] | None = None


class PlanFold:
    """Events -> :class:`PlanState`."""

    types: Final = frozenset({"plan/mode", "plan/selected", "command/run", "command/done"})

    def start(self) -> _Plan:
        """Inactive, nothing pending."""
        return _Plan()

    def step(self, state: _Plan, event: Event) -> _Plan:
        """The state after one more event."""
        data = event.data
        match event.type:
            case "plan/mode":
                state.active, state.wanted = data["active"], None
            case "plan/selected":
                state.wanted, state.by_selection = data["active"], True
            case "command/run" if not state.by_selection and data["name"] == PLAN_COMMAND and isinstance(data.get("args"), str):
                state.running = (data["commandId"], data["args"].strip().lower() != "off")
            case "command/done" if not state.by_selection and state.running and data["commandId"] == state.running[0]:
                if data["kind"] == "success":
                    state.wanted = state.running[1]
                state.running = None
        return state

    def value(self, state: _Plan) -> PlanState:
        """What is in force and what is awaited."""
        return PlanState(state.active, None if state.wanted == state.active else state.wanted)


class _Told(Struct):
    active: bool = False
    told: bool | None = None
    exits: set[str] = field(default_factory=set)


class ToldFold:
    """Events -> what the model was last told of plan mode; None: nothing yet.

    Told at a ``request/header`` (which shows the section or does not), at the result of an approved exit (False), and at a plan notice.
    A notice says the state in force where it stands, because a pre-step appends ``plan/mode`` before the messages of its step; so its
    value is the plan fold there, and no wording is parsed.
    """

    types: Final = frozenset({"plan/mode", "request/header", "user/message", "tool/call", "tool/result", "step/end"})

    def start(self) -> _Told:
        """Nothing told."""
        return _Told()

    def step(self, state: _Told, event: Event) -> _Told:
        """The state after one more event."""
        data = event.data
        match event.type:
            case "plan/mode":
                state.active = data["active"]
            case "request/header":
                state.told = state.active
            case "user/message" if is_notice(data):
                state.told = state.active
            case "tool/call" if data["name"] == EXIT_PLAN_MODE:
                state.exits.add(data["callId"])
            case "tool/result" if is_approval(event, state.exits):
                state.told = False
            case "step/end":
                state.exits.clear()
        return state

    def value(self, state: _Told) -> bool | None:
        """The value last told, None if none was."""
        return state.told


def is_notice(data: dict[str, Any]) -> bool:
    """Whether a ``user/message`` is plan mode's notice of a switch."""
    source = data.get("source")
    return isinstance(source, dict) and source.get("plugin") == PLAN_PLUGIN and source.get("form") == "notice"


def is_approval(event: Event, exits: Iterable[str]) -> bool:
    """Whether a ``tool/result`` is the first, successful result of one of the ``exits`` (call ids). A rewritten result is none."""
    if isinstance(event.surface_op, Replace) or event.data.get("error"):
        return False
    message = event.data["message"]
    return message["source"]["callId"] in exits and message["content"][0].get("isError", False) is False


class _Approved(Struct):
    plans: dict[str, Any] = field(default_factory=dict)
    approved: str | None = None


class ApprovedFold:
    """Events -> the text of the last approved plan, as submitted; None if none was approved."""

    types: Final = frozenset({"tool/call", "question/asked", "tool/result", "tool/code-dispatch", "step/end"})

    def start(self) -> _Approved:
        """No plan approved."""
        return _Approved()

    def step(self, state: _Approved, event: Event) -> _Approved:
        """The state after one more event."""
        data = event.data
        match event.type:
            case "tool/call" if data["name"] == EXIT_PLAN_MODE:
                state.plans[data["callId"]] = plan_argument(data["arguments"])
            case "question/asked" if data.get("callId") in state.plans:
                plan = review_of(data)
                if plan is not None:
                    state.plans[data["callId"]] = plan["detail"]
            case "tool/result" if is_approval(event, state.plans):
                state.approved = state.plans[data["message"]["source"]["callId"]]
            case "tool/code-dispatch" if data["name"] == EXIT_PLAN_MODE and data.get("isError") is False:
                state.approved = _plan_in(data.get("arguments"))
            case "step/end":
                state.plans.clear()
        return state

    def value(self, state: _Approved) -> str | None:
        """The last approved plan."""
        return state.approved


def plan_argument(arguments: str) -> str | None:
    """The ``plan`` of a raw argument string. None for what is no JSON object with one: such a call is refused before any review."""
    try:
        return _plan_in(msgspec.json.decode(arguments))
    except msgspec.MsgspecError:
        return None


def _plan_in(arguments: Any) -> str | None:
    """The ``plan`` of arguments as a JSON value."""
    plan = arguments.get("plan") if isinstance(arguments, dict) else None
    return plan if isinstance(plan, str) else None


def review_of(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The plan-review question of a ``question/asked``, with its plan in ``detail``; None when it asks no review."""
    for question in asked["questions"]:
        intent = question.get("intent")
        if isinstance(intent, dict) and intent.get("kind") == REVIEW_INTENT and isinstance(question.get("detail"), str):
            return dict(question)
    return None


class Submission(Struct, frozen=True):
    """One plan that was put before a person: its exact text, the question and call it came with, ``seq`` of its ``question/asked``."""

    seq: int
    request_id: str
    call_id: str | None
    plan: str


class SubmissionsFold:
    """Events -> every submitted plan, in order (a revision is compared with the one before it)."""

    types: Final = frozenset({"question/asked"})

    def start(self) -> list[Submission]:
        """None submitted."""
        return []

    def step(self, state: list[Submission], event: Event) -> list[Submission]:
        """The state after one more event."""
        review = review_of(event.data)
        if review is not None:
            state.append(Submission(event.seq, event.data["requestId"], event.data.get("callId"), review["detail"]))
        return state

    def value(self, state: list[Submission]) -> View[Submission]:
        """The submissions, oldest first."""
        return View(state)


PLAN: Final = PlanFold()
TOLD: Final = ToldFold()
APPROVED_PLAN: Final = ApprovedFold()
SUBMISSIONS: Final = SubmissionsFold()
