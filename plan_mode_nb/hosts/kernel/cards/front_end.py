"""The front end's modules as the one module that anywidget can load: what it loads comes as text and can import no neighbour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "front_end"
_MODULES: Final = ("elements", "shell", "review", "question", "approval", "controls", "card")
_IMPORT = re.compile(r"^import \{[^}]*\} from '\./\w+\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function )", re.MULTILINE)


def joined() -> str:
    """The modules in the order of their imports, without imports among themselves; only ``card`` exports, by default.

    Names are shared: a name declared in two modules is an error as soon as the text is loaded.
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", (FOLDER / f"{name}.js").read_text(encoding="utf-8"))) for name in _MODULES)
