"""Cells of two notebooks that grew apart from one, merged by cell id. A cell that both changed in different ways stands twice.

Pure, and nobody's work is chosen over another's: where both sides cannot be had in one cell, both cells are there, and it counts as a
conflict.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from plan_mode_nb.document.strip import source_text

Cell = Mapping[str, Any]
_MISSING: Final = object()
_DERIVED: Final = frozenset({"execution_count"})


class MergedCells(Struct, frozen=True):
    """``cells`` in order. ``conflicts``: one sentence for each cell that both sides changed differently."""

    cells: list[dict[str, Any]]
    conflicts: tuple[str, ...] = ()


def merge_cells(base: Sequence[Cell], ours: Sequence[Cell], theirs: Sequence[Cell]) -> MergedCells:
    """Three-way merge. Order is ours, unless only theirs moved cells; what the other side added follows what it followed there."""
    before, mine, other = _keyed(base), _keyed(ours), _keyed(theirs)
    merged: dict[str, list[dict[str, Any]]] = {}
    conflicts = []
    for key in (*mine, *(key for key in other if key not in mine)):
        merged[key], conflict = _merged(key, before.get(key), mine.get(key), other.get(key))
        if conflict:
            conflicts.append(conflict)
    cells = [cell for key in _order(list(before), list(mine), list(other)) for cell in merged[key]]
    return MergedCells(_with_own_ids(cells), tuple(conflicts))


def merge_values(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Three-way merge of an object's entries; ours where both changed one."""
    merged = {}
    for key in dict.fromkeys((*ours, *theirs)):
        value = _picked(base.get(key, _MISSING), ours.get(key, _MISSING), theirs.get(key, _MISSING))
        if value is not _MISSING:
            merged[key] = value
    return merged


def _picked(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if _same(ours, base) and not _same(theirs, base) else ours


def _keyed(cells: Iterable[Cell]) -> dict[str, Cell]:
    """Cells by id; one without an id, or with an id that was there already, by its source and how often that was there."""
    keyed: dict[str, Cell] = {}
    seen: Counter[str] = Counter()
    for cell in cells:
        key = cell.get("id")
        if not isinstance(key, str) or key in keyed:
            source = _digest(source_text(cell))
            seen[source] += 1
            key = f"{source}/{seen[source]}"
        keyed[key] = cell
    return keyed


def _merged(key: str, base: Cell | None, ours: Cell | None, theirs: Cell | None) -> tuple[list[dict[str, Any]], str]:
    """What stands in the place of one cell, and the conflict in words ("" for none)."""
    if ours is None or theirs is None:
        left = ours if theirs is None else theirs
        if left is None or (base is not None and _same(_lasting(left), _lasting(base))):
            return [], ""
        if base is None:
            return [dict(left)], ""
        return [dict(left)], f"cell {key}: deleted on one side and changed on the other; it was kept"
    if _same(_lasting(ours), _lasting(theirs)):
        return [dict(ours)], ""
    if base is not None:
        one = merge_values(base, ours, theirs)
        if all(_same(one.get(part), side.get(part)) for side in (ours, theirs) for part in _changed(base, side)):
            return [one], ""
    second = {**theirs, "id": _digest(f"{key}\n{_text(theirs)}")[:12]} if "id" in theirs else dict(theirs)
    return [dict(ours), second], f"cell {key}: changed on both sides; ours stands first, theirs after it"


def _changed(base: Cell, side: Cell) -> list[str]:
    return [part for part in {**base, **side} if part not in _DERIVED and not _same(base.get(part), side.get(part))]


def _lasting(cell: Cell) -> dict[str, Any]:
    """A cell without its running number, which says nothing of its own."""
    return {part: value for part, value in cell.items() if part not in _DERIVED}


def _order(base: list[str], ours: list[str], theirs: list[str]) -> list[str]:
    def common(keys: list[str], *others: list[str]) -> list[str]:
        return [key for key in keys if all(key in other for other in others)]

    moved_here = common(ours, base, theirs) != common(base, ours, theirs)
    first, second = (ours, theirs) if moved_here else (theirs, ours)
    order = list(first)
    for place, key in enumerate(second):
        if key in order:
            continue
        after = next((each for each in reversed(second[:place]) if each in order), None)
        order.insert(0 if after is None else order.index(after) + 1, key)
    return order


def _with_own_ids(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """No id twice: two sides may have given one id to different cells."""
    taken: set[str] = set()
    for cell in cells:
        key = cell.get("id")
        if not isinstance(key, str):
            continue
        while key in taken:
            key = _digest(f"{key}\n{_text(cell)}")[:12]
        cell["id"] = key
        taken.add(key)
    return cells


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not _MISSING and b is not _MISSING and _text(a) == _text(b))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        value = {key: _joined(item) if key in ("source", "text") else item for key, item in value.items()}
    return json.dumps(value, sort_keys=True, default=str)


def _joined(value: Any) -> Any:
    """nbformat has two forms of a text: one string, or its lines."""
    return "".join(value) if isinstance(value, list) and all(isinstance(line, str) for line in value) else value


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
