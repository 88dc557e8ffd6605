"""A real Jupyter server of its own: own folders, own configuration path, nothing of the person's."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plan_mode_nb.store.journal import FOLDER

CONFIG = Path(__file__).resolve().parents[3] / "jupyter-config"
TOKEN = "for-this-test"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(?P<port>\d+)/")


class Server:
    """``root``: the folder it serves; ``journals``: where kernels keep theirs. Use as a context manager."""

    def __init__(self, folder: Path, *, manager: str = "", environment: Mapping[str, str] | None = None) -> None:
        self.root, runtime = folder / "root", folder / "runtime"
        self.root.mkdir()
        self.journals = runtime / FOLDER
        self._lines: list[str] = []
        self._changed = threading.Condition()
        chosen = [f"--ServerApp.contents_manager_class={manager}"] if manager else []
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={self.root}", *chosen],
            env={
                **os.environ,
                "JUPYTER_CONFIG_PATH": str(CONFIG),
                "JUPYTER_CONFIG_DIR": str(folder / "config"),
                "JUPYTER_RUNTIME_DIR": str(runtime),
                "JUPYTER_TOKEN": TOKEN,
                "IPYTHONDIR": str(folder / "ipython"),
                **(environment or {}),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self._find()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)

    @property
    def log(self) -> list[str]:
        """What it logged about us so far."""
        with self._changed:
            return [line for line in self._lines if "plan_mode_nb:" in line]

    def logged(self, text: str, seconds: float = 10) -> str:
        """The first line that holds ``text``, once it is there."""
        with self._changed:
            there = self._changed.wait_for(lambda: any(text in line for line in self._lines), seconds)
            assert there, f"{text!r} was not logged: {''.join(self._lines[-20:])}"
            return next(line for line in self._lines if text in line)

    def save(self, path: str, notebook: Mapping[str, Any]) -> dict[str, Any]:
        """Save as a front end does."""
        return self.ask("PUT", f"contents/{path}", {"type": "notebook", "format": "json", "content": notebook})

    def metadata(self, path: str) -> dict[str, Any]:
        """The metadata in the file."""
        read: dict[str, Any] = json.loads((self.root / path).read_text())["metadata"]
        return read

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request of the REST interface."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}api/{path}", data, {"Authorization": f"token {TOKEN}"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    def _find(self) -> str:
        """Its address, once it listens there: it says where before it does."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(_ADDRESS.search, self._lines)), 60), "".join(self._lines)
            found = next(found for found in map(_ADDRESS.search, self._lines) if found)
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(found["port"])), 1).close()
                return found[0]
            except ConnectionRefusedError:
                assert time.monotonic() < end, "".join(self._lines)
                with self._changed:
                    self._changed.wait(0.02)  # its next line, or another attempt
