"""What one kind of shell adds to the host: how a turn is seen, who answers, and where the log is kept.

A kernel's people see cells and cards, a terminal's see text and prompts. Hosts never import each other, so what they meet in is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from plan_mode_nb.agent.approval import ApprovalProvider
from plan_mode_nb.agent.questions import QuestionProvider
from plan_mode_nb.document.document import Document
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent

TurnEnd = Literal["completed", "interrupted", "failed"]


class RunningTurn(Protocol):
    """A turn as its display and its prompts know it."""

    async def on_main(self, fn: Callable[..., Any], *args: Any) -> Any:
        """From the agent thread: have the main thread call ``fn(*args)``, and give back what it returned or raised."""

    def user_code(self) -> AbstractContextManager[None]:
        """On the main thread: Ctrl-C raises in here."""

    def mark_dirty(self) -> None:
        """Something to show has changed: `CellView.flush` is called soon. Any thread."""

    def request_stop(self) -> None:
        """Stop the turn. Any thread."""


class CellView(Protocol):
    """What shows a turn. Every call comes on the main thread."""

    def open(self, turn: RunningTurn) -> None:
        """Before the body starts."""

    def flush(self) -> None:
        """Repaint. Called when `RunningTurn.mark_dirty` was, at most ten times a second, and once more before `close`."""

    def close(self, reason: TurnEnd) -> None:
        """Once, whatever happened: leave static outputs. Comm messages still flow."""


class Shown(Protocol):
    """One display of user code: mime -> value."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Every form of it."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What goes with them."""


class Recorded(Protocol):
    """What user code did so far."""

    @property
    def status(self) -> Literal["running", "ok", "error", "interrupted"]:
        """Whether it has ended, and how."""

    @property
    def text(self) -> str:
        """Streams and displays as text, in order, then the error."""

    @property
    def displays(self) -> Sequence[Shown]:
        """What it displayed that is more than text, in order."""


class TurnDisplay(CellView, Protocol):
    """A `CellView` that also follows the agent's Python and plan mode."""

    def on_recording(self, call_id: str, recording: Recorded | None) -> None:
        """Code of a call is about to run (None), runs, or has ended. While it runs the call may come on a thread of its own."""

    def show_plan(self, state: PlanState) -> None:
        """Plan mode changed."""


class People(QuestionProvider, ApprovalProvider, Protocol):
    """Whoever answers reviews, questions and approvals here."""


class FrontEnd(Protocol):
    """One per loaded extension."""

    @property
    def people(self) -> People:
        """Who answers."""

    def display(self, agent: LoopAgent) -> TurnDisplay:
        """What shows the next turn of an agent, on the main thread."""

    def compacting(self, agent: LoopAgent) -> CellView:
        """What shows that an agent's conversation is being compacted, on the main thread."""

    def turn_is_over(self) -> None:
        """The display of the last turn is closed; nobody can be asked until the next."""

    def found(self) -> Document:
        """What is kept of the conversation where this shell keeps it. Read before the first use; nothing in it is run."""

    def sink(self, name: str, session: Session) -> Sink | None:
        """Where the new lines of an agent's session go before they count; on the agent thread. None: in memory only."""

    @property
    def notebook(self) -> Path | None:
        """The notebook's file as far as it is known; None in a shell without one."""

    def moved(self, before: str, now: str) -> None:
        """The notebook was renamed; both paths as the server has them."""

    def kept_in(self, session: Session) -> str:
        """Where that is, in words for a person."""

    def close(self) -> None:
        """Let go; the log stays where it is."""
