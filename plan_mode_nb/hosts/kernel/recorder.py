"""The ordered record of one run of user code: text, displays, the last expression's value, the error."""

from __future__ import annotations

import re
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, final

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Display", "Item", "Recorder", "Recording", "Status", "Text", "neutral_text", "neutral_traceback", "plain_text"]

Status = Literal["running", "ok", "error", "interrupted"]
StreamName = Literal["stdout", "stderr"]

KEEP_CHARS: Final = 4_000_000
_WIDGET: Final = ("application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json")
_ANSI: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_PROMPT: Final = re.compile(r"\b(?:Cell |Input )?In ?\[\d+\]")
# Patterns begin with what is rare: output may be one line of megabytes.
_CELL_FILE: Final = re.compile(re.escape(tempfile.gettempdir()) + r"[/\\]ipykernel_\d+[/\\]\d+\.py|<ipython-input-\d+-[0-9a-f]+>")


def plain_text(text: str) -> str:
    """As a terminal would leave it: colours dropped, and the part of a line that ``\\r`` overwrote."""
    text = _ANSI.sub("", text)
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def neutral_text(text: str) -> str:
    """`plain_text`, with the names that IPython gives a cell's file (they hold a process id) replaced by ``<cell>``."""
    return _CELL_FILE.sub("<cell>", plain_text(text))


def neutral_traceback(text: str) -> str:
    """`neutral_text`, with execution counts replaced as well: ``Cell In[N], line 1``."""
    return _PROMPT.sub("Cell In[N]", neutral_text(text))


@final
class Text(Struct, frozen=True):
    """Consecutive writes to one stream, as written (escapes and ``\\r`` included)."""

    stream: StreamName
    text: str


@final
class Display(Struct, frozen=True):
    """One display, in its last state. ``data`` maps mime to a JSON value (images as base64), never a live widget's."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any]
    display_id: str | None = None
    result: bool = False  # the value of the last expression, rather than a call of display()

    @property
    def rich(self) -> bool:
        """True when there is more to see than text."""
        return any(mime != "text/plain" for mime in self.data)


Item = Text | Display


@final
class Recording(Struct, frozen=True):
    """What one run of user code did, in order. ``error`` is a neutral traceback, None unless ``status`` is error or interrupted."""

    status: Status
    items: tuple[Item, ...] = ()
    error: str | None = None
    error_name: str | None = None

    @property
    def text(self) -> str:
        """What a model reads: streams and plain text of displays in order, then the error. No escapes, no process ids."""
        parts: list[str] = []
        for item in self.items:
            text = item.text if isinstance(item, Text) else str(item.data.get("text/plain", "")) + "\n"
            if parts and isinstance(item, Display) and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(neutral_text(text))
        if self.error is not None:
            if parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(self.error)
        return "".join(parts)

    @property
    def displays(self) -> tuple[Display, ...]:
        """Figures, tables and the like, in order: what a person should see beside the text."""
        return tuple(item for item in self.items if isinstance(item, Display) and item.rich)


class _Run:
    """Consecutive writes to one stream, bounded: of very long output the middle is dropped, and says so."""

    def __init__(self, stream: StreamName, sealed: bool = False) -> None:
        self.stream: Final = stream
        self.sealed: Final = sealed
        self._chunks: list[str] = []
        self._size = 0
        self._dropped = 0

    def write(self, text: str) -> None:
        """Add text; what is dropped for it is counted."""
        self._chunks.append(text)
        self._size += len(text)
        if self._size > 2 * KEEP_CHARS:
            head, tail = self._ends()
            self._chunks, self._size = [head, tail], KEEP_CHARS

    def _ends(self) -> tuple[str, str]:
        whole = "".join(self._chunks)
        # The head never changes once it is full, so what was dropped is always the text right behind it.
        half = KEEP_CHARS // 2
        self._dropped += len(whole) - KEEP_CHARS
        return whole[:half], whole[-half:]

    def item(self) -> Text:
        """All of it as one text, with a line where the middle was dropped."""
        whole = "".join(self._chunks)
        if self._dropped:
            half = KEEP_CHARS // 2
            whole = f"{whole[:half]}\n[{self._dropped} characters left out]\n{whole[half:]}"
        self._chunks = [whole] if not self._dropped else self._chunks
        return Text(self.stream, whole)


@final
class Recorder:
    """Collects while user code runs. Writes may come from any thread.

    ``changed()`` is called after each change, on the thread that made it.
    """

    def __init__(self) -> None:
        self._items: list[_Run | Display] = []
        self._tracebacks: list[tuple[int, str, str]] = []
        self._fetch: Callable[[], None] = lambda: None
        self.changed: Callable[[], None] = lambda: None
        self._clear_next = False
        self._muted: set[StreamName] = set()
        self._lock = threading.RLock()
        self.closed = False

    def follow(self, fetch: Callable[[], None] | None) -> None:
        """Have ``fetch()`` `append` what came by other ways, ahead of each change; None fetches once more and ends that."""
        with self._lock:
            self._fetch()
            self._fetch = fetch or (lambda: None)

    def write(self, stream: StreamName, text: str) -> None:
        """Text that code wrote to ``stream``."""
        with self._lock:
            self._fetch()
            self.append(stream, text)
        self.changed()

    def append(self, stream: StreamName, text: str) -> None:
        """`write`, without fetching what is ahead of it and without telling. For `follow` alone."""
        if not text or stream in self._muted:
            return
        self._clear_if_due()
        last = self._items[-1] if self._items else None
        if not isinstance(last, _Run) or last.stream != stream or last.sealed:
            last = _Run(stream)
            self._items.append(last)
        last.write(text)

    def display(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any],
        *,
        display_id: str | None = None,
        update: bool = False,
        result: bool = False,
    ) -> bool:
        """One display, or an update of earlier ones. False when an update names a display that is not in this record."""
        shown = Display(_plain_data(data), dict(metadata), display_id, result)
        with self._lock:
            self._fetch()
            if update:
                places = [i for i, item in enumerate(self._items) if isinstance(item, Display) and item.display_id == display_id]
                for i in places:
                    item = self._items[i]
                    assert isinstance(item, Display)
                    self._items[i] = replace(item, data=shown.data, metadata=shown.metadata)
                if not places:
                    return False
            elif shown.data:
                self._clear_if_due()
                self._items.append(shown)
        self.changed()
        return True

    def clear(self, wait: bool = False) -> None:
        """What ``clear_output`` does: forget all so far, or (``wait``) once there is something new."""
        with self._lock:
            self._fetch()
            self._clear_next = wait
            if not wait:
                self._drop_all()
        self.changed()

    def traceback(self, name: str, text: str) -> None:
        """A traceback that IPython showed. The last one of a run that failed is its error; any other is text."""
        with self._lock:
            self._fetch()
            self._clear_if_due()
            run = _Run("stderr", sealed=True)
            run.write(text if text.endswith("\n") else text + "\n")
            self._items.append(run)
            self._tracebacks.append((len(self._items) - 1, name, text))

    def mute(self, stream: StreamName) -> None:
        """Ignore what is still written to ``stream``."""
        self._muted.add(stream)

    def snapshot(self, status: Status = "running", error: BaseException | None = None, hint: str = "") -> Recording:
        """The record so far. ``error`` is what ended the run, if anything did; ``hint`` is put behind its traceback."""
        with self._lock:
            self._fetch()
            items = list(self._items)
            if error is None:
                return Recording(status, _frozen(items))
            name, text = type(error).__name__, f"{type(error).__name__}: {error}".removesuffix(": ")
            if self._tracebacks:
                place, name, text = self._tracebacks[-1]
                del items[place]
            return Recording(status, _frozen(items), neutral_traceback(text) + hint, name)

    def _clear_if_due(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self._drop_all()

    def _drop_all(self) -> None:
        self._items.clear()
        self._tracebacks.clear()


def _frozen(items: list[_Run | Display]) -> tuple[Item, ...]:
    return tuple(item.item() if isinstance(item, _Run) else item for item in items)


def _plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Images as base64 text; without a widget's mime, which is dead in a saved notebook."""
    plain = {mime: value for mime, value in data.items() if mime not in _WIDGET}
    for mime, value in plain.items():
        if isinstance(value, bytes):
            plain[mime] = b64encode(value).decode("ascii")
            with suppress(UnicodeDecodeError):
                if mime == "image/svg+xml" or mime.startswith("text/"):
                    plain[mime] = value.decode("utf-8")
    return plain
