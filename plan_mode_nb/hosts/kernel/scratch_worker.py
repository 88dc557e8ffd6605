"""The scratch process: code runs here as in a notebook's cell, in a namespace of its own.

It is started by the ``python`` tool, usually confined. On standard input come lines of JSON: first ``{"path", "pythonpath", "fonts"}``
(what the notebook's own process has, and where matplotlib's list of fonts may lie), then ``{"op": "run", "run", "code", "copies": [[name,
size], …]}`` with the copies' bytes behind it, or ``{"op": "interrupt"}``; the end of input ends the process. On standard output go
``{"ready": true}`` and one answer a run: ``{"run", "status", "text", "images": [[media type, base64], …], "unsent": number of images}``, or
``{"run", "refused": {name: why}}`` when a copy could not be opened and nothing ran. Text and images only: the other side must have nothing
to load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import queue
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from plan_mode_nb.hosts.kernel.interrupts import InterruptGate, interrupt_main_thread

_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_INLINE: Final = "module://matplotlib_inline.backend_inline"
_TEXT: Final = 4_000_000
"""Characters of an answer's text; in JSON each is at most twelve bytes."""
_IMAGE_TEXT: Final = 12_000_000
"""Characters of base64 in one answer."""
_LEAST_MEMORY: Final = 1 << 30
_ENVIRONMENT: Final = "PYTHONPATH"
"""Says where this module is; the code's own programs get what the notebook's have (``pythonpath`` of the first line)."""


@final
class _Alone:
    """Satisfies UserCodeHost without a turn around it: an interrupt lands in the code, and nowhere else."""

    def __init__(self) -> None:
        self.interrupted = False
        self._gate = InterruptGate(self._note)
        self._process = os.getpid()
        self.awaiting: Callable[[asyncio.Task[Any]], AbstractContextManager[None]] = self._gate.awaiting

    def installed(self) -> AbstractContextManager[None]:
        """Own SIGINT."""
        return self._gate.installed()

    @contextlib.contextmanager
    def user_code(self) -> Iterator[None]:
        """Around the code alone. A child that it forked and that comes back here has done what it had to do."""
        self._gate.reinstall()
        try:
            with self._gate.raising():
                yield
        finally:
            if os.getpid() != self._process:
                os._exit(0)

    def pump_once(self) -> None:
        """Nothing else waits here; but SIGINT stays ours while the code awaits."""
        self._gate.reinstall()

    def _note(self) -> None:
        self.interrupted = True


def _read(requests: BinaryIO, taken: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]]) -> None:
    """On a thread of its own: hand over what is to be run, and signal an interrupt to the main thread."""
    for line in iter(requests.readline, b""):
        request = json.loads(line)
        if request["op"] == "interrupt":
            interrupt_main_thread()
        else:
            taken.put((request, [requests.read(size) for _, size in request.get("copies", ())]))
    os._exit(0)


def _shell() -> Any:
    """An IPython of this process, with no history, no profile and no startup files of the person's."""
    folder = tempfile.mkdtemp(prefix="scratch-")
    os.environ["IPYTHONDIR"] = folder
    os.environ["MPLBACKEND"] = _INLINE
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # There is no window here, and no shell to leave.
    named: dict[str, Any] = {"enable_gui": lambda *_: None, "ask_exit": lambda *_: None}
    kind: Any = type("ScratchShell", (InteractiveShell,), named)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    try:
        return kind.instance(config=config)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _let_matplotlib_write(fonts: str) -> None:
    """A folder for it where its own is read-only, with the list of fonts that it has found already: finding them takes seconds."""
    own = os.environ.get("MPLCONFIGDIR") or os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "matplotlib")
    if os.access(own, os.W_OK):
        return
    folder = os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="matplotlib-")
    for place in (fonts, own):
        for found in Path(place).glob("fontlist-*.json"):
            shutil.copy(found, folder)
    if os.path.isfile(settings := os.path.join(own, "matplotlibrc")):
        os.environ.setdefault("MATPLOTLIBRC", settings)


def _bound_memory() -> None:
    """Half of the machine's memory for each process here: more is a MemoryError in the code, not the end of the notebook's kernel."""
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        half = max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, _LEAST_MEMORY)
        resource.setrlimit(resource.RLIMIT_DATA, (half, half))


def _opened(request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], dict[str, str]]:
    """The copies as values, and why those that could not be opened were not."""
    values, refused = {}, {}
    for (name, _), blob in zip(request["copies"], blobs, strict=True):
        try:
            values[name] = pickle.loads(blob)
        except Exception as error:  # noqa: BLE001 -- an object that cannot live here may raise anything
            refused[name] = f"could not be opened in the scratch process: {type(error).__name__}: {error}"[:300]
    return values, refused


def _answer(shell: Any, host: _Alone, request: dict[str, Any], blobs: list[bytes]) -> dict[str, Any]:
    from plan_mode_nb.hosts.kernel.user_code import run_user_code

    values, refused = _opened(request, blobs)
    if refused:
        return {"refused": refused}
    shell.user_ns.update(values)
    host.interrupted = False
    recording = run_user_code(shell, host, request["code"])
    shown = [image for display in recording.displays if (image := _image(display.data)) is not None]
    sent = list(_sent(shown))
    return {"status": recording.status, "text": _bounded(recording.text), "images": sent, "unsent": len(shown) - len(sent)}


def _bounded(text: str) -> str:
    """Head and tail of what nobody reads whole: the other side takes only so much."""
    if len(text) <= _TEXT:
        return text
    return f"{text[: _TEXT // 2]}\n[{len(text) - _TEXT:,} characters left out]\n{text[-_TEXT // 2 :]}"


def _image(data: Mapping[str, Any]) -> list[str] | None:
    """What is shown as an image: its media type and its base64."""
    return next(([mime, data[mime]] for mime in _IMAGES if mime in data), None)


def _sent(images: Sequence[list[str]]) -> Iterator[list[str]]:
    """As many as the other side takes."""
    room = _IMAGE_TEXT
    for image in images:
        if len(image[1]) <= room:
            room -= len(image[1])
            yield image


def main() -> None:
    """Answer until the input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    first = json.loads(requests.readline())
    _bound_memory()
    _let_matplotlib_write(first["fonts"])
    shell, host = _shell(), _Alone()
    sys.path[:] = first["path"]
    os.environ.pop(_ENVIRONMENT, None)
    os.environ.update({_ENVIRONMENT: first["pythonpath"]} if first["pythonpath"] else {})

    def say(line: dict[str, Any]) -> None:
        answers.write(json.dumps(line).encode() + b"\n")
        answers.flush()

    taken: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]] = queue.SimpleQueue()
    with host.installed():
        say({"ready": True})
        threading.Thread(target=_read, args=(requests, taken), daemon=True).start()
        while True:
            request, blobs = taken.get()
            say({"run": request["run"], **_answer(shell, host, request, blobs)})


if __name__ == "__main__":
    main()
