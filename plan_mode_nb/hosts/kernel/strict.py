"""Strict replay: a kernel whose agents only do again what the notebook recorded. Switched on by the environment, never by a notebook.

``PLAN_MODE_NB_REPLAY`` is ``strict``, or ``headers`` where the package's guidance and tool descriptions may differ;
``PLAN_MODE_NB_NOTEBOOK`` names the file. Nothing is restored, sent to a page or kept in a journal, and nobody is asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plan_mode_nb.agent.approval import NobodyToApprove
from plan_mode_nb.agent.questions import NobodyToAsk
from plan_mode_nb.agent.seams import random_id
from plan_mode_nb.document.document import decoded_images
from plan_mode_nb.exceptions import ConfigError, ReplayError
from plan_mode_nb.hosts.front_end import People, TurnDisplay
from plan_mode_nb.hosts.kernel import sources
from plan_mode_nb.hosts.kernel.led import AlongARecording, Kind, button, tell_asked_before
from plan_mode_nb.hosts.kernel.refusals import one_line
from plan_mode_nb.hosts.kernel.replayed_display import ReplayedDisplay, figures_of
from plan_mode_nb.log.events import SessionId
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.replay.environment import MODE, REPORT, SANITIZE, TOOLS, Mode, sanitize_patterns
from plan_mode_nb.replay.matching import Matching, match
from plan_mode_nb.replay.replay import Replay, Rules
from plan_mode_nb.replay.report import drift_line, note_line

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

REPLAYS: Final[tuple[Mode, ...]] = ("strict", "headers")


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for a strict replay."""
    return environ.get(MODE) in REPLAYS


class Strict(AlongARecording):
    """Satisfies Led."""

    carries = False
    is_replaying = False
    turns_left = 0

    def __init__(self, host: KernelHost) -> None:
        """Read the notebook and match its cells.

        Raises:
            ConfigError, StoreError, FormatError, ReplayError: it cannot be replayed; nothing was run.
        """
        self._host = host
        path = sources.notebook_path(host.shell)
        if path is None:
            raise ConfigError(f"{MODE} asks for a replay, but {sources.NOTEBOOK_VARIABLE} names no notebook; give its path there")
        self._notebook, matching = read(path)
        problem = matching.problem(path.name)
        if problem:
            raise ReplayError(problem)
        self._images = decoded_images(matching.attachments)
        rules = Rules(
            folder=os.getcwd(),
            sanitize=sanitize_patterns(os.environ.get(SANITIZE)),
            accepts_drift=os.environ.get(MODE) == "headers",
            runs_all=os.environ.get(TOOLS) == "all",
        )
        self.replay = Replay(matching, rules, stop=button(host.shell))
        self._people = self.replay.people(lambda: (NobodyToAsk(), NobodyToApprove()))
        self._installed = False
        self._reported = 0
        self._drifted: set[tuple[str, int]] = set()

    @property
    def people(self) -> People:
        """The recorded ones."""
        return self._people

    def session_id(self, name: str) -> SessionId:
        """The recorded session's."""
        return self.replay.born(name) or SessionId(random_id())

    def sink(self, name: str, session: Session) -> None:
        """In memory only."""

    def display(self, agent: LoopAgent) -> TurnDisplay:
        """The final outputs, at once."""
        course = self.replay.of(agent.session)
        part = None if course is None else course.part
        cell = self.replay.cell
        is_run = part is None or part.ended_well
        saved = [] if is_run or cell is None else figures_of(self._notebook["cells"][cell.number - 1]["outputs"])
        return ReplayedDisplay(self._host, agent, saved)

    def perform(self, name: str, act: Callable[[LoopAgent], Any]) -> Any:
        """By the agent of that name, once the replay stands in for model, person and tools."""
        if not self._installed:
            self._installed = True
            self._host.on_agent(self._install)
        return act(self._host.agent(name))

    def _install(self) -> None:
        """On the agent thread."""
        seams = self._host.composition.seams
        seams.attachments.update(self._images)  # what a played result shows is not made again
        self.replay.install(seams)

    def ready(self, agent: LoopAgent, kind: Kind) -> LoopAgent:
        """Lead the agent to the next recorded part.

        Raises:
            ReplayError: this cell is not the next, or what stands before its part differs.
        """
        try:
            led: Any = self._host.on_agent(
                lambda: self.replay.lead(agent, self._host.cell.reference["source"], kind, lambda old: self._host.agents.reopen(old.name))
            )
        except ReplayError as error:
            raise one_line(error) from None
        tell_asked_before(self._host, led, kind)
        return led  # type: ignore[no-any-return]

    def done(self, agent: LoopAgent) -> None:
        """Compare to the end of the part, and report.

        Raises:
            ReplayError: it was not as recorded.
        """
        self._report()
        try:
            self.replay.arrive(agent)
        except ReplayError as error:
            raise one_line(error) from None

    async def wait(self, seconds: float) -> None:
        """Not at all: no server has to recover."""

    def close(self) -> None:
        """Follow nothing any more."""
        self.replay.close()

    def _report(self) -> None:
        path = os.environ.get(REPORT)
        if not path:
            return
        lines = [note_line(note) for note in self.replay.notes[self._reported :]]
        self._reported = len(self.replay.notes)
        for id, course in {**self.replay.courses, **self.replay.children.courses}.items():
            for seq, header in course.drifted.items():
                if (id, seq) not in self._drifted:
                    self._drifted.add((id, seq))
                    lines.append(drift_line(id, seq, header))
        with open(path, "a", encoding="utf-8") as report:
            report.writelines(f"{line}\n" for line in lines)


def read(path: Path) -> tuple[Mapping[str, Any], Matching]:
    """A notebook's JSON, and its cells matched with what its sessions recorded.

    Raises:
        StoreError, FormatError: it cannot be read.
    """
    from plan_mode_nb.store.notebook import read_notebook

    notebook = read_notebook(path)
    return notebook, match(notebook)
