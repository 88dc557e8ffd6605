"""deepseek-harness's log files, plain and in Zstandard frames, and the terminal's own log: a plain one that grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.log.dsh import Scan, header_row, scan_jsonl, write_jsonl
from plan_mode_nb.log.events import Header
from plan_mode_nb.store.files import Appender, read_bytes, replace
from plan_mode_nb.store.locks import is_locked, lock

ZSTD_SUFFIXES: Final = (".zstd", ".zst")
PLAIN_LIMIT: Final = 2**31
"""Bytes that a compressed log may unpack to: a file from a stranger must not fill the memory."""
_SLICE: Final = 4096
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def load_jsonl(path: Path) -> Scan:
    """Read a log file without changing it. Compressed or not is seen in its bytes.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is no session log, or damaged.
    """
    data = read_bytes(path)
    if not data.startswith(_MAGIC):
        return scan_jsonl(data)
    plain, torn = unframed(data)
    scan = scan_jsonl(plain)
    torn_problem = ["the last compressed part is cut off; the complete lines in it were kept"] if torn and not scan.problems else []
    return Scan(scan.header, scan.lines, scan.problems + torn_problem)


def save_jsonl(path: Path, header: Header, lines: Sequence[str]) -> None:
    """Write a log file that deepseek-harness reads: plain, or in frames when its name ends in ``.zstd``.

    Raises:
        StoreError: it cannot be written; what was there is as it was.
    """
    if path.suffix in ZSTD_SUFFIXES:
        replace(path, framed(write_jsonl(header, [])) + (framed(write_jsonl(header, lines).partition(b"\n")[2]) if lines else b""))
    else:
        replace(path, write_jsonl(header, lines))


def framed(data: bytes) -> bytes:
    """One checksummed Zstandard frame."""
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def unframed(data: bytes) -> tuple[bytes, bool]:
    """What concatenated frames hold, and whether the last one is cut off (then what could be unpacked of it is there).

    Raises:
        FormatError: a frame is damaged, or there is too much in it.
    """
    import zstandard

    plain, size, at = [], 0, 0
    frame = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    while at < len(data):
        piece = data[at : at + _SLICE]
        try:
            part = frame.decompress(piece)
        except zstandard.ZstdError as error:
            raise FormatError(f"the compressed log is damaged near byte {at} ({error}); restore it from a copy") from None
        plain.append(part)
        size += len(part)
        if size > PLAIN_LIMIT:
            raise FormatError(f"the compressed log holds more than {PLAIN_LIMIT // 2**30} GiB; unpack it yourself to read it")
        at += len(piece) - len(frame.unused_data)
        begun = not frame.eof
        if frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
    return b"".join(plain), begun


class LogFile:
    """The sink of a session that lives in a plain log file (the terminal's). Opening it reads nothing and writes nothing."""

    def __init__(self, path: Path, header: Header, lines: Sequence[str]) -> None:
        """``lines``: the session's list, which grows after each write (``Session.lines``)."""
        self._path, self._header, self._lines = path.resolve(), header, lines
        self._appender: Appender | None = None

    def write(self, lines: Sequence[str]) -> None:
        """Append these lines, all or none. The first write puts the file in order: header, what the session holds, then these.

        Raises:
            StoreError: they could not be kept, or another process writes this file.
        """
        if self._appender is not None:
            self._appender.write(lines)
            return
        if is_locked(self._path):
            raise StoreError(f"another process writes {self._path}; choose another PlanAgent.log_file")
        self._require_ours()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace(self._path, "".join(f"{line}\n" for line in (header_row(self._header), *self._lines, *lines)).encode(), mode=0o600)
        self._appender = Appender(self._path)
        lock(self._appender.fileno())

    def _require_ours(self) -> None:
        """What the file holds is to be replaced by this session's log, so it must hold nothing else, nor more of it."""
        if not self._path.exists() or not self._path.stat().st_size:
            return
        try:
            held = load_jsonl(self._path)
        except FormatError as error:
            raise StoreError(f"{self._path} is not written over ({error}); choose another PlanAgent.log_file") from None
        if held.header.id != self._header.id or held.lines != list(self._lines[: len(held.lines)]):
            raise StoreError(
                f"{self._path} was changed by another process since it was read; load the extension again to go on from what it holds"
            )

    def close(self) -> None:
        """Let the file go."""
        if self._appender is not None:
            self._appender.close()
            self._appender = None
