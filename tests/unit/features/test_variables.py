"""``variables``: what is there, at a glance or in full, whatever the objects do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import deque
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plan_mode_nb.agent.tools import ToolCall
from plan_mode_nb.features.tools import kernel
from plan_mode_nb.features.tools.cap import Results
from plan_mode_nb.features.tools.variables import MAX_VARIABLES, describe
from plan_mode_nb.testing.shells import PlainShell


class Silent:
    """Raises whatever it is asked."""

    def __repr__(self) -> str:
        raise SystemExit("no")

    def __len__(self) -> int:
        raise ValueError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def __getattr__(self, name: str) -> Any:
        raise MemoryError("no")

    @property
    def shape(self) -> Any:
        raise GeneratorExit

    @property
    def __class__(self) -> Any:
        raise RecursionError("no")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RecursionError("no")


class Liar(type):
    """A metaclass that answers nothing."""

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("no")


class Meta(metaclass=Liar):
    """Its type cannot be asked."""


class Dict(dict):  # type: ignore[type-arg]
    """A container that cannot be counted."""

    def __len__(self) -> int:
        raise RuntimeError("no")


class Wide:
    """A value whose text is long, and of several lines."""

    def __repr__(self) -> str:
        return "wide\n" * 10_000


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def ring() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


NASTY: dict[str, Any] = {
    "silent": Silent(),
    "meta": Meta(),
    "liar": Meta,
    "counted": Dict(a=1),
    "inside": [Silent(), {"a": Silent()}],
    "wide": Wide(),
    "deep": deep(100_000),
    "ring": ring(),
    "huge": 10**100_000,
    "text": "x" * 5_000_000,
    "bytes": b"\xff" * 5_000_000,
    "surrogate": "\udc80",
    "lines": "a\nb",
    "nan": float("nan"),
    "objects": np.array([Wide()], dtype=object),
}


@pytest.mark.parametrize("name", NASTY)
def test_no_object_breaks_the_overview_or_itself_in_full(name: str) -> None:
    """Each is told of, bounded, next to a value that still is."""
    namespace = {name: NASTY[name], "zz": 7}
    overview, full = describe(namespace, None), describe(namespace, [name, "zz"])
    for shown in (overview, full):
        assert shown.startswith(f"{name}: ")
        assert "zz: int = 7" in shown
        assert len(shown) < 10_000


def test_a_frame_of_nasty_objects_still_tells_its_shape_and_types() -> None:
    """Its rows cannot be shown, the rest can."""

    class Bad:
        def __repr__(self) -> str:
            raise SystemExit("no")

    shown = describe({"frame": pd.DataFrame({"a": [1, 2], "b": [Bad(), Bad()]})}, None)
    assert "2 rows x 2 columns" in shown
    assert "a (int64), b (object)" in shown
    assert "could not be shown: SystemExit" in shown


def test_the_users_interrupt_is_not_swallowed() -> None:
    """Ctrl-C in a slow __repr__ ends the look."""

    class Slow:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        describe({"slow": Slow()}, ["slow"])


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (7, "v: int = 7"),
        (True, "v: bool = True"),
        (None, "v: NoneType = None"),
        ("hello", "v: str = 'hello'"),
        (b"raw", "v: bytes = b'raw'"),
        ([1, 2], "v: list, 2 items = [1, 2]"),
        ({"a": 1}, "v: dict, 1 item = {'a': 1}"),
        (set(), "v: set, 0 items = set()"),
        ([[1]], "v: list, 1 item"),
        (range(10), "v: range, 10 items"),
        (deque([1]), "v: collections.deque, 1 item"),
        (np.zeros((3, 4)), "v: numpy.ndarray, shape (3, 4), float64"),
        (list(range(100)), "v: list, 100 items = [0, 1, 2, 3, 4, 5, ...]"),
        (sys, "v: module = sys"),
    ],
)
def test_the_overview_has_one_line_of_a_plain_value(value: Any, line: str) -> None:
    """Name, type, size where it has one, and a short value where that runs nobody's code."""
    assert describe({"v": value}, None) == line


def test_the_overview_runs_no_repr_of_the_users_classes() -> None:
    """It may query a database; asked for by name it is called."""
    asked = []

    class Query:
        def __repr__(self) -> str:
            asked.append(1)
            return "rows"

    assert describe({"q": Query(), "box": [Query()]}, None).count("rows") == 0
    assert asked == []
    assert describe({"q": Query()}, ["q"]).endswith("Query = rows")


def test_a_frame_shows_shape_types_and_five_rows() -> None:
    """As pandas prints them, indented."""
    frame = pd.DataFrame({"city": [f"c{n}" for n in range(9)], "size": range(9)})
    assert describe({"frame": frame}, None).splitlines() == [
        "frame: pandas.DataFrame, 9 rows x 2 columns",
        f"    columns: city ({frame['city'].dtype}), size (int64)",
        "      city  size",
        *[f"    {n}   c{n}     {n}" for n in range(5)],
    ]


def test_a_wide_frame_is_bounded() -> None:
    """Forty columns by name, the number of the rest."""
    shown = describe({"frame": pd.DataFrame(np.zeros((3, 500)))}, None)
    assert "3 rows x 500 columns" in shown
    assert "… 460 more" in shown
    assert len(shown) < 5_000


def test_a_series_shows_its_type_and_first_values() -> None:
    """Five of them."""
    shown = describe({"s": pd.Series(range(100), name="count")}, None)
    assert shown.startswith("s: pandas.Series, 100 values of int64\n")
    assert len(shown.splitlines()) == 1 + 6


def test_functions_and_classes_show_how_they_are_called() -> None:
    """With the first line of their own docstring."""

    def add(a: int, b: int = 2) -> int:
        """Add two.

        More."""
        return a + b

    shown = describe({"add": add, "Kind": Silent}, None)
    assert "def add(a: 'int', b: 'int' = 2) -> 'int'  # Add two." in shown
    assert "class Silent" in shown


def test_the_text_holds_no_address() -> None:
    """Two kernels tell the same of the same."""
    assert describe({"o": object()}, ["o"]) == "o: object = <object object>"


def test_an_unknown_name_is_told_with_names_that_look_like_it() -> None:
    """No error: the others are still shown."""
    assert describe({"price": 1}, ["prise", "price"]) == "prise: there is no such variable; did you mean price?\n\nprice: int = 1"


def test_variables_are_listed_by_name_and_counted_past_a_bound() -> None:
    """The rest by name alone."""
    namespace = {f"v{n:04}": n for n in reversed(range(MAX_VARIABLES + 5))}
    lines = describe(namespace, None).splitlines()
    assert lines[0] == "v0000: int = 0"
    assert lines[-1] == "… and 5 more: v0200, v0201, v0202, v0203, v0204"
    assert describe({}, None) == "There are no variables yet."


def test_pandas_is_never_imported_to_look() -> None:
    """In a process of its own: nothing but what was there."""
    code = (
        "import sys\n"
        "from plan_mode_nb.features.tools.variables import describe\n"
        "describe({'a': 1, 'b': object(), 'f': describe}, None); describe({'b': object()}, ['b'])\n"
        "print({'pandas', 'numpy'} & set(sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout == "set()\n"


def test_the_tool_looks_through_the_shell_and_caps() -> None:
    """No permission is asked; private names stay private; a lone surrogate can be kept."""
    tool = kernel.variables_tool(
        PlainShell({"_secret": 1, "a": "\udc80", **{f"n{n}": "x" * 60 for n in range(150)}}), Results(str, limit=2_000)
    )
    outcome = asyncio.run(tool.run(ToolCall("variables", "{}", "c", 1, 1, None)))
    text = outcome.result.content[0]["text"]
    assert len(text) <= 2_000
    assert text.startswith("a: str = '\\udc80'")
    assert "_secret" not in text
