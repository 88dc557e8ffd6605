"""IPython over a pseudo terminal, as a person has it; and the same with the extension and a model server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pexpect

from plan_mode_nb.testing.loopback import LoopbackServer, ServerStep

HERE = Path(__file__).resolve().parent
PROMPT = r"In \[\d+\]: $"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SECTION = "GUIDANCE: plan first."
WAIT_S = 30


class Terminal:
    """``first``: a cell that is run at once."""

    def __init__(self, home: Path, environment: Mapping[str, str] | None = None, first: str = "") -> None:
        settings = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "HOME": str(home),
            "IPYTHONDIR": str(home),
            "TERM": "dumb",
            **(environment or {}),
        }
        arguments = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor", "--no-confirm-exit"]
        self.child: Any = pexpect.spawn(sys.executable, arguments, env=settings, encoding="utf8", timeout=WAIT_S, echo=False)
        self.child.expect(PROMPT)
        if first:
            self.run(first)

    def run(self, code: str) -> str:
        """What the cell wrote."""
        self.child.sendline(code)
        return self.rest()

    def start(self, code: str, seen: str) -> str:
        """Send a cell and wait until it wrote ``seen``; what came before that."""
        self.child.sendline(code)
        return self.until(seen)

    def until(self, seen: str) -> str:
        """Wait until ``seen`` is written; what came before it."""
        self.child.expect_exact(seen)
        return self._clean()

    def rest(self) -> str:
        """What is written until the next prompt of IPython."""
        self.child.expect(PROMPT)
        return self._clean()

    def interrupt(self) -> tuple[str, float]:
        """Ctrl-C: what came until the next prompt, and after how many seconds."""
        pressed = time.monotonic()
        self.child.sendintr()
        return self.rest(), time.monotonic() - pressed

    def leave(self) -> None:
        """Leave IPython, in bounded time."""
        self.child.sendline("exit")
        self.child.expect(pexpect.EOF)

    def _clean(self) -> str:
        return ESCAPES.sub("", self.child.before).replace("\r\n", "\n")


class AgentTerminal:
    """A terminal with the extension, its model a loopback server, its folders its own. Use as a context manager."""

    def __init__(self, steps: Sequence[ServerStep] = (), *, settings: Mapping[str, Any] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="agent-terminal-"))
        self.log = self.home / "log.jsonl"
        self.server = LoopbackServer(steps).start()
        config = self.home / "config"
        config.mkdir()
        agent = {"model": "openai-chat:scripted", "log_file": str(self.log)} if settings is None else settings
        (config / "plan_mode_nb.json").write_text(json.dumps({"PlanMode": {"section": SECTION}, "PlanAgent": agent}))
        keys = {name: "" for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))}
        model = {"OPENAI_BASE_URL": self.server.url, "OPENAI_API_KEY": "none"} if "model" in agent else {}
        self.environment = {
            **keys,
            **model,
            "JUPYTER_CONFIG_PATH": str(config),
            "JUPYTER_CONFIG_DIR": str(self.home / "own"),
            "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"),
        }
        self.terminal = self.open()

    def open(self) -> Terminal:
        """One more terminal with the same settings, the extension loaded."""
        return Terminal(self.home, self.environment, "%load_ext plan_mode_nb")

    def begin(self, *steps: ServerStep) -> Terminal:
        """A new session with a model server of its own, in the same terminal."""
        self.server.close()
        self.server = LoopbackServer(steps).start()
        self.terminal.run(f"%env OPENAI_BASE_URL={self.server.url}")
        self.terminal.run("%session new")
        return self.terminal

    def said(self, request: int) -> list[dict[str, Any]]:
        """The messages of a request, without the system prompt."""
        return [message for message in self.server.requests[request].body["messages"] if message["role"] != "system"]

    def prompt(self, request: int) -> str:
        """The system prompt of a request, which may come in parts."""
        return "".join(message["content"] for message in self.server.requests[request].body["messages"] if message["role"] == "system")

    def close(self) -> None:
        """End everything."""
        self.terminal.child.close(force=True)
        self.server.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
