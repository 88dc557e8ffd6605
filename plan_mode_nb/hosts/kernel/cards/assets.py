"""The front end's modules as the one module, and the one style sheet, that anywidget can load: as text, which can import no neighbour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "front_end"
_MODULES: Final = ("elements", "shell", "review", "question", "approval", "controls", "card")
_IMPORT = re.compile(r"^import \{[^}]*\} from '\./\w+\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function )", re.MULTILINE)


def module() -> str:
    """The modules in the order of their imports, without imports among themselves; only ``card`` exports, by default.

    Names are shared: a name declared in two modules is an error as soon as the text is loaded.
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", (_FOLDER / f"{name}.js").read_text(encoding="utf-8"))) for name in _MODULES)


def style() -> str:
    """The style sheets in their order: the frame, then what each kind adds."""
    return "\n".join((_FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in ("frame", "kinds"))
