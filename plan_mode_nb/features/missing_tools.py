"""Telling the model, once, that tools it called before do not exist here: a session that began in another place, or lost a plugin.

Which tools it believes in is a fold: those it called that the requests offered. A header that offers fewer settles the matter, so the
notice, which stands in the same step ahead of that header, is never repeated.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from plan_mode_nb.agent.prestep import CallNext, Decision, Enter, Reject, Step
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.log.events import Event
from plan_mode_nb.log.messages import notice_source, user_message

PLUGIN: Final = "missing-tools"


class _Tools(Struct):
    """``offered``: by the last header; None where it does not say. ``called``: in order, those that the model may call again."""

    offered: frozenset[str] | None = frozenset()
    called: dict[str, None] = field(default_factory=dict)


class CalledToolsFold:
    """Events -> the tools that the model called and was offered, in order of their first call."""

    types: Final = frozenset({"assistant/message", "request/header"})

    def start(self) -> _Tools:
        """Nothing was offered."""
        return _Tools()

    def step(self, state: _Tools, event: Event) -> _Tools:
        """The state after one more event. A name that was called and never offered was the model's mistake, and it was told so."""
        offered = state.offered
        if event.type == "request/header":
            state.offered = offered = _names(event.data["header"].get("tools", []))
            if offered is not None:
                state.called = {name: None for name in state.called if name in offered}
            return state
        for block in event.data["message"]["content"]:
            if block["type"] == "tool-call" and (offered is None or block["name"] in offered):
                state.called.setdefault(block["name"])
        return state

    def value(self, state: _Tools) -> tuple[str, ...]:
        """The names."""
        return tuple(state.called)


CALLED_TOOLS: Final = CalledToolsFold()


def notice(names: tuple[str, ...]) -> str:
    """What the model is told."""
    return (
        f"Tools that were called earlier in this conversation and do not exist here: {', '.join(names)}. Use the tools that you have now."
    )


def install(seams: Seams) -> Undo:
    """Add the pre-step that tells; returns the undo."""

    async def pre_step(step: Step, call_next: CallNext) -> Decision:
        decision = await call_next(step)
        match decision:
            case Reject():
                return decision
            case Enter(messages):
                missing = tuple(name for name in step.agent.session.fold(CALLED_TOOLS) if seams.tools.get(name) is None)
                if not missing or not step.runs(messages):
                    return decision
                text = notice(missing)
                return Enter((user_message(text, id=seams.new_id(), source=notice_source(PLUGIN, text)), *messages))

    return seams.pre_step.register(pre_step)


def _names(tools: Any) -> frozenset[str] | None:
    """The names in a header's list of tools; None for a list in a form that another writer had."""
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools):
        return None
    return frozenset(tool["name"] for tool in tools)
