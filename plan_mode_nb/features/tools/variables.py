"""What a model is told of variables. Runs on the thread that owns them; nothing that an object does can break it.

The overview calls no ``__repr__`` but those of plain values: a stranger's may query a database. Pandas and NumPy are used where the
notebook already imported them, and never imported here.
"""

from __future__ import annotations

import inspect
import re
import reprlib
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

MAX_VARIABLES: Final = 200
MAX_COLUMNS: Final = 40
HEAD_ROWS: Final = 5
VALUE_LIMIT: Final = 120
REPR_LIMIT: Final = 4_000
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
_BOXES: Final = (list, tuple, dict, set, frozenset)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(namespace: Mapping[str, Any], names: Sequence[str] | None) -> str:
    """The named variables in full, or an overview of all of them, by name. Deterministic: no addresses."""
    if names:
        return "\n\n".join(_in_full(namespace, name) for name in names)
    if not namespace:
        return "There are no variables yet."
    listed = sorted(namespace)
    lines = [_line(name, namespace[name]) for name in listed[:MAX_VARIABLES]]
    if len(listed) > MAX_VARIABLES:
        lines.append(f"… and {len(listed) - MAX_VARIABLES} more: {', '.join(listed[MAX_VARIABLES : MAX_VARIABLES + 100])}")
    return "\n".join(lines)


def _in_full(namespace: Mapping[str, Any], name: str) -> str:
    if name in namespace:
        return _entry(name, namespace[name], _full_value)
    close = get_close_matches(name, namespace, 3)
    return f"{name}: there is no such variable" + (f"; did you mean {', '.join(close)}?" if close else "")


def _line(name: str, value: Any) -> str:
    return _entry(name, value, _short_value)


def _entry(name: str, value: Any, show: Callable[[Any], str]) -> str:
    """``name: type, size = value``; a frame's rows, and a value of several lines, follow indented."""
    size = _guarded(_size, value, "")
    head = f"{name}: {type_name(value)}{f', {size}' if size else ''}"
    shown = _guarded(show, value)
    if not shown:
        return head
    return f"{head} = {shown}" if "\n" not in shown else f"{head}\n{_indented(shown)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _guarded(function: Callable[[Any], str], value: Any, failed: str | None = None) -> str:
    """What ``function`` says of a value; what an object raised is said (or ``failed``), never passed on but for the user's interrupt."""
    try:
        return _ADDRESS.sub("", function(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 -- an object may raise anything, SystemExit too, and the rest must still be shown
        return f"<could not be shown: {type(error).__name__}>" if failed is None else failed


def type_name(value: object) -> str:
    """The type's name, with its module where it is not a builtin. Reads the type only, so an object cannot answer for itself."""
    kind = type(value)
    module = type.__getattribute__(kind, "__module__")
    name = type.__getattribute__(kind, "__qualname__")
    return name if module in ("builtins", "__main__") or not isinstance(module, str) else f"{module.partition('.')[0]}.{name}"


def _is_a(value: Any, *kinds: type) -> bool:
    """``isinstance`` by the type alone: an object's own ``__class__`` may lie or raise."""
    return issubclass(type(value), kinds)


def _from(module: str, *names: str) -> tuple[type, ...]:
    """Those types of a module that are there, if the module is already imported."""
    loaded = sys.modules.get(module)
    found = (getattr(loaded, name, None) for name in names)
    return tuple(kind for kind in found if isinstance(kind, type))


def _size(value: Any) -> str:
    if _is_a(value, *_from("pandas", "DataFrame")):
        return f"{value.shape[0]:,} rows x {value.shape[1]:,} columns"
    if _is_a(value, *_from("pandas", "Series", "Index")):
        return f"{len(value):,} values of {value.dtype}"
    if _is_a(value, *_from("numpy", "ndarray")):
        return f"shape {tuple(value.shape)}, {value.dtype}"
    if _is_a(value, str, bytes, bytearray):
        return f"{len(value):,} {'characters' if _is_a(value, str) else 'bytes'}" if len(value) > VALUE_LIMIT else ""
    if _is_a(value, *_BOXES):
        return _items(value)
    return _other_size(value)


def _other_size(value: Any) -> str:
    """A shape or a length where the type declares one. A length is asked of collections only: of a query it may be the query itself."""
    kind = type(value)
    shape = getattr(value, "shape", None) if hasattr(kind, "shape") else None
    if isinstance(shape, tuple) and all(isinstance(side, int) for side in shape):
        return f"shape {tuple(shape)}"
    return _items(value) if _is_a(value, deque, range) else ""


def _items(value: Any) -> str:
    return f"{len(value):,} item{'' if len(value) == 1 else 's'}"


def _short_value(value: Any) -> str:
    if _is_a(value, *_from("pandas", "DataFrame")):
        return _frame(value)
    if _is_a(value, *_from("pandas", "Series")):
        return _rows(value)
    if _is_a(value, types.FunctionType, type, types.ModuleType):
        return _definition(value)
    if type(value) in _PLAIN or (type(value) in _BOXES and all(_is_plain(each) for each in _first(value))):
        return _bounded(_SHORT.repr(value), VALUE_LIMIT)
    return ""


def _full_value(value: Any) -> str:
    short = _guarded(_short_value, value) if _is_a(value, *_from("pandas", "DataFrame", "Series"), types.FunctionType, type) else ""
    if short:
        return short
    if type(value) in (str, bytes):
        return _bounded(repr(value[:REPR_LIMIT]), REPR_LIMIT)
    if type(value) in _BOXES or type(value) is int:
        return _bounded(_FULL.repr(value), REPR_LIMIT)
    return _bounded(repr(value), REPR_LIMIT)


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _first(box: Any) -> Iterator[Any]:
    """The first items of a builtin container, keys and values of a dict."""
    for place, each in enumerate(box):
        if place == _SHORT.maxlist:
            return
        yield each
        if isinstance(box, dict):
            yield box[each]


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN


class _Repr(reprlib.Repr):
    """Bounded everywhere, however deep or long; an integer too long for decimal digits says how long it is."""

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses, and takes long over, decimal digits by the thousands."""
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"<an integer of {x.bit_length():,} bits>"

    def repr_instance(self, x: Any, level: int) -> str:
        """A class may say what it likes of itself, or fail to."""
        return _guarded(lambda each: super(_Repr, self).repr_instance(each, level), x)


def _repr_of(items: int, text: int, depth: int) -> _Repr:
    made = _Repr()
    made.maxlist = made.maxtuple = made.maxdict = made.maxset = made.maxfrozenset = items
    made.maxstring = made.maxlong = made.maxother = text
    made.maxlevel = depth
    return made


_SHORT: Final = _repr_of(6, 60, 2)
_FULL: Final = _repr_of(50, 200, 6)


def _definition(value: Any) -> str:
    """Functions and classes by how they are called, modules by name."""
    if _is_a(value, types.ModuleType):
        return str(value.__name__)
    try:
        signature = str(inspect.signature(value))
    except (ValueError, TypeError):
        signature = "(…)"
    kind = "class" if _is_a(value, type) else "def"
    doc = vars(value).get("__doc__") if kind == "class" else value.__doc__  # a class must not show what it inherits
    first = inspect.cleandoc(doc).partition("\n")[0] if isinstance(doc, str) else ""
    return _bounded(f"{kind} {value.__name__}{signature}" + (f"  # {first}" if first else ""), VALUE_LIMIT * 2)


def _frame(frame: Any) -> str:
    """Types by column, then the first rows."""
    columns = [f"{_label(name)} ({dtype})" for name, dtype in zip(frame.columns[:MAX_COLUMNS], frame.dtypes[:MAX_COLUMNS], strict=True)]
    more = f", … {frame.shape[1] - MAX_COLUMNS} more" if frame.shape[1] > MAX_COLUMNS else ""
    return f"columns: {', '.join(columns)}{more}\n{_guarded(_rows, frame)}"


def _label(name: Any) -> str:
    return _guarded(lambda each: _bounded(str(each), 60), name)


def _rows(table: Any) -> str:
    """The first rows of a frame or series as pandas prints them, cells bounded."""
    head = table.head(HEAD_ROWS)
    if len(getattr(head, "shape", ())) == 1:
        return _bounded(str(head.to_frame().to_string(max_colwidth=60)), REPR_LIMIT)
    return _bounded(str(head.to_string(max_cols=20, max_colwidth=60)), REPR_LIMIT)
