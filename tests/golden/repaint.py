"""After a change of how cards look: ``cd tests && python -m golden.repaint FILE…`` takes HTML and markdown into notebooks, from a replay.

Only where everything else is as it was told: the same outputs in number and order, each with the same plain text. Anything more is a new
story.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat

from plan_mode_nb.replay.matching import match

from .warm import CELL_S, PREPARE, WarmReplays

PAINTED = ("text/html", "text/markdown")


class Repainting(WarmReplays):
    """Replays that change what is painted. Headers may differ: ``record --headers`` is for those."""

    def repaint(self, path: Path) -> int:
        """How many outputs were changed in the file.

        Raises:
            ValueError: more than paint differs; the file is as it was.
        """
        notebook: Any = nbformat.read(path, as_version=4)
        here = path.resolve()
        self._kernel.must(PREPARE.format(notebook=str(here), folder=str(here.parent), mode="headers"), CELL_S)
        changed = 0
        codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for cell in match(notebook).cells:
            ran = self._kernel.run(cell.source, CELL_S, allow_stdin=False, store_history=False)
            saved = [output for output in codes[cell.code].outputs if "data" in output]
            shown = [output for output in ran.outputs if "data" in output]
            if [_plain(output) for output in saved] != [_plain(output) for output in shown]:
                raise ValueError(f"{path.name}, {cell.source!r}: {[_plain(output) for output in shown]} is not what was told")
            changed += sum(_painted(before, now) for before, now in zip(saved, shown, strict=True))
        if changed:
            nbformat.write(notebook, path)
        return changed


def _plain(output: Any) -> str:
    return str(output["data"].get("text/plain", ""))


def _painted(saved: Any, shown: Any) -> bool:
    """Whether anything was taken over."""
    new = {mime: shown["data"][mime] for mime in PAINTED if mime in saved["data"] and mime in shown["data"]}
    changed = any(saved["data"][mime] != value for mime, value in new.items())
    saved["data"].update(new)
    return changed


def main(names: list[str]) -> None:
    """Repaint each file, or say why not."""
    with Repainting() as replays:
        for name in names:
            try:
                print(f"{name}: {replays.repaint(Path(name))} outputs")
            except ValueError as error:
                print(f"{name}: left as it is: {str(error)[:600]}")


if __name__ == "__main__":
    main(sys.argv[1:])
