"""The process that changes one file, so that the limits of a session hold for it as for any other program: a script of its own.

One JSON request on standard input: ``{"act": "write", "path", "content"}`` or ``{"act": "edit", "path", "old", "new", "all"}``, the path
absolute and without links. One JSON answer: ``{"lines", "was_lines"}`` of a write (None: there was no file), ``{"lines", "places",
"count"}`` of an edit, or ``{"problem", …}`` with one of the words below; a file that could not be changed is as it was.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, NoReturn

Problem = Literal["missing", "not-a-file", "not-text", "large", "absent", "several", "same", "os"]
MAX_BYTES: Final = 50_000_000
_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 5


class Refused(Exception):
    """The request cannot be carried out; ``answer`` says why."""

    def __init__(self, problem: Problem, **facts: object) -> None:
        super().__init__(problem)
        self.answer: dict[str, object] = {"problem": problem, **facts}


def act(request: Mapping[str, Any]) -> dict[str, object]:
    """Carry out one request.

    Raises:
        Refused: it cannot be; the file is as it was.
        OSError: the system refused.
    """
    path: str = request["path"]
    if request["act"] == "write":
        before = _read(path) if os.path.lexists(path) else None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _replace(path, request["content"].encode("utf-8"))
        return {"lines": _count(request["content"]), "was_lines": None if before is None else _count(before.decode("utf-8", "replace"))}
    return _edit(path, request["old"], request["new"], request["all"])


def _edit(path: str, old: str, new: str, everywhere: bool) -> dict[str, object]:
    raw = _read(path)
    mark, body = (_BOM, raw[len(_BOM) :]) if raw.startswith(_BOM) else (b"", raw)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not-text") from None
    # The text was read with line feeds: where a file has only the other kind of line end, it is meant.
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    if old == new:
        raise Refused("same")
    places = _places(text, old)
    if not places:
        raise Refused("absent", near=_near(text, old))
    if len(places) > 1 and not everywhere:
        raise Refused("several", places=[_line(text, place) for place in places[:_SHOWN]], count=len(places))
    changed = text.replace(old, new)
    _replace(path, mark + changed.encode("utf-8"))
    return {
        "lines": _count(changed),
        "was_lines": _count(text),
        "places": [_line(text, place) for place in places[:_SHOWN]],
        "count": len(places),
    }


def _read(path: str) -> bytes:
    """A regular file's bytes. No link is followed: the path was resolved before, so one that is there now was put there since."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise Refused("missing") from None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        os.close(handle)
        raise Refused("large" if stat.S_ISREG(found.st_mode) else "not-a-file")
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _replace(path: str, data: bytes) -> None:
    """All or nothing, with the mode that the file had. One that has other names is written in place, so that they stay one file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise Refused("not-a-file")
    if found is not None and (found.st_nlink > 1 or found.st_uid != os.geteuid()):
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o666 & ~_umask() if found is None else stat.S_IMODE(found.st_mode))
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _places(text: str, part: str) -> list[int]:
    places, start = [], text.find(part)
    while start >= 0:
        places.append(start)
        start = text.find(part, start + len(part))
    return places


def _near(text: str, old: str) -> str:
    """What stands in the file instead: the text but for its white space, or the line most like its first."""
    squeezed = " ".join(old.split())
    if squeezed and squeezed in " ".join(text.split()):
        return "white space"
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    return next(iter(get_close_matches(wanted, lines[:20_000], 1, 0.75)), "")[:200] if wanted else ""


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _count(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def main() -> NoReturn:
    """Answer the request on standard input."""
    try:
        answer = act(json.load(sys.stdin.buffer))
    except Refused as refused:
        answer = refused.answer
    except OSError as error:
        answer = {"problem": "os", "code": errno.errorcode.get(error.errno or 0, ""), "text": error.strerror or str(error)}
    sys.stdout.buffer.write(json.dumps(answer).encode())
    sys.stdout.buffer.flush()
    sys.exit(0)


if __name__ == "__main__":
    main()
