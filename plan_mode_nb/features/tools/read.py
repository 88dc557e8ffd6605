"""``read``: a file as numbered lines, a notebook as its cells, an image as an image; of anything else, what it is."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import MutableMapping
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec
from msgspec import Struct

from plan_mode_nb.agent.attachments import ImageError, image_block, looks_like_image
from plan_mode_nb.agent.signature import tool_from
from plan_mode_nb.agent.tools import Tool, ToolError, ToolResult, text_result
from plan_mode_nb.features.tools import notebook_text
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.features.tools.closed import NOTHING, Closed
from plan_mode_nb.features.tools.contents import HEAD, NOTEBOOK_SUFFIX, Binary, Text, kind_of
from plan_mode_nb.features.tools.paths import Workspace, refused, unreadable
from plan_mode_nb.features.tools.work import Budget, in_thread
from plan_mode_nb.log.messages import text_block

READ: Final = "read"
LINES: Final = 2_000
LINE_LIMIT: Final = 2_000
"""Characters of one line that are shown."""
_PIECE: Final = 4 * LINE_LIMIT
"""Characters of one line that are kept until secrets are taken out, so that the cut cannot split one that would be shown."""
_IMAGE_BYTES: Final = 50_000_000


class Part(Struct, frozen=True):
    """Which lines: ``offset`` counts from 1. ``characters``: about how much fits into a result."""

    offset: int
    limit: int
    characters: int


class Lines(Struct, frozen=True):
    """Lines from ``first`` on, without their ends; ``more``: the file goes on. ``notes``: lines about how it was read."""

    first: int
    lines: list[str]
    more: bool
    notes: tuple[str, ...] = ()


class Image(Struct, frozen=True):
    """The bytes of an image."""

    data: bytes


Found = Lines | Image | Binary


def read_tool(workspace: Workspace, results: Results, attachments: MutableMapping[str, bytes]) -> Tool:
    """The tool for a registry."""

    async def read(
        path: Annotated[str, msgspec.Meta(description="The file, relative to the workspace or absolute.")],
        offset: Annotated[int, msgspec.Meta(ge=1, description="The first line, counted from 1.")] = 1,
        limit: Annotated[int, msgspec.Meta(ge=1, le=LINES, description="How many lines at most.")] = LINES,
    ) -> ToolResult:
        """Read a file: text as numbered lines, a notebook (.ipynb) as its cells and outputs, a PNG, JPEG, GIF or WebP image as an image.

        Of other binary files you are told what they are.
        """
        file = workspace.find(path)
        shown, part = workspace.show(file), Part(offset, limit, results.limit)

        def work(budget: Budget) -> tuple[Found, int]:
            return load(file, shown, part, budget, workspace.closed)

        found, size = await in_thread(work)
        match found:
            case Lines():
                return text_result(_numbered(found, shown, results))
            case Binary(kind):
                return text_result(f"{shown} is no text: it is {kind}, {size:,} bytes. Open it with `python` and a library that reads it.")
            case Image(data):
                return _image(data, shown, size, attachments)

    return tool_from(read, name=READ)


def load(file: Path, shown: str, part: Part, budget: Budget, closed: Closed = NOTHING) -> tuple[Found, int]:
    """What the file holds, as far as ``part`` asks, and its size in bytes. Runs in a thread.

    Raises:
        ToolError: it is closed, does not exist, is no regular file, may not be read, or takes too long.
    """
    if closed.keeps(str(file)):
        raise refused(shown)
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            if closed.keeps_open_file(opened.fileno(), str(file)):
                raise refused(shown)
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{shown} is {_what(status.st_mode)}", code="NOT_A_FILE")
            return _load(opened, file, shown, status.st_size, part, budget), status.st_size
    except OSError as error:
        if os.path.isdir(file):
            raise ToolError(f"{shown} is {_what(stat.S_IFDIR)}", code="NOT_A_FILE") from None
        raise unreadable(shown, file, error) from None


def _without_waiting(path: str, flags: int) -> int:
    """A pipe without a writer would hold the thread for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _what(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder; list it with glob"
    return "no regular file but a pipe, device or socket, which cannot be read here"


def _load(opened: BinaryIO, file: Path, shown: str, size: int, part: Part, budget: Budget) -> Found:
    head = opened.read(HEAD) or b""  # None where reading would have to wait
    if looks_like_image(head) and size <= _IMAGE_BYTES:
        return Image(head + opened.read(_IMAGE_BYTES))
    kind = kind_of(head, whole=len(head) < HEAD)
    if isinstance(kind, Binary):
        return kind
    opened.seek(0)
    if file.suffix.lower() == NOTEBOOK_SUFFIX:
        cells = notebook_text.notebook_text(opened.read(notebook_text.MAX_BYTES + 1))
        if cells is not None:
            return _lines(io.StringIO(cells), shown, part, budget, (notebook_text.NOTE,))
        opened.seek(0)
    return _lines(io.TextIOWrapper(opened, kind.encoding, "replace"), shown, part, budget, _notes(kind))


def _notes(kind: Text) -> tuple[str, ...]:
    return (kind.note,) if kind.note else ()


def _lines(text: io.TextIOBase, shown: str, part: Part, budget: Budget, notes: tuple[str, ...]) -> Lines:
    """The lines of ``part``, fewer where their characters already fill a result."""
    number, room = 1, part.characters
    lines: list[str] = []
    while len(lines) < part.limit and room > 0:
        line = _line(text, shown, budget)
        if line is None:
            if number > 1 and number <= part.offset and not lines:
                raise ToolError(f"{shown} has only {number - 1:,} lines; send a smaller offset", code="BAD_ARGUMENTS")
            return Lines(part.offset, lines, more=False, notes=notes)
        if number >= part.offset:
            lines.append(line)
            room -= min(len(line), LINE_LIMIT) + 8
        number += 1
    return Lines(part.offset, lines, more=_line(text, shown, budget) is not None, notes=notes)


def _line(text: io.TextIOBase, shown: str, budget: Budget) -> str | None:
    """The next line without its end, of a very long one the first characters; None at the end."""
    if budget.spent:
        raise ToolError(f"reading {shown} took longer than {budget.seconds:g} seconds; read an earlier part", code="TOO_SLOW")
    line = text.readline(_PIECE)
    if not line:
        return None
    rest = line
    while len(rest) > 0 and not rest.endswith("\n"):
        if budget.spent:
            raise ToolError(f"{shown} has a line that is too long to read; look at it with `python`", code="TOO_SLOW")
        rest = text.readline(1 << 20)
    return line.removesuffix("\n")


def _numbered(found: Lines, shown: str, results: Results) -> str:
    if not found.lines:
        return f"{shown} is empty."
    # A secret of several lines is one only while the numbers do not stand in it.
    clean = results.clean("\n".join(found.lines)).split("\n")
    numbered = [f"{number:6}\t{_cut(line)}" for number, line in enumerate(clean, start=found.first)]
    last = found.first + len(found.lines) - 1
    notes = list(found.notes)
    if len(clean) != len(found.lines):
        notes.append("[a secret of several lines was taken out; the numbers after it are too small]")
    if any(len(line) > LINE_LIMIT for line in clean):
        notes.append(f"[lines longer than {LINE_LIMIT:,} characters are cut]")
    if found.more:
        notes.append(f"[lines {found.first:,} to {last:,}; there are more: go on with offset {last + 1}]")
    return "\n".join([*numbered, *notes])


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LIMIT else line[:LINE_LIMIT] + "…"


def _image(data: bytes, shown: str, size: int, attachments: MutableMapping[str, bytes]) -> ToolResult:
    try:
        block = image_block(attachments, data, name=os.path.basename(shown))
    except ImageError as error:
        return text_result(f"{shown} is an image of {size:,} bytes that cannot be shown to you: {error}.")
    facts = block["attachment"]
    line = f"{shown}: {facts['mediaType']}, {facts['width']} x {facts['height']} pixels, {facts['bytes']:,} bytes"
    return ToolResult((text_block(line), block))
