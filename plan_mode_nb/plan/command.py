"""The ``plan`` command: every person's selection runs it, by magic, chip, card or palette."""

from __future__ import annotations

from plan_mode_nb.agent.commands import Command, CommandCall, CommandResult
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.folds.plan import PLAN_COMMAND
from plan_mode_nb.log.messages import text_block, user_message
from plan_mode_nb.plan.controller import PlanMode, SetOutcome

LEAVE = "Use %plan off to leave."
HELP = """Plan mode: the agent explores first, submits one complete plan, and acts only after you approved it.

  %plan            select plan mode (also: %plan on)
  %plan off        leave plan mode
  %plan MESSAGE    select plan mode and send MESSAGE, exactly as written
  %%plan [--image FILE]…
  MESSAGE          the same with several lines and images
"""


def keyword(args: str) -> str | None:
    """``on`` or ``off`` where the whole text is that word in any case, or empty text (``on``); None for a message.

    The seed of this design takes only the exact ``off``; nobody means to send that word as a message.
    """
    word = args.strip().lower()
    return "on" if word == "" else word if word in ("on", "off") else None


def recorded(call: CommandCall) -> str:
    """What the log keeps: ``off`` and the empty text for the keywords, so that dsh's projection reads them right; else the raw text.

    A message that happens to be a keyword is kept in quotes, or the projection would take it for one.
    """
    word = keyword(call.args)
    if call.literal:
        return call.args if word is None or not call.args.strip() else f'"{call.args.strip()}"'
    return {"on": "", "off": "off", None: call.args}[word]


def plan_command(seams: Seams) -> Command:
    """The command for a registry."""

    def handle(call: CommandCall) -> CommandResult:
        word = None if call.literal and call.args.strip() else keyword(call.args)
        if word == "off":
            if call.images:
                return CommandResult("error", "Images cannot go with %plan off: leave them out, or send them with a message.")
            return CommandResult("success", _off_text(PlanMode.set(call.agent, False), call))
        outcome = PlanMode.set(call.agent, True)
        blocks = [*call.images, *([] if word == "on" else [text_block(call.args.strip())])]
        if blocks:
            call.agent.inbox.steer(user_message(blocks, id=seams.new_id()))
        return CommandResult("success", _on_text(outcome, call, bool(blocks)), turn=bool(blocks))

    return Command(
        PLAN_COMMAND,
        "Enter or leave plan mode",
        handle,
        hint="[off|MESSAGE]",
        help=HELP,
        images=True,
        recorded_args=recorded,
    )


def _off_text(outcome: SetOutcome, call: CommandCall) -> str:
    leaving = "Leaving plan mode (applies from the next step)."
    match outcome:
        case "committed":
            return "Plan mode off."
        case "queued":
            return leaving
        case "cancelled":
            return "Plan mode entry cancelled."
        case "noop":
            return leaving if PlanMode.get(call.agent).active else "Plan mode is already inactive."


def _on_text(outcome: SetOutcome, call: CommandCall, has_message: bool) -> str:
    selection = _selection(outcome, call)
    queued = has_message and call.agent.session.place.turn is not None
    return f"{selection} Your message goes with the next step." if queued else selection


def _selection(outcome: SetOutcome, call: CommandCall) -> str:
    match outcome:
        case "committed":
            return f"Plan mode on. {LEAVE}"
        case "queued":
            return f"Entering plan mode (applies from the next step). {LEAVE}"
        case "cancelled":
            return f"Plan mode stays on. {LEAVE}"
        case "noop" if PlanMode.get(call.agent).active:
            return f"Plan mode is already on. {LEAVE}"
        case "noop":
            return f"Entering plan mode (applies from the next step). {LEAVE}"
