"""Catching what user code writes: Python's streams, and the process's own file descriptors."""

from __future__ import annotations

import codecs
import ctypes
import inspect
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import IO, Any, Final, Self, final

from plan_mode_nb.hosts.kernel.painter import Painter
from plan_mode_nb.hosts.kernel.recorder import Recorder, StreamName

__all__ = ["FileDescriptors", "RecordedStream", "replaced"]

_STREAMS: Final[tuple[tuple[StreamName, int], ...]] = (("stdout", 1), ("stderr", 2))


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is ``value`` in here, whatever is assigned to it meanwhile; afterwards it is what it was."""
    before = getattr(owner, name)
    is_method = name not in vars(owner) and inspect.isfunction(getattr(type(owner), name, None))
    setattr(owner, name, value)
    try:
        yield
    finally:
        if is_method:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@final
class RecordedStream(io.TextIOBase):
    """Stands for ``sys.stdout`` or ``sys.stderr`` while user code runs.

    What ``painter`` writes goes to ``real``. Whoever kept this stream beyond the run (a logging handler does) writes to
    whatever the stream is by then.
    """

    def __init__(self, recorder: Recorder, name: StreamName, painter: Painter, real: Callable[[str], object]) -> None:
        self._recorder = recorder
        self._stream: Final[StreamName] = name
        self._process = os.getpid()
        self._painter = painter
        self._real = real

    @property
    def name(self) -> str:
        """As Python names its own."""
        return f"<{self._stream}>"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What bytes written to :attr:`buffer` are read as."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """Bytes that are no text show as a replacement character."""
        return "replace"

    @property
    def buffer(self) -> _Bytes:
        """For code that writes bytes."""
        return _Bytes(self)

    def write(self, text: str) -> int:
        """Record ``text``; returns its length. Raises TypeError for anything but text, as every text stream."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != self._process:  # a forked child: its memory is its own, the descriptor is not
            os.write(self.fileno(), text.encode("utf-8", "replace"))
            return len(text)
        if self._painter.is_current():
            self._real(text)
            return len(text)
        if not self._recorder.closed:
            self._recorder.write(self._stream, text)
            return len(text)
        now = getattr(sys, self._stream)
        return len(text) if now is self or now is None else int(now.write(text) or 0)

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Never: no colours, no progress bars that go back."""
        return False

    def fileno(self) -> int:
        """The descriptor of the stream it stands for: redirected as well, so that a subprocess given this stream is recorded."""
        return 1 if self._stream == "stdout" else 2


@final
class _Bytes(io.RawIOBase):
    """``sys.stdout.buffer``."""

    def __init__(self, stream: RecordedStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Record bytes as text; returns how many."""
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


@final
class FileDescriptors:
    """File descriptors 0, 1 and 2 while user code runs: nothing to read, and two files to write to.

    ``os.system``, subprocesses and C code write there, past Python's streams. The recorder takes what they wrote so far
    before it takes what Python writes next.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._saved: dict[int, int] = {}
        self._files: dict[StreamName, tuple[IO[bytes], Any]] = {}
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        _flush_c()
        with self._undo as undo:
            for name, fd in _STREAMS:
                target, path = tempfile.mkstemp(prefix="plan-mode-nb-")
                undo.callback(os.unlink, path)
                undo.callback(os.close, target)
                # A reader with a position of its own: the writers share theirs.
                reader = undo.enter_context(open(path, "rb", buffering=0))
                self._files[name] = (reader, codecs.getincrementaldecoder("utf-8")("replace"))
                self._redirect(fd, target, undo)
            nothing = os.open(os.devnull, os.O_RDONLY)
            undo.callback(os.close, nothing)
            self._redirect(0, nothing, undo)
            self._undo = undo.pop_all()
        self._recorder.follow(self._drain)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _flush_c()
        self._recorder.follow(None)
        self._undo.close()

    def _drain(self) -> None:
        """Move what was written so far to the recorder; it calls this, under its lock."""
        for name, (reader, decoder) in self._files.items():
            if data := reader.read():
                self._recorder.append(name, decoder.decode(data))

    def write_through(self, name: StreamName, text: str) -> None:
        """Write to where the descriptor led before, as the host itself does in a terminal."""
        fd = self._saved.get(1 if name == "stdout" else 2)
        data = text.encode("utf-8", "replace")
        while fd is not None and data:
            data = data[os.write(fd, data) :]

    def _redirect(self, fd: int, target: int, undo: ExitStack) -> None:
        try:
            saved = os.dup(fd)
        except OSError:  # a process without this descriptor has nothing to record there
            return
        undo.callback(self._restore, fd, saved)
        os.dup2(target, fd)
        self._saved[fd] = saved

    def _restore(self, fd: int, saved: int) -> None:
        self._saved.pop(fd, None)
        os.dup2(saved, fd)
        os.close(saved)


def _flush_c() -> None:
    """What C code printed so far may sit in C's own buffers."""
    if os.name == "posix":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)
