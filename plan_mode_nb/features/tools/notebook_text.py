"""A notebook file as text to read: its cells and what they put out, without the metadata (which may hold a whole conversation)."""

from __future__ import annotations

import json
from typing import Any, Final

OUTPUT_LINES: Final = 40
MAX_BYTES: Final = 50_000_000
NOTE: Final = "[a notebook, shown as its cells and outputs; line numbers are those of this view]"


def notebook_text(data: bytes) -> str | None:
    """The cells in order, each under a heading line; None where the bytes are no notebook of format 4."""
    if len(data) > MAX_BYTES:
        return None
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
        cells = notebook["cells"]
        parts = [_cell(number, cell) for number, cell in enumerate(cells, start=1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n\n".join(parts) + "\n" if parts else "(a notebook without cells)\n"


def _cell(number: int, cell: dict[str, Any]) -> str:
    kind = cell.get("cell_type", "unknown")
    count = cell.get("execution_count")
    lines = [f"# Cell {number} [{kind}]" + (f" In[{count}]" if isinstance(count, int) else ""), _text(cell.get("source", "")).rstrip("\n")]
    for output in cell.get("outputs", ()):
        shown = _output(output)
        if shown:
            lines += ["# Output:", _bounded(shown)]
    return "\n".join(lines)


def _output(output: dict[str, Any]) -> str:
    match output.get("output_type"):
        case "stream":
            return _text(output.get("text", ""))
        case "error":
            return f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
        case _:
            return _display(output.get("data", {}))


def _display(data: dict[str, Any]) -> str:
    """The plain text, and the kinds of the images beside it."""
    images = [f"[{mime}]" for mime in data if mime.startswith("image/")]
    return "\n".join(part for part in [_text(data.get("text/plain", "")), *images] if part)


def _text(source: object) -> str:
    """A multi-line string of the format: one string, or a list of them."""
    return "".join(source) if isinstance(source, list) else str(source)


def _bounded(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= OUTPUT_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:OUTPUT_LINES], f"[{len(lines) - OUTPUT_LINES} more lines of output]"])
