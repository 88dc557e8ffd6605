"""``exit_plan_mode``: hands in the complete plan and, when the person approves it, leaves plan mode at the next step.

The tool is registered once and always, so that the tool list is the same in both states. It accepts exactly when the section was in the
request: both read the same fold.
"""

from __future__ import annotations

from typing import Any, Final, Never

import msgspec

from plan_mode_nb.agent.agent import Agent, live_owner
from plan_mode_nb.agent.questions import Asked, Reply
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import Outcome, Presentation, Tool, ToolCall, ToolError, error_result, text_result
from plan_mode_nb.folds.plan import EXIT_PLAN_MODE, PLAN, review_of
from plan_mode_nb.plan.controller import selected
from plan_mode_nb.plan.plan_text import Plan, PlanTextError, parse_plan
from plan_mode_nb.plan.review import RELOADED, Approved, NotApproved, Withdrawal, read_reply, review_question

DESCRIPTION: Final = (
    "Use only in plan mode. Hand in your complete plan for the user's review and, when it is approved, leave plan mode. "
    "Send the COMPLETE plan as markdown that starts with a # heading naming it. The user approves it (carry it out from your next "
    "step) or keeps planning: their feedback comes back as this tool's result; revise the whole plan and hand it in again."
)
PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "plan": {"type": "string", "description": "The complete plan, as markdown, starting with a # heading that names it."},
    },
    "required": ["plan"],
    "additionalProperties": False,
}
APPROVED_TEXT: Final = (
    "The user approved the plan. Plan mode ends now: carry the plan out from your next step; "
    "keep a todo list where the plan has several parts."
)


class ExitTool:
    """One composition's tool. ``close`` ends its open reviews and makes every later answer fail."""

    def __init__(self, seams: Seams) -> None:
        self._seams = seams
        self._open: set[Withdrawal] = set()
        self._closed = False

    def tool(self) -> Tool:
        """The tool for a registry."""
        return Tool(EXIT_PLAN_MODE, DESCRIPTION, PARAMETERS, self.run, replay="derived", present_call=present_call)

    def close(self) -> None:
        """The plugin is taken out: reviews in flight fail, and say to present the plan again."""
        self._closed = True
        for withdrawal in tuple(self._open):
            withdrawal.end(Reply("cancelled", by="policy", reason=RELOADED))

    async def run(self, call: ToolCall) -> Outcome:
        """Check, ask, and turn the answer into a result whose events commit together with it.

        Raises:
            ToolError: a check failed; the message says what to send or do instead, and nothing was asked.
        """
        agent = _calling_agent(call)
        plan = _checked(call, agent)
        withdrawal = Withdrawal(agent)
        self._open.add(withdrawal)
        try:
            asked = await self._seams.questions.ask(agent, (review_question(plan.text),), call_id=call.call_id, withdrawn=withdrawal.future)
        finally:
            self._open.discard(withdrawal)
            withdrawal.close()
        return self._outcome(agent, asked)

    def _outcome(self, agent: Agent, asked: Asked) -> Outcome:
        verdict = read_reply(asked.reply)
        if self._closed and isinstance(verdict, Approved):
            verdict = NotApproved(RELOADED)
        match verdict:
            case NotApproved(message):
                return Outcome(error_result(message, name="PlanNotApproved", code="PLAN_NOT_APPROVED"), (asked.answered,))
            case Approved():
                result = text_result(APPROVED_TEXT, value={"approved": True})
                return Outcome(result, (asked.answered, selected(False, narrate=False)))


def _calling_agent(call: ToolCall) -> Agent:
    if call.agent is None:
        raise ToolError(f"{EXIT_PLAN_MODE} needs a calling agent: there is no session whose plan mode could end", code="NO_AGENT")
    return call.agent


def _checked(call: ToolCall, agent: Agent) -> Plan:
    """The checks 2 to 5 of plan-mode.md, in its order."""
    state = agent.session.fold(PLAN)
    if not state.active:
        _refuse(f"{EXIT_PLAN_MODE} is only for plan mode, and plan mode is off: carry out the task, or answer in prose", "PLAN_INACTIVE")
    if _reviewed_in_batch(agent):
        _refuse("a plan was already submitted in this step: wait for its result and, if it was not approved, submit one revised plan")
    if state.pending is False:
        _refuse("the user is leaving plan mode: there is nothing to review; carry on without a plan from the next step")
    try:
        plan = parse_plan(_plan_argument(call.arguments))
    except PlanTextError as error:
        _refuse(str(error), "BAD_ARGUMENTS")
    if live_owner(agent) is not None:
        _refuse("only the main agent can ask for a review: put the open decision in your final result", "NOT_ROOT")
    return plan


def _refuse(message: str, code: str = "PLAN_REFUSED") -> Never:
    raise ToolError(message, code=code)


def _plan_argument(arguments: str) -> object:
    """The ``plan`` argument, whatever it is; None where there is none.

    Raises:
        PlanTextError: the arguments are no JSON object with exactly that key.
    """
    try:
        decoded = msgspec.json.decode(arguments.strip() or "{}")
    except msgspec.MsgspecError:
        raise PlanTextError('The arguments are not JSON. Send {"plan": "# Title\\n\\nthe complete plan as markdown"}.') from None
    if not isinstance(decoded, dict) or set(decoded) - {"plan"}:
        raise PlanTextError('Send one object with the one key `plan`: {"plan": "# Title\\n\\nthe complete plan as markdown"}.')
    return decoded.get("plan")


def _reviewed_in_batch(agent: Agent) -> bool:
    """Whether an exit call of this step was asked about; whatever came of it, a step has one review."""
    for event in reversed(agent.session.events):
        if event.type == "step/start":
            return False
        if event.type == "question/asked" and review_of(event.data) is not None:
            return True
    return False


def present_call(arguments: str) -> Presentation | None:
    """The call as the plan it holds, titled by the plan's heading; None when it holds none."""
    try:
        plan = parse_plan(_plan_argument(arguments))
    except PlanTextError:
        return None
    return Presentation(plan.title, plan.text, "plan")
