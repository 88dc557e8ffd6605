"""``import_s`` and ``load_ext_s``: importing the package, and ``%load_ext`` in a kernel that has ipywidgets imported. Processor time.

Every round is a process of its own, its byte code compiled before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import as_installed, rounded

ROUNDS = 5
IMPORT = "import time; start = time.process_time(); import plan_mode_nb; print(time.process_time() - start)"
LOAD = """
import time, ipywidgets
_start = time.process_time()
get_ipython().run_line_magic("load_ext", "plan_mode_nb")
print(time.process_time() - _start)
"""


def measure() -> dict[str, Any]:
    """``{"import_s": s, "load_ext_s": s}``."""
    imports, loads = [], []
    with tempfile.TemporaryDirectory() as folder:
        environment = as_installed(Path(folder))
        for _ in range(ROUNDS + 1):
            imports.append(_import(environment))
            loads.append(_load(environment))
    # The first round compiled the modules, as an installer does.
    return {"import_s": rounded(statistics.median(imports[1:])), "load_ext_s": rounded(statistics.median(loads[1:]))}


def _import(environment: dict[str, str]) -> float:
    ran = subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return float(ran.stdout)


def _load(environment: dict[str, str]) -> float:
    from tests.kernel.driver import Kernel

    with Kernel(sys.executable, env=environment) as kernel:
        return float(kernel.must(LOAD, 60))
