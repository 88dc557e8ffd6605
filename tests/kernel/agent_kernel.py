"""A kernel with the extension loaded, its model a loopback server, and every folder its own."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import nbformat

from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep

from .driver import WAIT_S, Cell, Kernel, Route

SECTION = "GUIDANCE: plan first."


class AgentKernel:
    """Use as a context manager. ``steps``: what the model answers, request by request."""

    def __init__(
        self,
        python: str,
        steps: Sequence[ServerStep] = (),
        *,
        route: Route = "main",
        config: dict[str, Any] | None = None,
        load: bool = True,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agent-kernel-"))
        self.server = LoopbackServer(steps).start()
        (self.folder / "config").mkdir()
        settings = {"PlanMode": {"section": SECTION}, "PlanAgent": {"model": "openai-chat:scripted"}} if config is None else config
        (self.folder / "config" / "plan_mode_nb.json").write_text(json.dumps(settings))
        self.notebook = self.folder / "notebook.ipynb"
        nbformat.write(nbformat.v4.new_notebook(), self.notebook)
        self._environment = {
            "PLAN_MODE_NB_NOTEBOOK": str(self.notebook),
            "JUPYTER_CONFIG_PATH": str(self.folder / "config"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "own"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "OPENAI_BASE_URL": self.server.url,
            "OPENAI_API_KEY": "none",
            **(environment or {}),
        }
        self._python, self._route = python, route
        self.kernel = self._start()
        self._cards_before = 0
        if load:
            self.kernel.must("%load_ext plan_mode_nb")

    def _start(self) -> Kernel:
        return Kernel(self._python, route=self._route, env=self._environment)

    def replace_kernel(self) -> None:
        """Another kernel in the same folders, as after a crash."""
        self.kernel.close()
        self.kernel = self._start()

    def run(self, code: str, timeout: float = WAIT_S) -> Cell:
        """Run a cell."""
        return self.kernel.run(code, timeout)

    def begin(self, *steps: ServerStep) -> Self:
        """A new session with a model server of its own, in the same kernel."""
        self.server.close()
        self.server = LoopbackServer(steps).start()
        self.kernel.must(f"%env OPENAI_BASE_URL={self.server.url}\n%session new")
        self._cards_before = self.cards()
        return self

    def cards(self) -> int:
        """How many cards that wait for a person there were."""
        return sum(state.get("kind") in ("review", "question", "approval") for state in self.kernel.comms.values())

    def next_card(self) -> None:
        """Wait until one more card than in the last call (or in `begin`) was there."""
        wanted = self._cards_before + 1
        self.kernel.until(lambda: self.cards() >= wanted, 30)
        self._cards_before = wanted

    def card(self, kind: str) -> str:
        """The youngest card of this kind, waited for; its comm id."""
        return self.kernel.comm(kind=kind)

    def act(self, kind: str, content: dict[str, Any]) -> str:
        """What a click on the youngest card of this kind sends."""
        return self.kernel.custom(self.card(kind), content)

    def answer(self, label: str, words: str | None = None) -> str:
        """Wait for the next plan review, and answer it."""
        self.next_card()
        given: dict[str, Any] = {"id": "plan-review", "selected": [label]}
        return self.act("review", {"kind": "answer", "answers": [given if words is None else {**given, "custom": words}]})

    def fold(self) -> dict[str, Any]:
        """What the live log amounts to, as ``fold --json`` has it."""
        code = (
            "import json as _j\n"
            "from plan_mode_nb.folds.summary import fold_summary as _f\n"
            "_h = get_ipython()._plan_mode_nb[0]\n"
            "_s = _h.agent().session\n"
            "print(_j.dumps(_h.on_agent(lambda: _f(_s.header, _s.events))))"
        )
        folded: dict[str, Any] = json.loads(self.kernel.must(code))
        return folded

    def types(self) -> list[str]:
        """The types of the live log's events, in order."""
        code = "_h = get_ipython()._plan_mode_nb[0]\nprint(*[e.type for e in _h.agent().session.events], sep='\\n')"
        return self.kernel.must(code).split()

    def close(self) -> None:
        """End everything."""
        self.kernel.close()
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
