"""The front end of a kernel: a turn is the outputs of its cell, people answer cards, and the log goes by a journal into the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plan_mode_nb.document.document import Document
from plan_mode_nb.hosts.front_end import CellView, People
from plan_mode_nb.hosts.kernel import sources
from plan_mode_nb.hosts.kernel.journals import Journals, kernel_id
from plan_mode_nb.hosts.kernel.providers import CardProvider
from plan_mode_nb.log.session import Session, Sink
from plan_mode_nb.loop.agent import LoopAgent

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.carrier import Carrier
    from plan_mode_nb.hosts.kernel.display import TurnDisplay
    from plan_mode_nb.hosts.kernel.host import KernelHost


class CellFrontEnd:
    """Satisfies FrontEnd."""

    def __init__(self, host: KernelHost) -> None:
        self._host = host
        self._cards = CardProvider(host.shell)
        self._journals = Journals(host.shell)

    @property
    def people(self) -> People:
        """The cards."""
        return self._cards

    def display(self, agent: LoopAgent) -> TurnDisplay:
        """The outputs of the cell that runs; cards appear among them."""
        from plan_mode_nb.hosts.kernel.display import TurnDisplay

        display = TurnDisplay(self._host, agent)
        self._cards.surface = display
        return display

    def compacting(self, agent: LoopAgent) -> CellView:
        """One output of the cell."""
        from plan_mode_nb.hosts.kernel.compacting import CompactionDisplay

        return CompactionDisplay(agent, only_final=not self._host.led.carries)

    def turn_is_over(self) -> None:
        """No cell to put a card in."""
        self._cards.surface = None

    def found(self) -> Document:
        """The notebook file and the journals that belong to it. What an open page holds comes by the carrier."""
        from plan_mode_nb.store.journal import journal_folder

        return sources.from_disk(self.notebook, journal_folder(create=False), kernel_id(self._host.shell))

    def sink(self, name: str, session: Session) -> Sink:
        """The session's journal in this kernel."""
        agents, kept = self._host.agents, self._host.composition.seams.attachments
        return self._journals.make(
            name, session, agents.choices(name), lambda: {sha: data for sha, data in kept.items() if sha not in agents.images}
        )

    @property
    def notebook(self) -> Path | None:
        """Where it was when the kernel began, or where it was moved to since."""
        return self._journals.notebook

    def moved(self, before: str, now: str) -> None:
        """The journals record the new path, where both sides see one disk."""
        path = self.notebook
        if path is not None and path.as_posix().endswith(f"/{before}"):
            self._journals.moved(Path(path.as_posix().removesuffix(before) + now))

    def kept_in(self, session: Session) -> str:
        """Whatever takes the log into the notebook, and the journal."""
        where = [_in_notebook(self._host.carrier) if len(session) else "nothing yet: what is said first is kept"]
        path = getattr(session.sink, "path", None)
        if path is not None:
            where.append(f"the journal {path}")
        return " and ".join(where)

    def close(self) -> None:
        """Let the journals' files go."""
        self._journals.close()


def _in_notebook(carrier: Carrier | None) -> str:
    """What keeps the log of a turn in the notebook, in words: a page of ours, the client that runs the notebook, or the outputs."""
    page = carrier.page if carrier is not None else None
    if page is not None:
        return f"the metadata of {page.path}"
    if carrier is not None and carrier.runs_once:
        return "what this run saves (the metadata with plan-mode-nb run, the outputs of the cells with any other client)"
    return "the outputs of the cells that had turns (no page with the lab extension; plan-mode-nb collect moves it into the metadata)"
