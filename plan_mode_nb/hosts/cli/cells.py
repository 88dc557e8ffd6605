"""Running the cells of a notebook with nbclient, and saying in one sentence why it stopped."""

from __future__ import annotations

import asyncio
import re
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from plan_mode_nb.hosts.cli.carrier import COMM, Received

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LINE: Final = 300


class _Stopped(Exception):
    """Ctrl-C came between two cells."""


class Cells:
    """One run. ``failure``: why it stopped early, "" where every cell ran; ``kernels``: the ids of the kernels that were started."""

    def __init__(self, notebook: Any, folder: Path, received: Received) -> None:
        self._notebook, self._folder, self._received = notebook, folder, received
        self._at: int | None = None
        self._stops = 0
        self._task: asyncio.Task[Any] | None = None
        self._client: Any = None
        self.kernels: set[str] = set()
        self.ran = 0
        self.failure = "it was stopped before its first cell"

    def run(self, *, timeout: int | None, kernel: str | None, environment: Mapping[str, str]) -> None:
        """Every code cell in order, until one fails. Ctrl-C interrupts the cell, so that a turn can close its log; a second one the run."""
        from nbclient import NotebookClient

        chosen = {"kernel_name": kernel} if kernel else {}
        self._client = client = NotebookClient(
            self._notebook,
            timeout=timeout,
            resources={"metadata": {"path": str(self._folder)}},
            on_cell_start=self._starts,
            on_cell_executed=self._executed,
            record_timing=False,
            **chosen,
        )
        client.comm_open_handlers[COMM] = self._received.open
        with tempfile.TemporaryFile() as said:
            self.failure = self._sentence(lambda: asyncio.run(client.async_execute(env=dict(environment), stderr=said)), timeout, said)

    def _sentence(self, execute: Callable[[], object], timeout: int | None, said: IO[bytes]) -> str:
        """Why it stopped. ``said``: what the kernel's process wrote to its stderr, which is nobody's output."""
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

        try:
            execute()
        except CellExecutionError as error:
            return f"stopped in {self._where}" if self._stops else f"{self._where} failed: {_one_line(error.ename, error.evalue)}"
        except CellTimeoutError:
            return f"{self._where} took longer than {timeout} s; give it more with --timeout"
        except NoSuchKernel as error:
            return f"there is no kernel {error.name!r} here; choose one with --kernel: {', '.join(_installed_kernels())}"
        except (_Stopped, KeyboardInterrupt, asyncio.CancelledError):
            return f"stopped before {self._where}"
        except DeadKernelError:
            return f"stopped in {self._where}" if self._stops else f"the kernel died in {self._where}; what it had logged was kept"
        except RuntimeError as error:
            return f"the kernel did not start: {_last_line(said) or _one_line('', str(error))}"
        return ""

    @property
    def _where(self) -> str:
        if self._at is None:
            return "its first cell"
        first = next((line.strip() for line in self._notebook.cells[self._at].source.splitlines() if line.strip()), "")
        return f"cell {self._at + 1} ({first if len(first) <= 60 else f'{first[:59]}…'})"

    def _starts(self, cell: Any, cell_index: int) -> None:
        self._at, self._task = cell_index, asyncio.current_task()
        self.kernels.add(Path(self._client.km.connection_file).stem.removeprefix("kernel-"))
        # nbclient's own handlers kill the kernel at once; a turn would be cut off where it could have been stopped.
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._stop)
        if self._stops:
            raise _Stopped

    def _executed(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        self.ran += 1

    def _stop(self) -> None:
        self._stops += 1
        if self._stops == 1:
            self._interrupting = asyncio.ensure_future(self._client.km.interrupt_kernel())
        elif self._task is not None:
            self._task.cancel()


def _one_line(name: str, value: str) -> str:
    text = next((line.strip() for line in _ANSI.sub("", value).splitlines() if line.strip()), "")
    said = ": ".join(part for part in (name, text) if part)
    return said if len(said) <= _LINE else f"{said[: _LINE - 1]}…"


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return _one_line("", lines[-1]) if lines else ""


def _installed_kernels() -> list[str]:
    from jupyter_client.kernelspec import KernelSpecManager

    return sorted(KernelSpecManager().find_kernel_specs())
