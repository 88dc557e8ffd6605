"""Notebooks on disk: read, and written back with nothing changed but what was meant to be (formatting, order, permissions, time)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plan_mode_nb.document.chunks import is_ours, read_metadata, write_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.exceptions import FormatError
from plan_mode_nb.store.files import read_bytes, replace

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKENS = 1024


class Style(Struct, frozen=True):
    """How a notebook's JSON is laid out. The default is nbformat's own."""

    indent: int | str | None = 1
    ascii: bool = False
    newline: str = "\n"
    final_newline: bool = True
    mark: str = ""

    def pieces(self, notebook: Mapping[str, Any]) -> Iterator[bytes]:
        """The notebook in this style, in pieces: a long log in it is never held as text a second time."""
        separators = (",", ":") if self.indent is None else (",", ": ")
        encoder = json.JSONEncoder(indent=self.indent, ensure_ascii=self.ascii, separators=separators)
        # On one line the whole text at once is many times faster.
        tokens = iter([encoder.encode(notebook)]) if self.indent is None else encoder.iterencode(notebook)
        yield self.mark.encode()
        while tokens_here := list(islice(tokens, _TOKENS)):
            # Half a surrogate pair (JavaScript can leave one) is no UTF-8; as an escape it is what it was.
            text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", "".join(tokens_here))
            yield (text if self.newline == "\n" else text.replace("\n", self.newline)).encode()
        if self.final_newline:
            yield self.newline.encode()


def style_of(text: str) -> Style:
    """The style of a notebook's text, which is JSON."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n", 2)
    first = lines[1] if len(lines) > 1 else ""
    space = first[: len(first) - len(first.lstrip(" \t"))]
    indent: int | str | None = (space if "\t" in space else len(space)) if first.strip() else None
    escaped = text.isascii() and "\\u" in text and not json.dumps(json.loads(text), ensure_ascii=False).isascii()
    return Style(indent, escaped, newline, text.endswith("\n"), mark)


def parse_notebook(text: str | bytes, name: str) -> dict[str, Any]:
    """A notebook's JSON; bytes are UTF-8. ``name``: what to call it in an error.

    Raises:
        FormatError: it is no notebook of format 4, or damaged.
    """
    try:
        notebook = _parsed(text)
    except UnicodeDecodeError:
        raise FormatError(f"{name} is not a notebook: it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name} is not a notebook: its JSON is damaged ({error}); restore it from a copy") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise FormatError(f"{name} is not a notebook: it names no nbformat")
    if notebook["nbformat"] != 4:
        raise FormatError(f"{name} is a notebook of format {notebook['nbformat']}; open it in Jupyter and save it to bring it to format 4")
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells) or not isinstance(notebook.get("metadata"), dict):
        raise FormatError(f"{name} is not a notebook: its cells or its metadata are damaged; restore it from a copy")
    return notebook


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook's JSON, as it is in the file.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no notebook of format 4, or damaged.
    """
    return parse_notebook(read_bytes(path), path.name)


def change_notebook(path: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> bool:
    """Replace a notebook by ``change(notebook)``, in the style it had; whether anything changed. An unchanged file is not touched.

    Raises:
        StoreError: it cannot be read or written; it is as it was.
        FormatError: it is no notebook of format 4, damaged, or was valid and would not be afterwards.
    """
    text = _text(path)
    before = parse_notebook(text, path.name)
    after = change(_parsed(text))
    if after == before:
        return False
    # A notebook that was not valid before (another tool's) must not lose its log for that.
    if _fault(before) is None:
        _check(path, after)
    replace(path, style_of(text).pieces(after))
    return True


def write_notebook(path: Path, notebook: Mapping[str, Any]) -> None:
    """Write a whole notebook, in the style of the file it replaces, or in nbformat's.

    Raises:
        StoreError: it cannot be written; it is as it was.
        FormatError: it is not a valid notebook.
    """
    _check(path, notebook)
    style = style_of(_text(path)) if path.exists() else Style()
    replace(path, style.pieces(notebook))


def load_document(path: Path) -> Document:
    """What a notebook file's metadata holds of ours.

    Raises:
        StoreError, FormatError: as :func:`read_notebook`. A damaged session is no error but one of the document's problems.
    """
    return read_metadata(read_notebook(path)["metadata"])


def save_document(path: Path, document: Document) -> bool:
    """Put a document into a notebook file; whether the file changed. Meant for one that takes in what the file holds.

    Raises:
        StoreError, FormatError: as :func:`change_notebook`.
    """
    return change_notebook(path, lambda notebook: {**notebook, "metadata": with_document(notebook["metadata"], document)})


def with_document(metadata: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """New metadata; keys in nbformat's order (sorted) where the old ones were, so that the next save in Jupyter moves nothing."""
    written = write_metadata(document, metadata)
    if list(metadata) != sorted(metadata):
        return written
    return {key: _sorted(value) if is_ours(key) else value for key, value in sorted(written.items())}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in sorted(value.items())}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _parsed(text: str | bytes) -> Any:
    """What ``json.loads`` makes of it, three times as fast where it is strict JSON: long logs are read whenever their notebook is."""
    plain = text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(plain)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return json.loads(plain if isinstance(plain, str) else plain.decode())


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path.name} is not a notebook: it is not UTF-8 text") from None


def _check(path: Path, notebook: Mapping[str, Any]) -> None:
    fault = _fault(notebook)
    if fault is not None:
        raise FormatError(f"{path.name} would not be a valid notebook ({fault}); it is as it was")


def _fault(notebook: Mapping[str, Any]) -> str | None:
    from nbformat.validator import iter_validate

    fault = next(iter_validate(dict(notebook)), None)
    return None if fault is None else str(fault).splitlines()[0]
