"""Telling a story: a notebook's cells run in a real kernel against a loopback model server, with real card messages, and are saved.

with Teller("keep-planning-twice", answers) as tell:
    tell.text("# What this shows")
    tell.cell("%load_ext plan_mode_nb")
    tell.cell("%plan count the rows", lambda agent: agent.answer("Approve"))
    tell.save(folder)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import nbformat
from kernel.agent_kernel import AgentKernel
from kernel.driver import Cell
from msgspec import UNSET
from msgspec.structs import replace

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.outputs import without_events
from plan_mode_nb.log.events import Header
from plan_mode_nb.store.journal import FOLDER, journals
from plan_mode_nb.store.merging import merge_journals
from plan_mode_nb.store.notebook import save_document
from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep

FOLDER_OF_ADA = "/srv/notebooks"
"""Stands in saved stories for the scratch folder in which they were told."""
CONFIG = {"PlanAgent": {"model": "openai-chat:storyteller"}}
Act = Callable[["Running"], object]
CELL_S = 60.0


class Running:
    """A cell that runs, as the person at the cards sees it."""

    def __init__(self, agent: AgentKernel, message: str) -> None:
        self._agent = agent
        self._message = message
        self.kernel = agent.kernel

    def until_shown(self, text: str) -> None:
        """Wait until the cell shows this text."""
        self.kernel.until_shown(self._message, text, CELL_S)

    def review(self, label: str, words: str | None = None) -> None:
        """Wait for the next plan, and answer it."""
        self._agent.answer(label, words)

    def discuss(self) -> None:
        """Wait for the next plan, and put it aside."""
        self._agent.next_card()
        self._agent.act("review", {"kind": "dismiss"})

    def approval(self, label: str) -> None:
        """Wait for the next approval, and answer it."""
        self._agent.next_card()
        self._agent.act("approval", {"kind": "answer", "answers": [{"id": "approval", "selected": [label]}]})

    def act(self, card: str, **content: Any) -> None:
        """Use the youngest card of a kind."""
        self._agent.act(card, content)

    def approvals(self, label: str) -> None:
        """Answer an approval if one comes before the cell ends."""
        seen = self._agent._cards_before
        self.kernel.until(lambda: self._agent.cards() > seen or self.kernel.cell(self._message).status is not None, CELL_S)
        if self._agent.cards() > seen:
            self.approval(label)

    def wait_card(self) -> None:
        """Wait for the next card, and leave it."""
        self._agent.next_card()

    def control(self, **act: Any) -> None:
        """Use the controls. Words are in the kernel when this returns."""
        message = self._agent.act("controls", act)
        if act["kind"] == "steer":
            self.kernel.handled(message, CELL_S)

    def interrupt(self) -> None:
        """The kernel's stop button."""
        self.kernel.interrupt()

    def requests(self, count: int) -> None:
        """Wait until the model was asked that often in this story."""
        assert self._agent.server.wait_for_requests(count, CELL_S)


class Teller:
    """One story. ``files``: name -> bytes, beside the notebook (kept with it)."""

    def __init__(
        self,
        name: str,
        answers: Sequence[ServerStep],
        files: dict[str, bytes] | None = None,
        environment: dict[str, str] | None = None,
        subfolder: str = "",
    ) -> None:
        """``subfolder``: where in the scratch folder the notebook stands; names of ``files`` are relative to the scratch folder."""
        self.name = name
        self._subfolder = subfolder
        self._allow_stdin = True
        self._agent = AgentKernel(sys.executable, answers, config=CONFIG, load=False, environment=environment)
        self._notebook = nbformat.v4.new_notebook()
        self._notebook.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        self._notebook.metadata.language_info = {"name": "python"}
        self._images: dict[str, str] = {}
        for file, data in (files or {}).items():
            (self._agent.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (self._agent.folder / file).write_bytes(data)
        (self._agent.folder / subfolder).mkdir(exist_ok=True)
        self._enter_folder()

    def _enter_folder(self) -> None:
        self._agent.kernel.must(f"import os as _os; _os.chdir({str(self._agent.folder / self._subfolder)!r}); del _os")

    @property
    def server(self) -> LoopbackServer:
        """The model's server."""
        return self._agent.server

    def text(self, markdown: str) -> None:
        """A markdown cell."""
        self._notebook.cells.append(nbformat.v4.new_markdown_cell(markdown, id=self._id()))

    def cell(self, source: str, *acts: Act, tags: Sequence[str] = (), fails: str | None = None) -> Cell:
        """Run a code cell, with what the person does meanwhile. ``fails``: the error that it has to end in."""
        id = self._id()
        message = self._agent.kernel.send(source, allow_stdin=self._allow_stdin)
        running = Running(self._agent, message)
        for act in acts:
            act(running)
        ran = self._agent.kernel.wait(message, CELL_S)
        assert ran.ename == fails, (self.name, source, ran.ename, ran.evalue, ran.traceback)
        metadata = {"tags": list(tags)} if tags else {}
        outputs = [_saved(output) for output in ran.outputs]
        cell = nbformat.v4.new_code_cell(source, id=id, metadata=metadata, outputs=outputs, execution_count=ran.execution_count)
        self._notebook.cells.append(cell)
        return ran

    def headless(self) -> None:
        """Nobody is there from here on."""
        self._allow_stdin = False

    def again(self, source: str) -> None:
        """Run an earlier cell once more, as after a restart."""
        self._agent.kernel.must(source)

    def restart(self) -> None:
        """The person restarts the kernel."""
        self._agent.kernel.kill()
        self._enter_folder()

    def length(self) -> int:
        """How many events the main agent's session has."""
        return int(self._agent.kernel.must("print(len(get_ipython()._plan_mode_nb[0].agent().session))"))

    def note_images(self) -> None:
        """Keep the images that messages name, as a page would."""
        code = "import json as _j; print(_j.dumps(dict(get_ipython()._plan_mode_nb[0].images()))); del _j"
        self._images.update(json.loads(self._agent.kernel.must(code)))

    def save(self, folder: Path) -> Path:
        """Write the notebook with its sessions, as a page with the lab extension leaves it."""
        self._agent.kernel.close()
        found, problems = journals(self._agent.folder / "runtime" / FOLDER)
        assert not problems, problems
        path = folder / f"{self.name}.ipynb"
        placed = _placed(self._notebook, str(self._agent.folder))
        placed["cells"] = [without_events(cell) for cell in placed["cells"]]
        self._notebook = nbformat.from_dict(placed)
        nbformat.write(self._notebook, path)
        save_document(path, self._document(merge_journals(Document(), found)))
        return path

    def _document(self, told: Document) -> Document:
        there = str(self._agent.folder)
        sessions = {
            id: StoredSession(_placed_header(session.header, there), [line.replace(there, FOLDER_OF_ADA) for line in session.lines])
            for id, session in told.sessions.items()
        }
        return replace(told, sessions=sessions, attachments=self._images)

    def _id(self) -> str:
        return f"{self.name}-{len(self._notebook.cells):02d}"[-64:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._agent.close()


def _placed_header(header: Header, folder: str) -> Header:
    """The header as recorded in the folder that stands for all."""
    return header if header.cwd is UNSET else msgspec.structs.replace(header, cwd=header.cwd.replace(folder, FOLDER_OF_ADA))


def _placed(value: Any, folder: str) -> Any:
    return json.loads(json.dumps(value).replace(json.dumps(folder)[1:-1], FOLDER_OF_ADA))


def _saved(output: dict[str, Any]) -> dict[str, Any]:
    """An output as a front end saves it."""
    keys = {
        "stream": ("name", "text"),
        "error": ("ename", "evalue", "traceback"),
        "display_data": ("data", "metadata"),
        "execute_result": ("data", "metadata", "execution_count"),
    }[output["output_type"]]
    return {"output_type": output["output_type"], **{key: output[key] for key in keys}}


def is_wanted(name: str, wanted: Sequence[str]) -> bool:
    """Whether a story was asked for; all are when none is named."""
    return not wanted or name in wanted


def here() -> Path:
    """The folder of the stories."""
    return Path(os.path.dirname(os.path.abspath(__file__)))
