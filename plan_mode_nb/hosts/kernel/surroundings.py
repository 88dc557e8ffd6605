"""Where a kernel's agent works, as only Jupyter knows it: which folders must not be seen by confined programs, and which not be changed."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Final

from plan_mode_nb.compose import Surroundings
from plan_mode_nb.store.journal import journal_folder

RESULTS: Final = "results"
KEPT_S: Final = 30 * 24 * 3600
"""How long a result that was too long for the model stays on disk after it was last written."""
SCRATCH: Final = (sys.executable, "-P", "-X", "utf8", "-m", "plan_mode_nb.hosts.kernel.scratch_worker")
"""Without the folder it starts in on the path: a file there must not pass for a module that the process needs before any code runs."""
_logger = logging.getLogger(__name__)


def surroundings(*, network: bool) -> Surroundings:
    """The surroundings of this process now. Makes nothing; results of earlier kernels that are too old are removed."""
    from IPython.paths import get_ipython_dir
    from jupyter_core.paths import jupyter_config_path, jupyter_path, jupyter_runtime_dir

    results = journal_folder(create=False).absolute() / RESULTS
    _prune(results, older_than=time.time() - KEPT_S)
    loaded = (*jupyter_config_path(), *jupyter_path(), get_ipython_dir())
    return Surroundings(
        network=network,
        hidden=(Path(jupyter_runtime_dir()).absolute(),),
        trusted=tuple(Path(each).absolute() for each in loaded),
        results=results,
        scratch=SCRATCH,
    )


def _prune(folder: Path, *, older_than: float) -> None:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < older_than:
                    os.unlink(entry.path)
    except FileNotFoundError:
        return
    except OSError as error:
        _logger.warning("old results in %s could not be removed: %s", folder, error)
