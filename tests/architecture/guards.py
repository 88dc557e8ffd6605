"""The guards: pure functions from a tree of source files to the places where it breaks a rule of the design."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODULE_CEILING = 300
FUNCTION_CEILING = 60
JUPYTER = frozenset(
    "IPython anywidget comm ipykernel ipywidgets jupyter_client jupyter_core jupyter_server jupyterlab nbclient nbdime nbval notebook "
    "tornado traitlets zmq".split()
)
ROOMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(JUPYTER, ("hosts", "replay")),
    "nbformat": ("hosts", "replay", "store"),
    "pydantic_ai": ("models",),
}
"""Where a package may be imported, lazily or not; a package that is not named may be imported anywhere."""
EXCEPTIONS = {("store/journal.py", "jupyter_core")}
"""The journals' folder lies in Jupyter's runtime folder; both hosts that use it must agree on it, and they never import each other."""
AXES = ("sandbox", "approval")
OUTSIDE = frozenset("datetime io os pathlib random secrets shutil socket subprocess tempfile threading time urllib uuid".split())
PURE = ("agent", "document", "folds", "log", "loop", "plan", "render")
"""Rooms that touch no file, clock, thread or chance: what they need of those is an argument."""
GIVEN = {("agent/seams.py", "uuid.uuid4"), ("agent/seams.py", "uuid")}
"""The one default that stands for chance: where a composition names no other source of ids."""


@dataclass(frozen=True)
class Source:
    """One Python file of a tree. ``name``: its path below the tree's root, with slashes."""

    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree, parsed anew at each reading."""
        return ast.parse(self.text, self.name)


def sources(root: Path) -> Iterator[Source]:
    """Every Python file below ``root``, in order of path."""
    for path in sorted(root.rglob("*.py")):
        yield Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every import, wherever it stands."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def misplaced_packages(root: Path) -> list[str]:
    """Imports of a package outside the rooms that may know it."""
    problems = []
    for source in sources(root):
        for line, name in imports(source):
            package = name.partition(".")[0]
            rooms = ROOMS.get(package)
            if rooms is None or source.name.startswith(tuple(f"{room}/" for room in rooms)) or (source.name, package) in EXCEPTIONS:
                continue
            problems.append(f"{source.name}:{line}: {package} may be imported in {', '.join(rooms)} only")
    return problems


def impure_imports(root: Path) -> list[str]:
    """Imports that reach outside from a room that is pure. Path arithmetic (``pathlib.Pure…``) is none."""
    return [
        f"{source.name}:{line}: {name} reaches outside"
        for source in sources(root)
        if source.name.startswith(tuple(f"{room}/" for room in PURE))
        for line, name in imports(source)
        if name.partition(".")[0] in OUTSIDE and not name.startswith("pathlib.Pure") and (source.name, name) not in GIVEN
    ]


def spelled(folder: Path, words: tuple[str, ...] = AXES) -> list[str]:
    """Lines that hold one of the words, in any case, in code, text or comment."""
    problems = []
    for source in sources(folder):
        for number, line in enumerate(source.text.splitlines(), start=1):
            problems += [f"{source.name}:{number}: spells {word}" for word in words if word in line.lower()]
    return problems


def imported_from(folder: Path, module: str) -> list[str]:
    """Imports of a module, or of anything in it."""
    return [
        f"{source.name}:{line}: imports {module}"
        for source in sources(folder)
        for line, name in imports(source)
        if name == module or name.startswith(f"{module}.")
    ]


def long_modules(root: Path, ceiling: int = MODULE_CEILING) -> list[str]:
    """Python and JavaScript files over the ceiling."""
    files = sorted([*root.rglob("*.py"), *root.rglob("*.js")])
    lengths = [(path, len(path.read_text(encoding="utf-8").splitlines())) for path in files]
    return [f"{path.relative_to(root).as_posix()}: {length} lines" for path, length in lengths if length > ceiling]


def long_functions(root: Path, ceiling: int = FUNCTION_CEILING) -> list[str]:
    """Functions that do not fit on a screen, decorators and docstring included."""
    problems = []
    for source in sources(root):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                length = (node.end_lineno or first) - first + 1
                if length > ceiling:
                    problems.append(f"{source.name}:{first}: {node.name} has {length} lines")
    return problems


def undocumented(root: Path) -> list[str]:
    """Modules that hold code and do not say what they are."""
    return [source.name for source in sources(root) if source.tree.body and not ast.get_docstring(source.tree)]
